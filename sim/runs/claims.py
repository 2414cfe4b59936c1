"""Many claim keys of a few devices, while the power goes at any moment: no key is ever given twice.

    python -m sim.runs.claims --claims 1000000
    python -m sim.runs.claims --claims 2000 --seed S          one case, as a failure prints it

64 requesters race for the keys of 8 devices that publish more when they run low. The real loop, log
and rows stand on one simulated disk whose power is cut, or whose process is killed, at random
operations, also during recovery. Answers are lost, and a device that lost one asks again.

Knows:   whose each key is; and a model of what each request must be answered, written a second time.
Touches: a simulated disk.
Never:   depends on anything but its seed. What is durable is a prefix of what was submitted, so after
         a crash everything unanswered is said again in the same order, and the model need not guess.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from random import Random

import apsw
from msgspec import Struct

from nightmail.core.state import ShardState
from nightmail.engine.filelog import FileLog
from nightmail.engine.loop import Loop, LoopLimits
from nightmail.engine.saver import SaverLimits
from nightmail.engine.sqlite import SqliteRows, SqliteSettings
from nightmail.model.answers import Bundle, Joined, Said, Stocked
from nightmail.model.effects import Answer, Effect, Low
from nightmail.model.forms import LAST_RESORT, kem_id, key_id
from nightmail.model.ids import SERVER, account_id, account_of, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.records import AnyBody, Claimed, LimitsSet, Published, Record, Registered
from nightmail.model.refusals import IdentityFixed, RateLimited
from nightmail.model.rows import Kept, RowKey
from nightmail.model.words import Platform
from sim.faults.disk import Disk, Killed, PowerCut
from sim.faults.disk_vfs import DiskVfs
from sim.judges.strict import StrictState, strictly
from sim.world.world import PYTHON

FOLDER = "data"
REQUESTERS, DEVICES = 64, 8
LIMITS = FoldLimits(stock_one_time=60, stock_kem=40, low_one_time=20, low_kem=5)
LOOP = LoopLimits(linger_ms=0, saver=SaverLimits(checkpoint_ms=10**12))
ROWS = SqliteSettings(cache_kib=256, wal_pages=256)
ROUND_MS = 10_000
"""Between two rounds: nobody claims too fast who does not mean to."""
YOUNG = 24
"""Of its device's newest claims: such a request is still remembered, however the round ends."""
OLD = LIMITS.claims_kept + 40
"""A request that this many came after is forgotten for certain."""
CASE_CLAIMS = 20_000
TELL_S = 1.0


class Broken(AssertionError):
    """A promise was not kept."""


def inline(job: Callable[[], None]) -> None:
    job()


# --- what must be so --------------------------------------------------------------------------


class Stock:
    """What one device has, by the ids alone: written again, as plainly as can be."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.next_id = 1
        self.ids: list[int] = []
        self.kem_ids: list[int] = []
        self.claims: dict[tuple[int, int], tuple[int, int]] = {}
        self.asked: list[tuple[int, int]] = []
        """Recent requests, oldest first."""
        self.low = True
        self.uploads: deque[Published] = deque(maxlen=4)

    def upload(self, count: int, kem_count: int) -> Published:
        first, self.next_id = self.next_id, self.next_id + max(count, kem_count)
        self.ids = [*self.ids, *range(first, first + count)][-LIMITS.stock_one_time :]
        self.kem_ids = [*self.kem_ids, *range(first, first + kem_count)][-LIMITS.stock_kem :]
        self.low = self._is_low
        self.uploads.append(keys_of(self.device, range(first, first + count), range(first, first + kem_count)))
        return self.uploads[-1]

    def claim(self, key: tuple[int, int]) -> tuple[int, int]:
        """Ids of the keys that this request must get; 0: none is left."""
        if key in self.claims:
            return self.claims[key]
        got = self.claims[key] = (self.ids.pop(0) if self.ids else 0, self.kem_ids.pop(0) if self.kem_ids else 0)
        if len(self.claims) > LIMITS.claims_kept:
            del self.claims[next(iter(self.claims))]
        self.asked.append(key)
        if len(self.asked) > 4 * OLD:
            del self.asked[: 2 * OLD]
        self.low = self._is_low
        return got

    @property
    def _is_low(self) -> bool:
        return len(self.ids) < LIMITS.low_one_time or len(self.kem_ids) < LIMITS.low_kem


def keys_of(device: int, ids: Sequence[int], kem_ids: Sequence[int], identity: bytes = b"identity") -> Published:
    """Cut short: what is in a key is nobody's business here."""
    whose = device.to_bytes(8, "big")
    return Published(
        7, identity + whose, b"\0\0\0\1" + whose, b"\1\0\0\0\1" + whose,
        tuple(key.to_bytes(4, "big") + whose for key in ids),
        tuple(b"\0" + key.to_bytes(4, "big") + whose for key in kem_ids),
    )  # fmt: skip


