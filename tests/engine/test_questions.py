from __future__ import annotations

from collections.abc import Callable

from nightmail.engine.questions import Questions


class Rig:
    def __init__(self) -> None:
        self.now = 0
        self.questions = Questions(lambda: self.now, 300)
        self.asked: list[Callable[[str], None]] = []
        self.answers: list[str] = []

    def ask(self) -> None:
        self.questions.ask(self.asked.append, self.answers.append)

    def wait(self, ms: int) -> None:
        self.now += ms
        self.questions.tick()


def test_a_question_is_asked_at_once_and_again_only_when_it_is_late() -> None:
    rig = Rig()
    rig.ask()
    rig.wait(299)
    assert len(rig.asked) == 1
    rig.wait(1)
    rig.wait(299)
    assert len(rig.asked) == 2
    rig.wait(1)
    assert (len(rig.asked), len(rig.questions)) == (3, 1)


def test_of_several_answers_the_first_one_counts() -> None:
    rig = Rig()
    rig.ask()
    rig.wait(300)
    first, second = rig.asked
    second("the second owner")
    first("the first owner")
    assert (rig.answers, len(rig.questions)) == (["the second owner"], 0)
    rig.wait(300)
    assert len(rig.asked) == 2


def test_a_question_may_be_answered_before_asking_returns() -> None:
    rig = Rig()
    rig.questions.ask(lambda found: found("at once"), rig.answers.append)
    assert (rig.answers, len(rig.questions)) == (["at once"], 0)


def test_a_question_that_was_answered_while_others_are_repeated_is_not_repeated() -> None:
    rig = Rig()
    again: list[str] = []

    def put_first(found: Callable[[str], None]) -> None:
        again.append("first")
        if len(again) > 2:
            rig.asked[0]("by the way")

    rig.questions.ask(put_first, rig.answers.append)
    rig.ask()
    again.append("later")
    rig.wait(300)
    assert (again, len(rig.asked), rig.answers) == (["first", "later", "first"], 1, ["by the way"])
