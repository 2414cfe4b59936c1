"""What became of messages to groups: who has them, who has read them, who could not open them.

Knows:   that the server says only where to look again; who has what is a question.
Touches: own messages; the outbox, for what is sealed again.
Never:   seals anything for a device that may not read now; or more often than the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from nightmail.client.errors import ClientError
from nightmail.client.group_errors import change_refused
from nightmail.client.group_events import GroupReceipt
from nightmail.client.machine.context import Context
from nightmail.client.messages import Message, Tick
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.outbox.ticks import Ticks
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.e2ee.identity import Address
from nightmail.model.answers import Said
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.refusals import Refusal
from nightmail.model.roster import GroupReceipts
from nightmail.model.rows import PendingReceipt
from nightmail.model.spans import pairs
from nightmail.model.words import Lane, MessageState, Reason
from nightmail.wire.items import GroupSeenBy, ReceiptsLook

from . import controls
from .audience import GroupAudience
from .group import SeenBy
from .known_groups import KnownGroups
from .sender_keys import SenderKeys
from .waiting import HOUR_MS
from .welcomes import Welcomes

LOOK = "group seen "
"""Errands: numbers that the server said to look at again, until it was asked about them and has answered."""
NUMBERS_MAX = 64
"""Numbers in one question."""
DEVICES_MAX = 1_024
"""Devices whose questions are counted."""
TOLD_MAX = 1_024
"""Messages of which it is known what the person was told last."""

_encode = msgspec.msgpack.Encoder().encode
_numbers = msgspec.msgpack.Decoder(tuple[int, ...]).decode

Seen: TypeAlias = Callable[[SeenBy | ClientError], None]


class SeenByMembers:
    def __init__(
        self, context: Context, sealer: E2eeSealer, outbox: Outbox, ticks: Ticks, known: KnownGroups,
        audience: GroupAudience, keys: SenderKeys, welcomes: Welcomes, log_grew: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        """`log_grew` hears how far the log of a group has come."""
        self._context, self._sealer, self._outbox, self._ticks = context, sealer, outbox, ticks
        self._known, self._audience, self._keys, self._welcomes = known, audience, keys, welcomes
        self._log_grew = log_grew
        self._asked: dict[int, dict[int, Seen | None]] = {}
        """Ref → number → who asked; None: nobody did."""
        self._answered: dict[int, list[int]] = {}
        """Device → when it was answered, within the hour."""
        self._told: dict[str, GroupReceipt] = {}
        """Message → what the person was told last. Two answers may say the same: the server was asked for both."""

    def connected(self) -> None:
        """Ask again what was not answered over the last connection."""
        for name in self._context.store.errands(LOOK):
            group = int(name.removeprefix(LOOK), 16)
            self._ask_again(group, self._to_look_at(group))

    def lost(self) -> None:
        asked, self._asked = self._asked, {}
        for numbers in asked.values():
            for done in filter(None, numbers.values()):
                done(_offline())

    # --- receipts -------------------------------------------------------------------------------

    def take(self, receipt: PendingReceipt) -> None:
        """The server says what became of messages in a group."""
        by, group, lane, device, state, _ = receipt.key
        if not by:
            if state == MessageState.SENT:
                self._log_grew(group, receipt.numbers[-1] if receipt.numbers else 0)
            else:
                self._look_again(group, receipt)
        elif by == self._context.identity.device and state == MessageState.FAILED:
            for low, high in pairs(receipt.numbers):
                for row in self._context.store.numbered(by, group, Lane(lane), low, high):
                    self._failed(group, row.id, device, receipt)

    def _failed(self, group: int, message_id: str, device: int, receipt: PendingReceipt) -> None:
        message = self._context.store.message(message_id)
        address = self._address(group, device)
        if message is None:
            self._keys.lacks(group, device)  # perhaps it was a key
            if receipt.reason is Reason.UNDECRYPTABLE and address is not None:
                self._sealer.renew(device)
                self._keys.hand_on_again(group, address)
        elif receipt.reason is Reason.UNDECRYPTABLE and address is not None:
            self._reseal(message, address)
        else:
            reason = receipt.reason.name.lower()
            self._ticks.place(message, device, Tick.FAILED, receipt.at, reason)

    def _reseal(self, message: Message, address: Address) -> None:
        """Seal a message again for one device that could not open it."""
        if self._ticks.count_reseal(message, address.device):
            self._sealer.renew(address.device)
            self._outbox.reseal_in_group(message, address)
        else:
            self._ticks.place(message, address.device, Tick.FAILED, self._context.now, "undecryptable")

    def _address(self, group: int, device: int) -> Address | None:
        """A device that may read now."""
        return next((each for each in self._audience.addresses(group) if each.device == device), None)

    # --- what others lack -----------------------------------------------------------------------

    def answer(self, group: int, address: Address, wanted: controls.Wanted) -> None:
        """A device of a member lacks something of this one's."""
        if not self._audience.has(group, address) or not self._may_answer(address.device):
            return
        if wanted.welcome:
            self._welcomes.send_to(group, [address])
        chain = self._keys.chain(group)
        if chain is not None and wanted.key_id == chain.key_id:
            self._keys.hand_on_again(group, address)
        for ident in wanted.ids:
            message = self._context.store.message(ident)
            is_ours = message is not None and message.peer == group and message.by == self._context.identity.device
            if message is not None and is_ours and self._ticks.count_reseal(message, address.device):
                self._outbox.reseal_in_group(message, address)

    def _may_answer(self, device: int) -> bool:
        now = self._context.now
        if len(self._answered) >= DEVICES_MAX:
            self._answered.clear()
        times = [at for at in self._answered.get(device, []) if now - HOUR_MS < at <= now]
        if len(times) >= self._context.limits.group_answers:
            return False
        self._answered[device] = [*times, now]
        return True

    # --- questions ------------------------------------------------------------------------------

    def seen_by(self, message: Message, done: Seen) -> None:
        """Ask who has a message, and who has read it."""
        if self._context.online:
            self._ask(message.peer, {message.group_seq: done})
        else:
            done(_offline())

    def _look_again(self, group: int, receipt: PendingReceipt) -> None:
        """More members have, or have read, some of these. The newest are asked for."""
        newest: list[int] = []
        for low, high in reversed(list(pairs(receipt.numbers))):
            newest += range(high, max(low, high - NUMBERS_MAX + len(newest) + 1) - 1, -1)
        numbers = {number for number in newest[:NUMBERS_MAX] if self._is_own(group, number) is not False}
        self._put_to_look_at(group, {*self._to_look_at(group), *numbers})
        self._ask_again(group, numbers)

    def numbered(self, group: int, number: int) -> None:
        """An own message has got its number. Receipts may have been there before the answer that said it."""
        if number in self._to_look_at(group):
            self._ask_again(group, {number})

    def _ask_again(self, group: int, numbers: Iterable[int]) -> None:
        own = [number for number in numbers if self._is_own(group, number)]
        if own and self._context.online:
            self._ask(group, dict.fromkeys(own))

    def _is_own(self, group: int, number: int) -> bool | None:
        """Whether the message with this number is an own one; None: no message is known by it yet."""
        found = self._context.store.numbered(group << DEVICE_BITS, group, Lane.NORMAL, number, number)
        message = self._context.store.message(found[0].id) if found else None
        return message.own if message is not None else None if not found else False

    def _to_look_at(self, group: int) -> tuple[int, ...]:
        found = self._context.store.errand(f"{LOOK}{group:013x}")
        return _numbers(found) if found else ()

    def _put_to_look_at(self, group: int, numbers: set[int]) -> None:
        name = f"{LOOK}{group:013x}"
        if numbers:
            self._context.store.put_errand(name, _encode(sorted(numbers)[-NUMBERS_MAX:]))
        else:
            self._context.store.drop_errand(name)

    def _looked_at(self, group: int, numbers: Iterable[int]) -> None:
        """These were answered. What changed meanwhile was asked for once more, and waits for that answer."""
        waiting = {number for asked in self._asked.values() for number in asked}
        if before := self._to_look_at(group):
            self._put_to_look_at(group, {*before} - {*numbers} | {*before} & waiting)

    def _ask(self, group: int, numbers: dict[int, Seen | None]) -> None:
        asked = tuple(sorted(numbers))
        ref = self._context.ask_item(
            lambda ref: ReceiptsLook(ref, group, asked), partial(self._refused, group, numbers)
        )
        self._asked[ref] = numbers

    def _refused(self, group: int, numbers: dict[int, Seen | None], said: Said) -> None:
        self._asked = {ref: asked for ref, asked in self._asked.items() if asked is not numbers}
        if not isinstance(said, Refusal) or not said.retry:
            self._looked_at(group, numbers)
        for done in numbers.values():
            if done is not None:
                word, sentence = (said.word, said.sentence) if isinstance(said, Refusal) else ("unexpected", "")
                done(change_refused(word, sentence))

    def take_seen(self, item: GroupSeenBy) -> None:
        self._context.forget_ref(item.ref)
        numbers = self._asked.pop(item.ref, {})
        states = dict(item.states)
        for number, done in numbers.items():
            seen = _seen(item.receipts, states.get(number, ()))
            self._note(item.group, number, seen)
            if done is not None:
                done(seen)
        self._looked_at(item.group, numbers)

    def _note(self, group: int, number: int, seen: SeenBy) -> None:
        found = self._context.store.numbered(group << DEVICE_BITS, group, Lane.NORMAL, number, number)
        message = self._context.store.message(found[0].id) if found else None
        if message is None or not message.own:
            return
        state = Tick.READ if seen.read else Tick.DELIVERED if seen.delivered else Tick.SENT
        if message.is_erased and state is not Tick.SENT:
            self._context.store.drop_message(message.id)  # only its fate was left, and it arrived
        elif message.state is not Tick.FAILED and state > message.state:
            self._context.store.put_message(replace(message, state=state))
        row = self._known.row(group)
        name = row.name if row else ""
        self._tell(GroupReceipt(group, name, message.id, seen.delivered, seen.read, seen.of))

    def _tell(self, receipt: GroupReceipt) -> None:
        if self._told.get(receipt.message_id) == receipt:
            return
        if len(self._told) >= TOLD_MAX:
            self._told.clear()
        self._told[receipt.message_id] = receipt
        self._context.tell(receipt)


def _offline() -> ClientError:
    return change_refused("offline", "who has a message is asked of the server, which is not connected")


def _seen(receipts: GroupReceipts, states: Sequence[tuple[int, MessageState]]) -> SeenBy:
    if receipts is GroupReceipts.NONE:
        return SeenBy(0, 0, 0, {})
    members = dict(states)
    delivered = sum(state in (MessageState.DELIVERED, MessageState.READ) for state in members.values())
    return SeenBy(delivered, sum(s is MessageState.READ for s in members.values()), len(members), members)