class Owners:
    """Who has each key. One number per key, so that millions fit."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, bool], array[int]] = {}

    def give(self, device: int, kem: bool, key: int, who: int) -> None:
        owners = self._of.setdefault((device, kem), array("Q"))
        if key >= len(owners):
            owners.extend([0] * (key + 1_024 - len(owners)))
        if owners[key] not in (0, who):
            kind = "KEM key" if kem else "key"
            raise Broken(f"{kind} {key} of {device:x} was given to request {owners[key]:x} and to {who:x}")
        owners[key] = who


class Op(Struct):
    """Something that was submitted, and what must come back."""

    by: int
    body: AnyBody
    expected: tuple[int, int] | Stocked | type[Said]
    again: bool = False
    """Said again after a crash: how much is in stock then is not how much was."""


# --- one case ---------------------------------------------------------------------------------


class Case:
    """One folder, through as many lives as it takes."""

    def __init__(self, vfs: DiskVfs, seed: int, claims: int, *, watched: bool = False) -> None:
        self._chance = Random(seed)
        self._claims, self._watched = claims, watched
        self.seen: Counter[str] = Counter()
        self._left = 0
        self._kills = False
        self._disk = Disk(self._chance, self._before)
        self._vfs = vfs
        vfs.disk, vfs.chance = self._disk, self._chance
        apsw.randomness(0)  # SQLite asks for a new seed, and gets it from this case
        self._now = 1_700_000_000_000
        self._loop: Loop | None = None
        self._log: FileLog | None = None
        self._rows: SqliteRows | None = None
        self._ops: dict[int, Op] = {}
        """Answer address → what is not answered yet, in the order in which it was submitted."""
        self._jobs: deque[Callable[[], None]] = deque()
        """A checkpoint that is being saved, while claims go on."""
        self._via = 0
        self._lows: set[int] = set()
        self._owners = Owners()
        people = [f"requester {n}" for n in range(REQUESTERS + 1)]
        self._requesters = [device_id(account_id(handle), 1) for handle in people[:-1]]
        self._greedy = device_id(account_id(people[-1]), 1)
        self._numbers = {by: n for n, by in enumerate((*self._requesters, self._greedy), 1)}
        self._people = [*people, *(f"holder {n}" for n in range(DEVICES))]
        self._stocks = [Stock(device_id(account_id(handle), 1)) for handle in self._people[-DEVICES:]]
        self._requests: Counter[int] = Counter()
        self._rounds = 0
        self._look_later = False

    def run(self) -> None:
        self._boot()
        for handle in self._people:
            token = handle.encode().ljust(32)
            self._submit(SERVER, Registered(account_id(handle), handle, 7, token, "phone", Platform.CLI), Joined)
        self._settle()
        while self.seen["claims"] < self._claims:
            self._round()
        self._left = 0
        self._look()
        self._close()

    def _round(self) -> None:
        """What is said at the same time; what is lost of it is said again."""
        self._now += ROUND_MS
        self._rounds += 1
        self._lows.clear()
        was_low = {stock.device for stock in self._stocks if stock.low}
        crashes = self.seen["crashes"]
        for _ in range(self._chance.randrange(1, 60)):
            self._say_something()
        if self._rounds % 40 == 0:
            self._be_greedy()
        self._settle()
        if crashes == self.seen["crashes"]:
            # Told while nobody crashed: exactly those that have just become low, whatever they did since.
            now_low = {stock.device for stock in self._stocks if stock.low}
            if not now_low - was_low <= self._lows:
                raise Broken(f"few keys are left of {now_low - was_low}, and who was told is {self._lows}")
        if self._chance.random() < 0.03:
            self.seen["checkpoints"] += 1
            self._guarded(lambda: self._running.save(at_once=True))
        if self._jobs and self._chance.random() < 0.4:
            self._guarded(self._jobs.popleft())

    def _say_something(self) -> None:
        chance = self._chance
        stock, dice = chance.choice(self._stocks), chance.random()
        if dice < 0.04 or (stock.low and dice < 0.12):
            count, kem_count = chance.randrange(0, 50), chance.randrange(0, 50)
            body = stock.upload(min(count, LIMITS.stock_one_time), min(kem_count, LIMITS.stock_kem))
            expected = Stocked(len(stock.ids), len(stock.kem_ids))
            self._submit(stock.device, body, expected)
            if chance.random() < 0.3:  # said twice, for whatever reason
                self._submit(stock.device, body, expected)
        elif dice < 0.14 and stock.uploads:  # and long after much of it is gone
            self._submit(stock.device, chance.choice(stock.uploads), Stocked(len(stock.ids), len(stock.kem_ids)))
        elif dice < 0.15 and stock.next_id > 1:
            body = keys_of(stock.device, range(stock.next_id, stock.next_id + 3), (), b"another")
            self._submit(stock.device, body, IdentityFixed)
        elif stock.next_id > 1:
            self._claim(stock, *self._whose_request(stock))

    def _whose_request(self, stock: Stock) -> tuple[int, int]:
        """A new request; or one that was answered to nobody, perhaps long ago."""
        chance, dice = self._chance, self._chance.random()
        if dice < 0.25 and stock.asked:
            self.seen["repeated"] += 1
            return chance.choice(stock.asked[-YOUNG:])
        if dice < 0.26 and len(stock.asked) > OLD:
            key = chance.choice(stock.asked[:-OLD])
            # A forgotten request takes another key. The greedy one's would be one more than it may have.
            if key not in stock.claims and key[0] != self._greedy:
                self.seen["repeated too late"] += 1
                return key
        return self._new_request(chance.choice(self._requesters))

    def _new_request(self, by: int) -> tuple[int, int]:
        """Everyone counts for themselves: others have the same numbers."""
        self._requests[by] += 1
        return by, self._requests[by]

    def _claim(self, stock: Stock, by: int, request: int) -> None:
        got = stock.claim((by, request))
        self.seen["claims"] += 1
        self.seen["nothing left of one kind"] += 0 in got
        self._submit(by, Claimed(stock.device, request), got)
        if self._chance.random() < 0.05:  # both of two connections, perhaps
            self._submit(by, Claimed(stock.device, request), got)

    def _be_greedy(self) -> None:
        stock = self._chance.choice(self._stocks)
        if stock.next_id == 1:
            return
        for n in range(LIMITS.claims_per_minute + 2):
            by, request = self._new_request(self._greedy)
            if n < LIMITS.claims_per_minute:
                self._claim(stock, by, request)
            else:
                self._submit(by, Claimed(stock.device, request), RateLimited)

    # --- submitting -----------------------------------------------------------------------------

    @property
    def _running(self) -> Loop:
        assert self._loop is not None
        return self._loop

    def _submit(self, by: int, body: AnyBody, expected: tuple[int, int] | Stocked | type[Said]) -> None:
        self._via += 1
        self._ops[self._via] = Op(by, body, expected)
        self._running.submit(Record(by, self._via, body))

    def _settle(self) -> None:
        """Until everything is answered, however often the power goes meanwhile."""
        while not self._guarded(self._running.flush):
            ops, self._ops = list(self._ops.values()), {}
            for op in ops:
                op.again = True
                self._via += 1
                self._ops[self._via] = op
                self._running.submit(Record(op.by, self._via, op.body))
            self._look_later = True
        for op in self._ops.values():
            raise Broken(f"{op.body} was never answered")
        if self._look_later:
            self._look_later = False
            self._look()

    def _guarded(self, do: Callable[[], None]) -> bool:
        """False: the power went, and it is up again."""
        with suppress(PowerCut):
            do()
        if self._disk.is_on:
            return True
        self.seen["crashes"] += 1
        self._boot()
        return False

    def _on_effects(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Answer):
                if op := self._ops.pop(effect.via, None):
                    self._judge(op, effect.said)
            elif isinstance(effect, Low):
                self._lows.add(effect.device)
                self.seen["told that few are left"] += 1

    def _judge(self, op: Op, said: Said) -> None:
        self.seen["answers"] += 1
        if isinstance(op.expected, tuple):
            if not isinstance(said, Bundle):
                raise Broken(f"{op.body} was answered {said}")
            assert isinstance(op.body, Claimed)
            device, who = op.body.device, self._numbers[op.by] << 32 | op.body.request
            got = key_id(said.one_time) if said.one_time else 0, 0 if said.kem[0] == LAST_RESORT else kem_id(said.kem)
            for kem, key in enumerate(got):
                if key:
                    self._owners.give(device, bool(kem), key, who)
            whose = device.to_bytes(8, "big")
            if said.identity != b"identity" + whose or not said.kem.endswith(whose):
                raise Broken(f"{op.body} got keys that are not this device's: {said}")
            if got != op.expected:
                raise Broken(f"{op.body} got keys {got}, and should have got {op.expected}")
        elif isinstance(op.expected, type):
            if type(said) is not op.expected:
                raise Broken(f"{type(op.body).__name__} was answered {said}")
        elif not isinstance(said, Stocked) or (said != op.expected and not op.again):
            raise Broken(f"an upload was answered {said} and should have been {op.expected}")

    # --- lives ----------------------------------------------------------------------------------

    def _before(self, operation: str, _path: str) -> None:
        self._left -= 1
        if self._left == 0:
            raise Killed if self._kills else PowerCut

    def _boot(self) -> None:
        """Until it is up. The power may go while it recovers."""
        while True:
            self._close()
            self._jobs.clear()
            self._left = self._chance.randrange(1, 60) if self._chance.random() < 0.3 else 0
            self._kills = self._chance.random() < 0.3
            self._disk.power_on()
            self._now += 1_000
            try:
                self._open()
            except PowerCut:
                pass
            except Exception:
                if self._disk.is_on:
                    raise
            if self._disk.is_on:
                self._left = self._chance.randrange(1, self._chance.choice((8, 40, 200)))
                return
            self.seen["crashes"] += 1
            self.seen["crashes in recovery"] += 1

    def _open(self) -> None:
        rows = self._rows = SqliteRows(
            Path(FOLDER), post=inline, execute=self._jobs.append, entropy=self._chance.randbytes, settings=ROWS,
            vfs=self._vfs.name, alone=True,
        )  # fmt: skip
        log = self._log = FileLog(
            self._disk.files(FOLDER), rows.identity, after=rows.pointer, post=inline, execute=inline,
            entropy=self._chance.randbytes, segment_bytes=128 * 1024, segment_age_ms=1 << 40,
        )  # fmt: skip
        state = StrictState if self._watched else ShardState
        self._loop = Loop(log, rows, lambda: self._now, self._on_effects, new_state=state, limits=LOOP)
        self._loop.recover()
        if self._loop.state.shard.limits != LIMITS:
            self._loop.submit(Record(SERVER, 0, LimitsSet(LIMITS)))

    def _close(self) -> None:
        if self._rows is not None:
            if self._disk.is_on:
                self._disk.power_cut()
            self._rows.close()
            self._rows = None

    def _look(self) -> None:
        """After a crash, when all is answered: what is there is what must be there, and so is each mark."""
        for stock in self._stocks:
            while not self._guarded(lambda stock=stock: self._check(stock)):
                pass

    def _check(self, stock: Stock) -> None:
        device, account = stock.device, account_of(stock.device)
        wanted = [RowKey(Kept.ACCOUNT, account), RowKey(Kept.KEYS, device)]
        found: list[tuple[list[int], list[int], bool]] = []

        def look(state: ShardState) -> None:
            row, keys = state.accounts[account], state.keys[device]
            assert row is not None
            ids, kem_ids = (keys.one_time, keys.one_time_kem) if keys else ([], [])
            found.append((list(map(key_id, ids)), list(map(kem_id, kem_ids)), row.devices[device].low))

        self._running.read(
            lambda state: [
                key for key in wanted if key.a not in (state.accounts if key.kind is Kept.ACCOUNT else state.keys)
            ],
            look,
        )  # fmt: skip
        if self._disk.is_on and found != [(stock.ids, stock.kem_ids, stock.low)]:
            raise Broken(f"of {device:x} there is {found}, and should be {(stock.ids, stock.kem_ids, stock.low)}")


# --- the campaign -----------------------------------------------------------------------------


def run_campaign(claims: int, seed: int, say: Callable[[str], None], *, watched: bool = False) -> dict[str, object]:
    """As many cases as it takes. Stops at the first that is broken."""
    began = told = time.monotonic()
    seen: Counter[str] = Counter()
    broken = ""
    vfs = DiskVfs("claims", Disk(Random(0)), Random(0), default=True)
    case_seed = seed
    try:
        while seen["claims"] < claims and not broken:
            case = Case(vfs, case_seed, min(CASE_CLAIMS, claims - seen["claims"]), watched=watched)
            try:
                with strictly() if watched else nullcontext():
                    case.run()
            except Broken as error:
                broken = str(error)
                say(f"BROKEN: {broken}\nalone: {PYTHON} -m sim.runs.claims --seed {case_seed} --claims {CASE_CLAIMS}")
            seen += case.seen
            case_seed += 1
            if (now := time.monotonic()) - told >= TELL_S:
                told = now
                rate = seen["claims"] / (now - began)
                say(f"{seen['claims']:,} of {claims:,} claims, {seen['crashes']:,} crashes, {rate:,.0f} per second")
    finally:
        vfs.unregister()
    seconds = round(time.monotonic() - began, 1)
    return {"campaign": "claims", "seed": seed, **seen, "broken": broken or None, "seconds": seconds}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    outcome = run_campaign(asked.claims, asked.seed, lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(outcome))
    return 1 if outcome["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
