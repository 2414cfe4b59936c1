"""The tables of a watched state: every look at a row and every write goes through `Watch`.

Knows:   which rows the current record's `needs` named, and which its step has written so far.
Never:   objects outside of a record: there everything may be touched. `strict.py` says when a record begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from nightmail.core.homes import home_of
from nightmail.core.state import NEWEST_FOLD, ShardState, Table
from nightmail.model.ids import account_of, shard_of
from nightmail.model.records import AnyBody
from nightmail.model.rows import PAIRED, Kept

K = TypeVar("K")
R = TypeVar("R")


class Misstep(BaseException):
    """The fold broke a rule of its own. Nothing catches this, not even the net for poison records."""


class Unnamed(Misstep):
    """A step touched a row that its `needs` did not name, or that is not in memory."""


class Foreign(Misstep):
    """A row of another shard was touched."""


class Unsaid(Misstep):
    """A row changed, and nobody was told: it would not be saved."""


class Late(Misstep):
    """A step that may be tried changed a row, and only then met one that is not in memory."""


class Crooked(Misstep):
    """A row, or what follows from a record, contradicts itself."""


class Phase(Enum):
    OUTSIDE = "outside of any record"
    NEEDS = "asking what a record needs"
    TRY = "trying to take a record"
    STEP = "taking a record"


class Watch:
    """What the current record has named and written so far."""

    def __init__(self) -> None:
        self.phase = Phase.OUTSIDE
        self.steps = 0
        self.named: set[tuple[Kept, Any]] = set()
        self.written: set[tuple[Kept, Any]] = set()
        self.asked: AnyBody | None = None
        """The record whose needs are all met."""


class Guarded(dict[K, R]):
    """Calls `look` before a key is read, and `write` before it is written."""

    __slots__ = ("_look", "_write")

    def __init__(self, look: Callable[[Any], None], write: Callable[[Any], None]) -> None:
        super().__init__()
        self._look, self._write = look, write

    def __contains__(self, key: object) -> bool:
        self._look(key)
        return super().__contains__(key)

    def __getitem__(self, key: K) -> R:
        self._look(key)
        return super().__getitem__(key)

    def get(self, key: K, default: Any = None) -> Any:
        self._look(key)
        return super().get(key, default)

    def __setitem__(self, key: K, value: R) -> None:
        self._write(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self._write(key)
        super().__delitem__(key)

    def unwatched_has(self, key: K) -> bool:
        return super().__contains__(key)

    def unwatched(self, key: K) -> R | None:
        return super().get(key)

    def unwatched_put(self, key: K, value: R) -> None:
        super().__setitem__(key, value)


class StrictTable(Table[K, R]):
    __slots__ = ("_guarded", "_kind", "_owner", "_said", "_watch")

    def __init__(self, row: type[R], kind: Kept, watch: Watch, owner: Callable[[K], bool]) -> None:
        super().__init__(row)
        self._kind, self._watch, self._owner = kind, watch, owner
        self.rows = self._guarded = Guarded[K, R | None](self._look, self._write)
        # Saying that a row changed counts as writing it. The saver may ask which ones did.
        self.changed = self._said = Guarded[K, int](lambda _: None, self._write)

    def _look(self, key: K) -> None:
        if not self._owner(key):
            raise Foreign(f"{self._kind.name} {key}")
        phase, named = self._watch.phase, self._watch.named
        if phase is Phase.OUTSIDE:
            return
        if phase is Phase.NEEDS:
            named.add((self._kind, key))
        elif (self._kind, key) not in named:
            raise Unnamed(f"{self._kind.name} {key}")
        elif not self._guarded.unwatched_has(key):
            if phase is Phase.TRY:
                raise KeyError(key)
            raise Unnamed(f"{self._kind.name} {key} is not in memory")

    def _write(self, key: K) -> None:
        self._look(key)
        if self._watch.phase is Phase.NEEDS:
            raise Unsaid(f"{self._kind.name} {key} was written while asking")
        self._watch.written.add((self._kind, key))

    def add(self, key: K, row: R, offset: int) -> None:
        if not self._owner(key):
            raise Foreign(f"{self._kind.name} {key}")
        if self._guarded.unwatched(key) is not None:
            raise Crooked(f"{self._kind.name} {key} is there already")
        self._watch.named.add((self._kind, key))
        self._watch.written.add((self._kind, key))
        self._guarded.unwatched_put(key, row)
        self._said.unwatched_put(key, offset)

    def sought(self, key: K) -> R | None:
        if self._watch.phase is Phase.NEEDS:
            self._look(key)
        elif self._watch.phase is not Phase.OUTSIDE and (self._kind, key) not in self._watch.named:
            raise Unnamed(f"{self._kind.name} {key}")
        return self._guarded.unwatched(key)

    def unwatched_has(self, key: Any) -> bool:
        return self._guarded.unwatched_has(key)

    def unwatched(self, key: Any) -> R | None:
        return self._guarded.unwatched(key)


class StrictState(ShardState):
    """A state whose tables hold the fold to its word.

    Who touches which row is watched in every step; that the rows are sound, in every `every`-th:
    it takes longer than the step itself.
    """

    def __init__(self, index: int = 0, shards: int = 1, newest_fold: int = NEWEST_FOLD, every: int = 1) -> None:
        super().__init__(index, shards, newest_fold)
        self.every = every
        self.watch = Watch()
        self.watched: dict[Kept, StrictTable[Any, Any]] = {}
        self.streams = self._watched(self.streams, Kept.STREAM)
        self.accounts = self._watched(self.accounts, Kept.ACCOUNT)
        self.handles = self._watched(self.handles, Kept.HANDLE)
        self.keys = self._watched(self.keys, Kept.KEYS)
        self.mailboxes = self._watched(self.mailboxes, Kept.MAILBOX)
        self.receipts = self._watched(self.receipts, Kept.RECEIPTS)
        self.shares = self._watched(self.shares, Kept.SHARES)
        self.known = self._watched(self.known, Kept.KNOWN)
        self.groups = self._watched(self.groups, Kept.GROUP)
        self.rosters = self._watched(self.rosters, Kept.ROSTER)
        self.members = self._watched(self.members, Kept.MEMBER)
        self.chain = self._watched(self.chain, Kept.CHAIN)
        self.account_groups = self._watched(self.account_groups, Kept.ACCOUNT_GROUPS)
        self.at_head = self._watched(self.at_head, Kept.AT_HEAD)
        self.account_schedules = self._watched(self.account_schedules, Kept.ACCOUNT_SCHEDULES)
        self.schedules = self._watched(self.schedules, Kept.SCHEDULE)
        self.schedule_pages = self._watched(self.schedule_pages, Kept.SCHEDULE_PAGE)
        self.schedule_names = self._watched(self.schedule_names, Kept.SCHEDULE_NAME)
        self.pushes = self._watched(self.pushes, Kept.PUSH)
        self.blobs = self._watched(self.blobs, Kept.BLOB)
        self.audiences = self._watched(self.audiences, Kept.AUDIENCE)
        self.account_blobs = self._watched(self.account_blobs, Kept.ACCOUNT_BLOBS)
        self.due_hours = self._watched(self.due_hours, Kept.DUE_HOUR)
        self.due = self._watched(self.due, Kept.DUE)
        self.dead_letters = self._watched(self.dead_letters, Kept.DEAD_LETTER)
        self.letter_classes = self._watched(self.letter_classes, Kept.LETTER_CLASSES)
        self.letter_pages = self._watched(self.letter_pages, Kept.LETTER_PAGE)
        self.by_pair = {kind: self.watched[kind] for kind in self.by_pair}
        self.by_number = {kind: self.watched[kind] for kind in self.by_number}

    def _watched(self, table: Table[K, R], kind: Kept) -> Table[K, R]:
        def owner(key: Any) -> bool:
            a, b = key if kind in PAIRED else (key, 0)
            home = home_of(kind, a, b)
            return home is None or self.owns(home)

        row: type[R] = table.decode.__self__.type  # pyright: ignore[reportFunctionMemberAccess]
        made = self.watched[kind] = StrictTable(row, kind, self.watch, owner)
        return made

    def owns(self, account: int) -> bool:
        return shard_of(account, self.shards) == self.index

    def owns_device(self, device: int) -> bool:
        return self.owns(account_of(device))
