"""A loop on ports in memory that answer when a test says so, and two people who write to each other.

Knows:   what was handed to each port, and when it was answered.
Never:   decides anything by itself: what is not held is answered at once, and well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from nightmail.core.mailbox import needs_offer, offer
from nightmail.core.state import ShardState, encode_row
from nightmail.engine.forwarder import Forwarder
from nightmail.engine.loop import Loop, LoopLimits
from nightmail.engine.memory import MemoryLog, MemoryRows
from nightmail.engine.ports import Checkpoint, Failed, Found, Need, Overtaken, Stored
from nightmail.engine.saver import SaverLimits
from nightmail.engine.watcher import Watcher
from nightmail.model.answers import Said
from nightmail.model.clock import ClockSeen
from nightmail.model.effects import Answer, Effect
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.letter_rows import DeadLetter
from nightmail.model.records import AnyBody, Envelope, Record, Registered, Sent
from nightmail.model.rows import Gap, Kept, RowKey
from nightmail.model.words import Kind, Lane, Platform
from sim.judges.strict import StrictState

SELDOM = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
"""No checkpoint is taken unless a test asks for one."""

START = 1_700_000_000_000
"""When every story begins: a whole second."""
ALICE, BOB = account_id("alice"), account_id("bob")
PHONE, TABLET = device_id(ALICE, 1), device_id(BOB, 1)
"""Alice's one device, and Bob's."""


def a_person(handle: str) -> Registered:
    return Registered(account_id(handle), handle, 101, handle.encode().ljust(32, b"."), "phone", Platform.CLI)


def a_message(n: int = 1, *, text: str = "hello", by: int = PHONE, to: int = BOB, life_ms: int = 0) -> Sent:
    """The `n`-th message from one device to the other account's first device."""
    device = device_id(to, 1)
    return Sent(
        to=to,
        lane=Lane.NORMAL,
        n=n,
        floor=1,
        seen=0,
        id=f"{by:x}:{START}:{n:05d}:x",
        tag=text.encode().ljust(16, b".")[:16],
        kind=Kind.TEXT,
        of=None,
        life_ms=life_ms,
        list_version=1,
        envelopes=(Envelope(device, 101, text.encode()),),
        own_envelopes=(),
    )


class HeldLog:
    """A `Log`. While it `holds`, an append is answered only by `succeed` or `fail`."""

    def __init__(self) -> None:
        self.stored = MemoryLog()
        self.holds = self.tight = False
        self.is_full = True
        self.held: tuple[int, Sequence[bytes], Callable[[int | None], None]] | None = None
        self.batch_bytes_max, self.span = 1 << 40, 1
        self.batches: list[tuple[int, list[bytes]]] = []
        """(at, records) of every append asked for."""
        self.trims: list[tuple[int, int]] = []

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        assert self.held is None, "one append is under way at a time"
        self.batches.append((at, list(records)))
        self.held = at, records, done
        if not self.holds:
            self.succeed()

    def succeed(self) -> None:
        """It is durable."""
        at, records, done = self._taken()
        self.stored.append(at, records, done)

    def fail(self, *, kept: bool = False) -> None:
        """Nobody knows; a replay finds it only if it is `kept`."""
        at, records, done = self._taken()
        if kept:
            self.stored.append(at, records, lambda _: None)
        done(None)

    def _taken(self) -> tuple[int, Sequence[bytes], Callable[[int | None], None]]:
        held, self.held = self.held, None
        assert held is not None, "no append is under way"
        return held

    @property
    def last(self) -> int:
        return self.stored.last

    def replay(self, after: int) -> Iterator[Stored]:
        return self.stored.replay(after)

    def trim(self, upto: int, now: int) -> None:
        self.trims.append((upto, now))
        self.stored.trim(upto, now)

    def close(self) -> None: ...


class HeldRows(MemoryRows):
    """`Rows`. While it holds loads or saves, they wait for `answer_load` and `answer_save`."""

    def __init__(self) -> None:
        super().__init__()
        self.holds_loads = self.holds_saves = False
        self.loads: deque[tuple[Sequence[Need], Callable[[Found | Overtaken | Failed], None]]] = deque()
        self.saves: deque[tuple[Checkpoint, Callable[[Overtaken | Failed | None], None]]] = deque()
        self.loaded: list[Sequence[Need]] = []
        self.given: list[Checkpoint] = []
        """Every checkpoint, as often as it was given."""
        self.forgotten: list[int] = []

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        self.loaded.append(needs)
        self.loads.append((needs, done))
        if not self.holds_loads:
            self.answer_load()

    def answer_load(self, instead: Overtaken | Failed | None = None) -> None:
        needs, done = self.loads.popleft()
        if instead is None:
            super().load(needs, done)
        else:
            done(instead)

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        self.given.append(checkpoint)
        self.saves.append((checkpoint, done))
        if not self.holds_saves:
            self.answer_save()

    def answer_save(self, instead: Overtaken | Failed | None = None, *, kept: bool = False) -> None:
        checkpoint, done = self.saves.popleft()
        if instead is None:
            super().save(checkpoint, done)
            return
        if kept:
            super().save(checkpoint, lambda _: None)
        done(instead)

    def forget(self, before: int) -> None:
        self.forgotten.append(before)
        super().forget(before)


