from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.core.letters import pages as letter_pages
from nightmail.core.letters.pages import Listing, add, counts, listing, needs_add, needs_counts, needs_listing, remove
from nightmail.core.state import ShardState
from nightmail.model.letter_rows import LetterClass, LetterClasses, LetterPage
from nightmail.model.records import Ticked
from nightmail.model.rows import Kept, Need, RowKey
from sim.judges.strict import strict
from tests.core.world import Memory, Node

CLASSES = RowKey(Kept.LETTER_CLASSES, letter_pages.DIRECTORY)
WRONG, BAD = "ValueError in Sent", "not a record"


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter_pages, "PAGE_LETTERS", 3)


class Shelf(Node):
    """A shard that keeps nothing in memory, and whose steps are strictly watched."""

    def __init__(self) -> None:
        super().__init__(0, 1, Memory.FORGETS)
        self.page_of: dict[int, int] = {}

    def add(self, offset: int, error: str) -> None:
        def needs(state: ShardState) -> list[Need]:
            missing: list[Need] = []
            needs_add(state, offset, error, missing)
            return missing

        def step(state: ShardState) -> None:
            self.page_of[offset] = add(state, offset, error)

        self.watched(needs, step)

    def remove(self, offset: int) -> None:
        page = self.page_of.pop(offset)

        def needs(state: ShardState) -> list[Need]:
            missing: list[Need] = []
            letter_pages.needs_remove(state, page, missing)
            return missing

        self.watched(needs, lambda state: remove(state, page, offset))

    def watched(self, needs: Callable[[ShardState], Sequence[Need]], step: Callable[[ShardState], None]) -> None:
        pair = (lambda state, _by, _body: needs(state), lambda state, _by, _via, _body: step(state))
        asked, taken = strict({1: {Ticked: pair}})[1][Ticked]
        self.offset += 1
        ticked = Ticked()
        self.load(lambda state: asked(state, 0, ticked))
        self.state.offset = self.offset
        taken(self.state, 0, 0, ticked)
        self.save()
        self.forget()

    def page(self, error: str, number: int = 0) -> Listing:
        self.load(partial(needs_listing, error=error, number=number))
        return listing(self.state, error, number)

    def every(self, error: str) -> list[int]:
        page = self.page(error)
        found = page.offsets
        while page.older:
            page = self.page(error, page.older)
            found = found + page.offsets
        return found

    def counts(self) -> dict[str, int]:
        self.load(needs_counts)
        return counts(self.state)

    def stored(self) -> dict[RowKey, object]:
        kinds = {Kept.LETTER_CLASSES: LetterClasses, Kept.LETTER_PAGE: LetterPage}
        return {key: msgspec.msgpack.decode(data, type=kinds[key.kind]) for key, data in self.rows.items()
                if key.kind in kinds}  # fmt: skip


def test_nothing_is_listed_where_there_is_no_letter() -> None:
    shelf = Shelf()
    assert (shelf.counts(), shelf.page(WRONG)) == ({}, Listing([], 0))


def test_a_page_is_as_long_as_it_may_be_and_the_next_one_is_behind_it() -> None:
    shelf = Shelf()
    for offset in range(11, 16):
        shelf.add(offset, WRONG)
    assert shelf.page(WRONG) == Listing([15, 14], 11)
    assert shelf.page(WRONG, 11) == Listing([13, 12, 11], 0)
    assert shelf.stored() == {
        CLASSES: LetterClasses({WRONG: LetterClass(5, 14)}),
        RowKey(Kept.LETTER_PAGE, 11): LetterPage(WRONG, [11, 12, 13], 0, 14),
        RowKey(Kept.LETTER_PAGE, 14): LetterPage(WRONG, [14, 15], 11, 0),
    }


def test_an_emptied_page_leaves_the_chain_wherever_it_was() -> None:
    for gone in ((11, 12, 13), (14, 15, 16), (17, 18, 19)):
        shelf = Shelf()
        for offset in range(11, 20):
            shelf.add(offset, WRONG)
        for offset in gone:
            shelf.remove(offset)
        assert shelf.every(WRONG) == [offset for offset in range(19, 10, -1) if offset not in gone]
        assert len(shelf.stored()) == 1 + 2
        shelf.add(20, WRONG)
        assert shelf.every(WRONG)[0] == 20


def test_when_the_last_letter_is_settled_no_row_is_left() -> None:
    shelf = Shelf()
    for offset in (11, 12, 13, 14):
        shelf.add(offset, WRONG)
    shelf.add(15, BAD)
    for offset in (12, 11, 14, 13, 15):
        shelf.remove(offset)
    assert shelf.stored() == {}


def test_a_page_of_another_class_or_that_is_no_more_lists_nothing() -> None:
    shelf = Shelf()
    shelf.add(11, WRONG)
    assert shelf.page(BAD, 11) == Listing([], 0)
    shelf.remove(11)
    assert shelf.page(WRONG, 11) == Listing([], 0)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from((WRONG, BAD)), st.integers(0, 20)), max_size=40))
def test_whatever_comes_and_goes_every_letter_is_listed_once_and_rows_stay_small(
    deeds: list[tuple[bool, str, int]],
) -> None:
    shelf = Shelf()
    there: dict[int, str] = {}
    for offset, (adds, error, which) in enumerate(deeds, 1):
        if adds or not there:
            shelf.add(offset, error)
            there[offset] = error
        else:
            settled = sorted(there)[which % len(there)]
            shelf.remove(settled)
            del there[settled]
    for error in (WRONG, BAD):
        assert shelf.every(error) == sorted((o for o, e in there.items() if e == error), reverse=True)
    assert shelf.counts() == {e: list(there.values()).count(e) for e in (WRONG, BAD) if e in there.values()}
    pages = [row for row in shelf.stored().values() if isinstance(row, LetterPage)]
    assert all(1 <= len(page.offsets) <= 3 for page in pages)
