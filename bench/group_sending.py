"""A whole send to a group, as a client does it: composed, sealed once for everybody, stored, framed.

Knows:   the client's machine, its real store in a temporary folder, and a server that accepts everything.
"""

from __future__ import annotations

import time
from random import Random

from nightmail.client.errors import ClientError
from nightmail.client.machine.machine import Machine
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Identity
from nightmail.e2ee import keys
from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.content import Content
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import DeviceKeys
from nightmail.e2ee.lists import sign_list
from nightmail.model.answers import Bundle, Done, GroupAccepted, GroupHead, Said, Stocked
from nightmail.model.group_chain import NAMED_MAX, head_of
from nightmail.model.group_rows import FanOut
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import (
    Claimed,
    FellowClaimed,
    GroupChanged,
    GroupMade,
    GroupSealed,
    GroupSent,
    Listed,
    Published,
)
from nightmail.model.roster import GroupSettings
from nightmail.model.words import Kind
from nightmail.wire.frames import decode_from_device, encode
from nightmail.wire.items import (
    GROUP_ITEMS,
    VERSION,
    Answered,
    Ask,
    Devices,
    FromServer,
    GroupChain,
    GroupLook,
    Look,
    SaidByDevices,
    Welcome,
)

NOW = 1_760_000_000_000
ADA = account_id("ada")
SINCE = 4
"""Records that the server knows: those of groups."""


class GroupSender:
    """Ada's phone, online, in a group of `members` accounts with one device each."""

    def __init__(self, store: Store, members: int, text_bytes: int) -> None:
        me = Identity("ada", ADA, device_id(ADA, 1), 7, b"t" * 32)
        self._machine = Machine(store, me, chance=Random(1))
        self._text = "x" * text_bytes
        self._now, self._head, self._length, self._seq = NOW, b"", 0, 0
        self._sent: set[int] = set()
        self._theirs: dict[int, DeviceKeys] = {}
        self._lists: dict[int, tuple[int, dict[int, int], bytes]] = {ADA: (1, {me.device: 7}, b"")}
        for n in range(1, members):
            self._add(f"member-{n}")
        self.claims = self.looks = self.envelopes = 0
        self._machine.connected(NOW)
        self._machine.turn()
        self._hear(Welcome(VERSION, NOW, "bench", 30_000, 256, 65_536, 1 << 20, SINCE, GROUP_ITEMS))
        self.answer(self._machine.turn().frames)
        self._group = self._make(list(self._lists.keys() - {ADA}))

    def _add(self, handle: str) -> None:
        account = account_id(handle)
        theirs = keys.make_keys(Address(device_id(account, 1), 1), SYSTEM, NOW, count=1, kem_count=1)
        signed = sign_list(SYSTEM.draw(32), account, 1, {theirs.address: theirs.identity.public}, handle=handle)
        self._theirs[theirs.address.device] = theirs
        self._lists[account] = 1, {theirs.address.device: 1}, signed.signed

    def _make(self, accounts: list[int]) -> int:
        found: list[int | ClientError] = []
        changes = self._machine.groups(self._now).changes
        changes.make("Friends", accounts[: NAMED_MAX - 1], GroupSettings(), found.append)
        self.answer(self._machine.turn().frames)
        (group,) = found
        assert isinstance(group, int), group
        for first in range(NAMED_MAX - 1, len(accounts), NAMED_MAX):
            self._machine.groups(self._now).changes.add(group, accounts[first : first + NAMED_MAX], found.append)
            self.answer(self._machine.turn().frames)
        assert found == [group] * len(found), found
        return group

    def send(self) -> list[bytes]:
        """What is measured: until the frame is there to be written, and everything behind it is durable."""
        self._now += 1
        self._machine.write(self._group, Content(Kind.TEXT, self._text), self._now)
        return self._machine.turn().frames

    def send_first(self) -> float:
        """Seconds of CPU of the client until its first message is on its way: sessions, keys, and the message."""
        began = time.thread_time()
        self.answer(self.send())
        taken = time.thread_time() - began
        assert self._sent, "it was not sent"
        return taken

    def answer(self, frames: list[bytes]) -> None:
        """Accept everything, until the client sends nothing more."""
        while frames:
            for frame in frames:
                for item in decode_from_device(frame):
                    if isinstance(item, Look):
                        self.looks += 1
                        self._hear(Devices(item.ref, item.account, *self._lists[item.account]))
                    elif isinstance(item, GroupLook):
                        self._hear(self._chain(item))
                    elif isinstance(item, Ask) and item.ref:
                        self._hear(Answered(item.ref, self._say(item.body)))
            frames = self._machine.turn().frames

    def _hear(self, item: FromServer) -> None:
        self._machine.receive(encode([item]), self._now)

    def _chain(self, look: GroupLook) -> GroupChain:
        """Nothing behind what the client itself has changed."""
        return GroupChain(look.ref, look.group, self._length, self._head, self._length, self._seq, FanOut.WRITE, ())

    def _say(self, body: SaidByDevices) -> Said:
        match body:
            case Published():
                return Stocked(len(body.one_time), len(body.one_time_kem))
            case Listed():
                self._lists[ADA] = body.version, dict.fromkeys(body.devices, 7), body.signed
            case Claimed() | FellowClaimed():
                self.claims += 1
                return _bundle(self._theirs[body.device])
            case GroupMade() | GroupChanged():
                self._head, self._length = head_of(body.blob), self._length + 1
                return GroupHead(self._head, self._length, self._length)
            case GroupSealed():
                self.envelopes += len(body.envelopes)
                return GroupAccepted(body.id, body.tag, self._now, self._seq)
            case GroupSent():
                self._seq += 1
                self._sent.add(body.n)
                return GroupAccepted(body.id, body.tag, self._now, self._seq)
            case _:
                pass
        return Done()


def _bundle(of: DeviceKeys) -> Bundle:
    up = keys.upload(of)
    address = of.address
    return Bundle(address.device, address.registration, up.identity, up.signed, up.one_time_kem[0], up.one_time[0])
