from __future__ import annotations

from nightmail.engine.cluster.links.exchange import Exchange
from nightmail.engine.cluster.links.peers import CLAIM_WAKE, LinkPeers

BOB = 7 << 12 | 1


def two() -> tuple[Exchange, Exchange]:
    both: dict[int, Exchange] = {}
    for number, other in ((1, 2), (2, 1)):
        both[number] = Exchange(number, 1, lambda to, packet: both[to].take(packet))
        both[number].nodes = [other]
    return both[1], both[2]


def ask(one: Exchange, two: Exchange) -> list[int]:
    answers: list[int] = []
    LinkPeers(one).claim_wake(2, BOB, answers.append)
    one.flush()
    two.flush()
    return answers


def test_a_node_answers_another_by_its_number_and_the_device() -> None:
    one, other = two()
    asked: list[tuple[int, int]] = []

    def answer(node: int, device: int) -> int:
        asked.append((node, device))
        return 700

    LinkPeers(other).answer_by(answer)
    assert (ask(one, other), asked) == ([700], [(1, BOB)])


def test_a_node_that_does_not_know_the_question_does_not_answer() -> None:
    one, other = two()
    assert (ask(one, other), other.refused) == ([], 0)


def test_what_is_no_question_and_what_is_no_answer_change_nothing() -> None:
    one, other = two()
    LinkPeers(other).answer_by(lambda _node, _device: 0)
    one.ask_node(2, CLAIM_WAKE, b"\xc1", lambda _: None)
    one.flush()
    assert other.refused == 1
    other.answers[CLAIM_WAKE] = lambda _node, _arguments: b"\xc1"
    assert ask(one, other) == []
