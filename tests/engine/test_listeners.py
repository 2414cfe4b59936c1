"""Several listeners at one desk hear the same, in their order."""

from __future__ import annotations

from nightmail.engine.desk import LoopDesk
from nightmail.engine.listeners import together
from nightmail.engine.ports import Listener
from nightmail.model.effects import Dismissed, Grew, Low, ReceiptsGrew
from nightmail.model.words import Lane
from tests.engine.rig import Rig

PHONE, TABLET = 1, 2


class Heard:
    """A `Listener` that writes down what it hears, in a book that others may share."""

    def __init__(self, name: str, book: list[tuple[object, ...]]) -> None:
        self.name, self.book = name, book

    def grew(self, device: int, lane: Lane) -> None:
        self.book.append((self.name, "grew", device, lane))

    def changed(self, device: int) -> None:
        self.book.append((self.name, "changed", device))

    def dismissed(self, device: int) -> None:
        self.book.append((self.name, "dismissed", device))

    def low(self, device: int) -> None:
        self.book.append((self.name, "low", device))

    def settled(self) -> None:
        self.book.append((self.name, "settled"))


def say_everything(listener: Listener) -> None:
    listener.grew(PHONE, Lane.HIGH)
    listener.changed(PHONE)
    listener.dismissed(TABLET)
    listener.low(TABLET)
    listener.settled()


def test_each_hears_everything_the_first_one_first() -> None:
    alone: list[tuple[object, ...]] = []
    say_everything(Heard("", alone))
    both: list[tuple[object, ...]] = []
    say_everything(together(Heard("a", both), Heard("b", both)))
    assert both == [(name, *said[1:]) for said in alone for name in ("a", "b")]


def test_a_single_listener_has_nothing_in_between() -> None:
    listener = Heard("", [])
    assert together(listener) is listener


def test_all_who_attend_a_desk_hear_what_a_batch_brings() -> None:
    book: list[tuple[object, ...]] = []
    desk = LoopDesk(bytes, lambda: 0)
    desk.attend(Rig().loop, Heard("a", book), Heard("b", book))
    desk.on_effects(
        [Grew(PHONE, Lane.NORMAL), ReceiptsGrew(TABLET), Grew(PHONE, Lane.NORMAL), Dismissed(PHONE), Low(TABLET)]
    )
    heard: list[tuple[object, ...]] = [
        ("changed", TABLET), ("dismissed", PHONE), ("low", TABLET), ("grew", PHONE, Lane.NORMAL), ("settled",),
    ]  # fmt: skip
    assert book == [(name, *said) for said in heard for name in ("a", "b")]


def test_a_desk_may_have_no_listener() -> None:
    desk = LoopDesk(bytes, lambda: 0)
    desk.attend(Rig().loop)
    desk.on_effects([Grew(PHONE, Lane.NORMAL)])
