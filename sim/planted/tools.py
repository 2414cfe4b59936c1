"""How a bug is planted: one small part of the real program is exchanged, until the end of a block.

A plant that does not find its place raises `Uprooted`: a bug that is not there would be caught by nothing.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from nightmail.core.rules import Needs, Step
from nightmail.core.state import NEWEST_FOLD, ShardState
from nightmail.core.step import FOLDS
from nightmail.model.records import AnyBody, Copied, Receipted
from nightmail.model.rows import EntryRange, Kept, Need

Plant: TypeAlias = Callable[[], AbstractContextManager[None]]

FOLD = ("tests/core", "tests/scenarios")
LOOP = (
    "tests/engine/test_loop.py",
    "tests/engine/test_time.py",
    "tests/engine/test_clock.py",
    "tests/engine/test_following.py",
    "tests/engine/test_folding.py",
    "tests/engine/test_forwarder.py",
    "tests/engine/test_poison.py",
    "tests/scenarios",
)


PLANTED_IN = "<planted in"
"""How the name of a file begins that is no file, but a function with something planted in it."""


class Uprooted(Exception):
    """The program has changed, and the bug has no place in it: plant it elsewhere."""


@dataclass(frozen=True)
class Focus:
    """Worlds in which a bug's cause happens often: a world of chance would show it too rarely."""

    habits: Mapping[str, float] = field(default_factory=dict[str, float])
    """Their weight (`sim.world.people.Habits`, with groups `sim.world.group_town.GroupHabits`), instead of the one that
    was drawn."""
    faults: tuple[str, ...] = ()
    """The only faults that may happen (`sim.world.plan.FAULTS`)."""
    lifetime_ms: int = 0
    """How long clients try to send a message. 0: as chance has drawn."""
    offline_ms: int = 2_000
    """After this, at the latest, a device that went offline is back: days are short here, and little happens in one
    that most devices miss."""


@dataclass(frozen=True)
class Bug:
    name: str
    plant: Plant
    suites: tuple[str, ...]
    """Simulations that may catch it, the likeliest first; one of them must."""
    unit: tuple[str, ...] = FOLD
    """Tests that may catch it, too."""
    seconds: float = 6.0
    """Of simulated time in each world: short ones, so that there can be many."""
    focus: Focus | None = None
    """Of the worlds of the suites `node`, `cluster` and `sealed`, and of those with groups: there only the habits
    count."""
    raises: tuple[type[Exception], ...] = ()
    """Accidents (`sim.runs.teeth.ACCIDENTS`) by which it does show in the program; others are the plant's own."""


# --- exchanging parts -------------------------------------------------------------------------


@contextmanager
def swap(function: Callable[..., Any], wrong: Callable[..., Any]) -> Generator[None]:
    """Put `wrong` wherever the program refers to `function` by a name of a module, or in its folds."""
    places = [
        (module, name)
        for title, module in sorted(sys.modules.items())
        if title.partition(".")[0] in {"nightmail", "sim"}
        for name, value in vars(module).items()
        if value is function and not title.startswith("sim.planted")
    ]
    if not places:
        raise Uprooted(f"nobody refers to {function.__qualname__}")
    folds = dict(FOLDS)
    for module, name in places:
        setattr(module, name, wrong)
    for version, fold in folds.items():
        FOLDS[version] = {
            body: (wrong if needs is function else needs, wrong if step is function else step)
            for body, (needs, step) in fold.items()
        }
    try:
        yield
    finally:
        for module, name in places:
            setattr(module, name, function)
        FOLDS.update(folds)


@contextmanager
def method(owner: type, name: str, wrong: Any) -> Generator[None]:
    """Give a class another method or property."""
    if name not in vars(owner):
        raise Uprooted(f"{owner.__name__} has no {name}")
    right = vars(owner)[name]
    setattr(owner, name, wrong)
    try:
        yield
    finally:
        setattr(owner, name, right)


def edited(function: Callable[..., Any], old: str, new: str, **names: object) -> Callable[..., Any]:
    """The same function with one piece of its text exchanged. `names` are for the new text to use."""
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise Uprooted(f"{function.__qualname__} has {old!r} {source.count(old)} times")
    # Postponed annotations, as in the module it came from: some names exist for the type checker only.
    text = "from __future__ import annotations\n" + source.replace(old, new)
    code = compile(text, f"{PLANTED_IN} {function.__qualname__}>", "exec")
    made: dict[str, Any] = {}
    exec(code, {**sys.modules[function.__module__].__dict__, **names}, made)
    return made[function.__name__]


def edit(function: Callable[..., Any], old: str, new: str) -> Plant:
    return lambda: swap(function, edited(function, old, new))


def edit_method(owner: type, name: str, old: str, new: str, **names: object) -> Plant:
    def plant() -> AbstractContextManager[None]:
        if name not in vars(owner):
            raise Uprooted(f"{owner.__name__} has no {name}")
        return method(owner, name, edited(vars(owner)[name], old, new, **names))

    return plant


def all_of(plants: Iterable[Plant]) -> Plant:
    @contextmanager
    def plant() -> Generator[None]:
        with ExitStack() as stack:
            for one in plants:
                stack.enter_context(one())
            yield

    return plant


# --- exchanging what a record does ------------------------------------------------------------


def in_step(body: type[AnyBody], spoil: Callable[[Step], Step]) -> Plant:
    """Exchange what a record does for something made of it."""

    def plant() -> AbstractContextManager[None]:
        step = FOLDS[NEWEST_FOLD][body][1]
        return swap(step, spoil(step))

    return plant


def in_needs(body: type[AnyBody], wanted: Callable[[Need], bool]) -> Plant:
    """Some of the rows that a record needs are not asked for."""

    def plant() -> AbstractContextManager[None]:
        needs: Needs = FOLDS[NEWEST_FOLD][body][0]

        def forgetful(state: ShardState, by: int, record: Any) -> Sequence[Need]:
            return [need for need in needs(state, by, record) if wanted(need)]

        return swap(needs, forgetful)

    return plant


def without(kind: Kept) -> Callable[[Need], bool]:
    return lambda need: isinstance(need, EntryRange) or need.kind != kind


def without_entries(need: Need) -> bool:
    return not isinstance(need, EntryRange)


def untold(body: type[AnyBody], silenced: Callable[[Copied | Receipted], bool]) -> Plant:
    """A record does what it does, but some of what follows for others is not told."""

    def spoil(step: Step) -> Step:
        def quiet(state: ShardState, by: int, via: int, record: Any) -> None:
            def tell(account: int, said: Copied | Receipted) -> None:
                if not silenced(said):
                    ShardState.tell(state, account, said)

            cast("Any", state).tell = tell
            try:
                step(state, by, via, record)
            finally:
                del cast("Any", state).tell

        return quiet

    return in_step(body, spoil)
