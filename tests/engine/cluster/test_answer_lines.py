from __future__ import annotations

from nightmail.engine.cluster.answer_lines import ANSWER_MS, COUNT_BITS, LINES_MAX, NODES_MAX, AnswerLines, node_of
from nightmail.engine.ports import REF_BITS
from nightmail.model.answers import Done, Said
from nightmail.model.refusals import Unavailable


class Rig:
    def __init__(self, node: int = 7, begin: int = 0) -> None:
        self.now = 0
        self.lines = AnswerLines(node, lambda size: begin.to_bytes(size, "little"), lambda: self.now)
        self.heard: list[tuple[int, Said]] = []

    def open(self) -> int:
        return self.lines.open(lambda ref, said: self.heard.append((ref, said)))


def test_an_address_names_its_node() -> None:
    line = Rig(node=NODES_MAX - 1).open()
    via = line << REF_BITS | 5
    assert (node_of(via), via < 1 << 64) == (NODES_MAX - 1, True)


def test_no_line_makes_the_address_that_asks_for_no_answer() -> None:
    assert Rig(node=0).open() != 0
    assert Rig(node=0, begin=LINES_MAX - 1).open() != 0


def test_lines_begin_at_a_random_place_and_begin_again_after_the_last() -> None:
    rig = Rig(node=1, begin=LINES_MAX - 2)
    assert [rig.open(), rig.open()] == [1 << COUNT_BITS | LINES_MAX - 1, 1 << COUNT_BITS | 1]


def test_an_answer_reaches_its_line_once_however_many_owners_give_it() -> None:
    rig = Rig()
    via = rig.open() << REF_BITS | 9
    rig.lines.expect(via)
    rig.lines.take(via, Done())
    rig.lines.take(via, Done())
    assert rig.heard == [(9, Done())]


def test_after_unavailable_the_late_answer_is_dropped_and_a_repeated_question_is_answered() -> None:
    rig = Rig()
    via = rig.open() << REF_BITS | 9
    rig.lines.expect(via)
    rig.lines.take(via, Unavailable())
    rig.lines.take(via, Done())
    rig.lines.expect(via)
    rig.lines.take(via, Done())
    assert rig.heard == [(9, Unavailable()), (9, Done())]


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    rig = Rig()
    line = rig.open()
    rig.lines.take(line << REF_BITS | 1, Done())
    rig.lines.expect(line << REF_BITS | 2)
    rig.lines.close(line)
    rig.lines.take(line << REF_BITS | 2, Done())
    rig.lines.take(0, Done())
    assert rig.heard == []


def test_a_question_whose_answer_was_lost_is_answered_unavailable_once_the_rest_waits_on() -> None:
    rig = Rig()
    line = rig.open() << REF_BITS
    rig.lines.expect(line | 1)
    rig.now = 1
    rig.lines.expect(line | 2)
    rig.lines.expect(line | 1)
    rig.now = ANSWER_MS
    rig.lines.tick()
    rig.lines.take(line | 1, Done())
    rig.lines.expect(line | 3)
    rig.now = ANSWER_MS + 1
    rig.lines.tick()
    rig.lines.take(line | 2, Done())
    rig.lines.take(line | 3, Done())
    assert rig.heard == [(1, Done()), (2, Unavailable()), (3, Done())]
