"""A world in which messages can be scheduled: what honest clients say, and what became of it."""

from __future__ import annotations

from nightmail.core.letters.seen import LetterSeen, letter_seen, needs_letter
from nightmail.core.schedules import reading
from nightmail.core.state import NEWEST_FOLD
from nightmail.model.answers import Said
from nightmail.model.effects import Call
from nightmail.model.ids import SERVER, account_of
from nightmail.model.letter_rows import DeadLetter
from nightmail.model.records import (
    AnyBody,
    CallEnded,
    CallOutcome,
    CallScheduled,
    FoldRaised,
    Record,
    Resealed,
    ScheduleCancelled,
    Scheduled,
    encode_record,
)
from nightmail.model.rows import Kept
from nightmail.model.schedule_rows import (
    Content,
    GroupContent,
    GroupTarget,
    PairContent,
    PairTarget,
    Schedule,
    ScheduleState,
)
from nightmail.model.words import Kind
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import Memory, Person, seal

URL = "https://example.com/hook"
CALL_ID = "1001:1700000000000:00001:hook"


def call_id(name: str) -> str:
    return ScheduleWorld.id(0x1001, name)


class ScheduleWorld(GroupWorld):
    def __init__(self, shards: int = 1, memory: Memory = Memory.KEEPS, fold: int = NEWEST_FOLD) -> None:
        super().__init__(shards, memory, fold)

    # --- saying -------------------------------------------------------------------------------

    def content(self, by: int, to: Person, text: str) -> PairContent:
        account = self.account(to)
        own = self.of(account_of(by)).row(Kept.ACCOUNT, account_of(by))
        own_envelopes = () if account_of(by) == to.account else seal(own.listed, by, text)
        return PairContent(account.list_version, seal(account.listed, by, text), own_envelopes)

    def scheduled(
        self, by: int, to: Person, in_ms: int, text: str = "later", name: str = "a", life_ms: int = 0
    ) -> Scheduled:
        tag = text.encode().ljust(16, b".")
        content = self.content(by, to, text)
        return Scheduled(
            self.id(by, name), tag, Kind.TEXT, life_ms, self.now + in_ms, PairTarget(to.account), content
        )  # fmt: skip

    def schedule(self, by: int, to: Person, in_ms: int, text: str = "later", name: str = "a") -> Said | None:
        return self.do(by, self.scheduled(by, to, in_ms, text, name))

    def reseal(self, by: int, to: Person, text: str = "later", name: str = "a", maker: int = 0) -> Said | None:
        return self.do(by, Resealed(self.id(maker or by, name), self.content(by, to, text)))

    def cancel(self, by: int, name: str = "a", maker: int = 0) -> Said | None:
        return self.do(by, ScheduleCancelled(account_of(by), self.id(maker or by, name)))

    def group_content(self, group: int = GROUP, text: str = "later") -> GroupContent:
        head = self.group(group)
        return GroupContent(head.epoch, head.head, text.encode()) if head else GroupContent(0, bytes(32), b"")

    def group_resealed(self, by: int, name: str = "a", group: int = GROUP) -> Resealed:
        return Resealed(self.id(by, name), self.group_content(group, "again"))

    def group_scheduled(self, by: int, in_ms: int, group: int = GROUP, name: str = "a") -> Scheduled:
        target, content = GroupTarget(group), self.group_content(group)
        return Scheduled(self.id(by, name), b"later".ljust(16), Kind.TEXT, 0, self.now + in_ms, target, content)

    def schedule_call(
        self, who: Person, in_ms: int, *, name: str = CALL_ID, key: str = "", content: bytes = b"{}"
    ) -> Said | None:
        tag = content.ljust(16, b".")[:16]
        body = CallScheduled(
            who.account, name, key, tag, self.now + in_ms, URL, "application/json", content
        )  # fmt: skip
        return self.do(SERVER, body)

    def end_call(
        self, call: Call, outcome: CallOutcome, error: str = "", *, attempt: int = 0, retry_after_ms: int = 0
    ) -> Said | None:
        ended = CallEnded(call.account, call.serial, attempt or call.attempt, outcome, error, retry_after_ms)
        return self.do(SERVER, ended)

    def command(self, who: Person, body: AnyBody) -> Said:
        """What an operator says to the shard of a person."""
        (answer,) = self.fold(self.of(who.account), Record(SERVER, 1, body))
        while self.forwards:
            self.hear(*self.forwards.popleft())
        return answer.said

    def bury(self, by: int, to: Person, body: AnyBody, error: str = "ValueError in Sent") -> tuple[int, Said]:
        """A record that the fold could not take: the offset of its letter, and its answer."""
        node, record = self.of(to.account), Record(by, 7, body)
        (effect,) = node.bury(self.now, encode_record(record), error, record)
        return node.offset, effect.said  # type: ignore[union-attr]

    @staticmethod
    def id(by: int, name: str) -> str:
        sequence = int.from_bytes(name.encode(), "big") % 10**12
        return f"{by:x}:1700000000000:{sequence:05d}:{name}"

    # --- looking ------------------------------------------------------------------------------

    def row(self, who: Person, serial: int = 1) -> Schedule | None:
        return self.of(who.account).row(Kept.SCHEDULE, who.account, serial)

    def state(self, who: Person, serial: int = 1) -> ScheduleState:
        row = self.row(who, serial)
        assert row is not None
        return row.state

    def kept_content(self, who: Person, serial: int = 1) -> Content | None:
        row = self.row(who, serial)
        assert row is not None
        return row.content

    def calls(self) -> list[Call]:
        """What the last record, or time, asked to be called."""
        return [effect for effect in self.effects if isinstance(effect, Call)]

    def listing(self, who: Person, wanted: ScheduleState | None = None, before: int = 0) -> reading.ScheduleListing:
        node = self.of(who.account)
        node.load(lambda state: reading.needs_listing(state, who.account, wanted, before))
        return reading.listing(node.state, who.account, wanted, before)

    def one(self, who: Person, ident: str) -> reading.ScheduleSeen | None:
        node = self.of(who.account)
        node.load(lambda state: reading.needs_one(state, who.account, ident))
        return reading.one(node.state, who.account, ident)

    def letter(self, who: Person, offset: int) -> LetterSeen | None:
        node = self.of(who.account)
        node.load(lambda state: needs_letter(state, offset))
        return letter_seen(node.state, offset)

    def letter_row(self, home: int, offset: int) -> DeadLetter:
        row = self.of(home).row(Kept.DEAD_LETTER, offset)
        assert row is not None
        return row

    def raise_fold(self, version: int) -> None:
        """By a newer program, everywhere where somebody is."""
        for node in self.nodes.values():
            node.state.newest_fold = version
            self.fold(node, Record(SERVER, 0, FoldRaised(version)))

    def news(self, device: int) -> list[int]:
        """The serials that a device was told to look at again, as intervals."""
        found = [receipt.numbers for receipt in self.receipts(device) if not receipt.key[0]]
        return found[0] if found else []
