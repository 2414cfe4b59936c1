"""Sealing for a group, with the sealing alone: once for everybody, and a chain handed on to each device.

Knows:   a chain of this device, the same chain as one member holds it, and the devices that hold it.
Never:   the client around it: what it looks up for every member is not measured here.
"""

from __future__ import annotations

from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.groups import sealing as group_sealing
from nightmail.e2ee.groups import sender_keys
from nightmail.e2ee.groups.sealing import GroupContext
from nightmail.e2ee.identity import Address
from nightmail.e2ee.note import Note, pack
from nightmail.model.ids import account_id, device_id

GROUP = 0x1234_5678
MEMBERS = 500


class GroupTalk:
    """One device writes, another reads. `MEMBERS` devices hold the chain."""

    def __init__(self, now: int) -> None:
        self._now = now
        sender, genesis = Address(device_id(account_id("ada"), 1), 1), SYSTEM.draw(32)
        self._context = GroupContext(GROUP, genesis, 1, SYSTEM.draw(32))
        self._chain = sender_keys.make_chain(sender, GROUP, genesis, SYSTEM, now)
        handed = sender_keys.decode_handed(self.handed())
        self._theirs = sender_keys.receive_chain(handed, sender, now)
        self._holders = [Address(device_id(account_id(f"member-{n}"), 1), 1) for n in range(MEMBERS)]
        self._audience = set(self._holders)

    def handed(self) -> bytes:
        """What each device is sent in its own session before the first message."""
        return sender_keys.hand_on(self._chain)

    def may_go_on(self) -> bool:
        """Asked whenever a list or the membership changes: does anybody hold the chain who may not read on?"""
        left = sender_keys.left_holders(self._holders, self._audience)
        return sender_keys.renewal(self._chain, left, False, self._now) is None

    def say(self, note: Note) -> bytes:
        self._chain, sealed = group_sealing.seal(self._chain, self._context, pack(note))
        return sealed

    def hear(self, sealed: bytes) -> bytes:
        self._theirs, plaintext = group_sealing.open_sealed(self._theirs, self._context, sealed, self._now)
        return plaintext
