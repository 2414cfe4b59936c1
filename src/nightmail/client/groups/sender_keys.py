"""This device's own chain in each group: made, handed on before it is used, and replaced when a holder has left.

Knows:   who holds the chain, or may.
Touches: own chains and their holders; the outbox, for the envelopes that hand a chain on.
Never:   lets the server's word decide that a chain may go on: it compares its holders with the signed lists.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.outbox.streams import Streams
from nightmail.client.store.group_rows import Holder
from nightmail.client.store.rows import Outgoing
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.client.trust.sealer import Then
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.groups.sender_keys import (
    SenderChain,
    decode_handed,
    hand_on,
    key_id_of,
    left_holders,
    make_chain,
    renewal,
)
from nightmail.e2ee.identity import Address
from nightmail.e2ee.state import decode_sender_chain, encode_sender_chain
from nightmail.model.words import Lane

from . import controls
from .audience import GroupAudience
from .known_groups import KnownGroups

UNREADY_MS = 60_000
"""So long a device whose keys could not be had is left out: it asks for what it lacks."""
TRIES_MAX = 3
"""How often one chain is handed to one device."""


class SenderKeys:
    def __init__(
        self, context: Context, sealer: E2eeSealer, streams: Streams, outbox: Outbox, known: KnownGroups,
        audience: GroupAudience,
    ) -> None:  # fmt: skip
        self._context, self._sealer, self._streams, self._outbox = context, sealer, streams, outbox
        self._known, self._audience = known, audience
        self._unready: dict[int, int] = {}
        """Device → until when nobody waits for its keys."""
        self._awaited: dict[int, set[int]] = {}
        """Group → devices whose keys were asked for. The stream goes on when the last of them are here."""
        self._awaited_for: dict[int, tuple[bytes, object]] = {}
        """Group → chain and version of the audience for which they were asked for."""
        self._settled: dict[int, tuple[bytes, object]] = {}
        """Group → chain and version of the audience for which everybody was found to hold it, and nobody else."""

    def lost(self) -> None:
        self._unready.clear()
        self._awaited.clear()
        self._awaited_for.clear()

    def chain(self, group: int) -> SenderChain | None:
        state = self._context.store.sender_chain(group)
        return decode_sender_chain(state) if state else None

    def put(self, chain: SenderChain) -> None:
        self._context.store.put_sender_chain(chain.group, encode_sender_chain(chain))

    def drop(self, group: int) -> None:
        """The next message needs another chain: this account has left, or the store was put back from a copy."""
        if self._context.store.sender_chain(group) is not None:
            self._context.store.drop_sender_chain(group)
        self._settled.pop(group, None)

    # --- before a message is sealed -------------------------------------------------------------

    def are_handed_on(self, group: int, before: int | None, then: Then) -> bool:
        """Whether every device that may read has the chain, or gets it, before the number `before` of the high lane if
        that is not None. If keys of devices must come first, `then` is called when they are here."""
        chain = self._present(group)
        wanted_for = chain.key_id, self._audience.version(group)
        if self._awaited.get(group) and self._awaited_for.get(group) == wanted_for:
            return False  # everything else that goes to the group asks, too, while a thousand keys are on their way
        self._awaited_for[group] = wanted_for
        missing = self._missing(group, chain)
        awaited = self._awaited[group] = set[int]()
        for device, registration in sorted(missing):
            awaited.add(device)
            if self._sealer.ready_in_group(
                group, {device: registration}, (self, group, device), partial(self._arrived, group, device, then),
                partial(self._give_up, group, device, then),
            ):  # fmt: skip
                awaited.discard(device)
        if awaited:
            return False
        self._hand_on(chain, sorted(missing), before)
        return True

    def _present(self, group: int) -> SenderChain:
        """The chain that seals the next message: another one, if a device that holds it may not read on."""
        chain, context = self.chain(group), self._context
        left, _ = self._compare(group, chain)
        if chain is None or renewal(chain, left, False, context.now) is not None:
            row = self._known.row(group)
            assert row is not None
            self.drop(group)
            own = self._sealer.key_stock.keys.address
            chain = make_chain(own, group, row.genesis, context.secrets, context.now)
            self.put(chain)
        return chain

    def _missing(self, group: int, chain: SenderChain | None) -> set[Address]:
        """Devices that are to be handed the chain, except those whose keys could not be had just now."""
        _, wanted = self._compare(group, chain)
        return {each for each in wanted if self._unready.get(each.device, 0) <= self._context.now}

    def _compare(self, group: int, chain: SenderChain | None) -> tuple[list[Address], frozenset[Address]]:
        """Devices that hold the chain and may not read on; and those that may read and do not hold it.

        A group may have thousands: once there are none of either, nobody is looked at before something changes.
        """
        version = self._audience.version(group)
        if chain is not None and self._settled.get(group) == (chain.key_id, version):
            return [], frozenset()
        rows = self._context.store.holders(group)
        held = {Address(row.device, row.registration) for row in rows if not row.lacks or row.tries >= TRIES_MAX}
        holders = [Address(row.device, row.registration) for row in rows]
        left = left_holders(holders, self._audience.addresses(group))
        wanted = self._audience.at_server(group) - held
        if chain is not None and not left and not wanted:
            self._settled[group] = chain.key_id, version
        return left, wanted

    def _arrived(self, group: int, device: int, then: Then) -> None:
        awaited = self._awaited.get(group, set())
        awaited.discard(device)
        if not awaited:
            then()

    def _give_up(self, group: int, device: int, then: Then) -> None:
        self._unready[device] = self._context.now + UNREADY_MS
        self._arrived(group, device, then)

    def _hand_on(self, chain: SenderChain, to: list[Address], before: int | None) -> None:
        """Let these devices have the chain as it stands. They count as holders from here on: they may get it."""
        if not to:
            return
        self._settled.pop(chain.group, None)
        known = {(row.device, row.registration): row for row in self._context.store.holders(chain.group)}
        for address in to:
            tries = known[address].tries + 1 if address in known else 1
            self._context.store.put_holder(chain.group, Holder(*address, tries=tries))
        self._outbox.seal_in_group(chain.group, controls.key(hand_on(chain)), to, before)

    def hand_on_again(self, group: int, address: Address) -> None:
        """A device does not have the chain. It gets it as it stands, if it may read, and not too often."""
        chain = self.chain(group)
        tries = {(row.device, row.registration): row.tries for row in self._context.store.holders(group)}
        if chain is not None and self._audience.has(group, address) and tries.get(address, 0) < TRIES_MAX:
            self._hand_on(chain, [address], None)

    # --- what became of it ----------------------------------------------------------------------

    def is_current(self, row: Outgoing) -> bool:
        """Whether a row that hands on a chain hands on the present one."""
        chain = self.chain(row.to)
        return chain is not None and handed_in(row) == chain.key_id

    def failed(self, row: Outgoing, address: Address) -> None:
        """A device did not get what was sealed for it, or could not open it."""
        if self.is_current(row):
            self.lacks(row.to, address.device)

    def lacks(self, group: int, device: int) -> None:
        """A device does not have the present chain. It still counts as a holder: the server may lie."""
        self._settled.pop(group, None)
        for holder in self._context.store.holders(group):
            if holder.device == device and not holder.lacks:
                self._context.store.put_holder(group, replace(holder, lacks=True))

    def is_held_by_all(self, group: int) -> bool:
        """Whether the present chain may seal, and nobody lacks it."""
        chain = self.chain(group)
        left, _ = self._compare(group, chain)
        return renewal(chain, left, False, self._context.now) is None and not self._missing(group, chain)

    def hands_on(self, row: Outgoing) -> bool:
        return bool(handed_in(row))

    def is_under_way(self, group: int) -> bool:
        """Whether the server has not taken all envelopes that hand on the present chain."""
        stream = self._streams.of(group, Lane.HIGH)
        return any(not row.void and row.targets and handed_in(row) for row in stream.rows.values())


def handed_in(row: Outgoing) -> bytes:
    """The key id of the chain that a row hands on; empty: it hands on none."""
    try:
        content = decode_content(row.content) if row.content else None
        if content is None or content.control != controls.Control.GROUP_KEY:
            return b""
        return key_id_of(decode_handed(content.data or b"").verify)
    except Rejected:
        return b""