class Rig(Watcher):
    """A loop, what it says, and hands to drive it with."""

    def __init__(
        self,
        log: HeldLog | None = None,
        rows: HeldRows | None = None,
        *,
        limits: LoopLimits | None = None,
        forwarder: Forwarder | None = None,
        new_state: Callable[[], ShardState] = StrictState,
        lingers: bool = False,
        clock: int = START,
        folder_ms: int = 0,
    ) -> None:
        self.log, self.rows = log or HeldLog(), rows or HeldRows()
        self.clock, self.pace = clock, 0
        self.effects: list[Effect] = []
        self.poisoned: list[tuple[int, str]] = []
        self.troubles: list[str] = []
        self.seen: list[ClockSeen] = []
        """What was thought of the wall clock, whenever that changed."""
        self.saved: list[Checkpoint] = []
        self.repeated = 0
        """Retries that were answered from memory."""
        self.meanwhile: Callable[[], None] = lambda: None
        """Called whenever effects are handed out."""
        self.lingering: list[Callable[[], None]] = []
        """What is to be called back."""
        self._via = 0
        self.loop = Loop(
            self.log, self.rows, lambda: self.clock, self._on_effects,
            new_state=new_state, forwarder=forwarder, pace=lambda: self.pace,
            later=(lambda _ms, callback: self.lingering.append(callback)) if lingers else None,
            limits=limits, watcher=self, folder_ms=folder_ms,
        )  # fmt: skip

    def _on_effects(self, effects: Sequence[Effect]) -> None:
        self.effects += effects
        self.meanwhile()

    def on_poison(self, offset: int, error: Exception) -> None:
        self.poisoned.append((offset, str(error)))

    def on_trouble(self, why: str) -> None:
        self.troubles.append(why)

    def on_clock(self, seen: ClockSeen) -> None:
        self.seen.append(seen)

    def on_repeated(self) -> None:
        self.repeated += 1

    def on_saved(self, checkpoint: Checkpoint) -> None:
        self.saved.append(checkpoint)

    # --- saying -------------------------------------------------------------------------------

    def submit(self, by: int, body: AnyBody) -> int:
        """The address that the answer will come to."""
        self._via += 1
        self.loop.submit(Record(by, self._via, body))
        return self._via

    def say(self, by: int, body: AnyBody) -> int:
        via = self.submit(by, body)
        self.loop.flush()
        return via

    def say_together(self, by: int, *bodies: AnyBody) -> list[int]:
        """What comes in one frame."""
        first = self._via + 1
        self._via += len(bodies)
        self.loop.submit_all([Record(by, via, body) for via, body in enumerate(bodies, first)])
        self.loop.flush()
        return list(range(first, self._via + 1))

    def wait(self, ms: int) -> None:
        """Let time pass, and the loop see it."""
        self.clock += ms
        self.pace += ms
        self.loop.tick()

    # --- looking ------------------------------------------------------------------------------

    def answers(self, via: int) -> list[Said]:
        return [effect.said for effect in self.effects if isinstance(effect, Answer) and effect.via == via]

    def texts(self, device: int = TABLET, lane: Lane = Lane.NORMAL) -> list[str]:
        """What the device would be handed, read as a session reads it."""
        found: list[str] = []

        def look(state: ShardState) -> None:
            items = offer(state, device, lane, 0, 1_000)
            found.extend("gap" if isinstance(item, Gap) else item[1].ciphertext.decode() for item in items)

        self.loop.read(lambda state: needs_offer(state, device, lane, 0, 1_000), look)
        return found

    def letter(self, offset: int) -> DeadLetter | None:
        found: list[DeadLetter | None] = []
        key = RowKey(Kept.DEAD_LETTER, offset)
        self.loop.read(
            lambda state: () if offset in state.dead_letters else (key,),
            lambda state: found.append(state.dead_letters[offset]),
        )
        (letter,) = found
        return letter

    def everything(self) -> dict[object, bytes]:
        """Every row and entry, whether it is in memory or only saved."""
        state = self.loop.state
        found: dict[object, bytes] = {**self.rows.rows, **self.rows.entries}
        for key, _, row in state.changed_rows():
            found.pop(key, None)
            if row is not None:
                found[key] = encode_row(row)
        for queue, entries in state.entries.items():
            found |= {(queue, seq): encode_row(entry) for seq, entry in entries.items()}
        gone = {(queue, seq) for queue, upto in state.cleared.items() for seq in range(upto + 1)} | set(state.dropped)
        return {key: data for key, data in found.items() if key not in gone}


def started(limits: LoopLimits | None = None, *, forwarder: Forwarder | None = None, lingers: bool = False) -> Rig:
    """Alice and Bob have joined, and nothing of that is worth looking at any more."""
    rig = Rig(limits=limits, forwarder=forwarder, lingers=lingers)
    rig.loop.recover()
    rig.submit(SERVER, a_person("alice"))
    rig.submit(SERVER, a_person("bob"))
    rig.loop.flush()
    rig.effects.clear()
    rig.log.batches.clear()
    return rig


def restarted(rig: Rig, *, announce_after: int | None = None, ahead_ms: int = 0, folder_ms: int = 0) -> Rig:
    """Another process on the same log and rows; with a clock that is `ahead_ms` ahead of the one before."""
    again = Rig(rig.log, rig.rows, limits=rig.loop.limits, clock=rig.clock + ahead_ms, folder_ms=folder_ms)
    again.pace = rig.pace
    again.loop.recover(announce_after)
    return again
