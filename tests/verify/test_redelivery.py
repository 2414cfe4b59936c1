"""Was it handed out again, and was there a reason?"""

from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.records import Acked
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane
from nightmail.verify.redelivery import ConnectionCheck, RedeliveryCheck
from nightmail.wire.frames import encode
from nightmail.wire.items import VERSION, Answered, Ask, Entries, Hello, Ping, Pong


def hello(line: ConnectionCheck, normal: int = 0) -> None:
    line.up(encode([Hello(VERSION, 1, b"t" * 32, normal, 0, 0)]))


def acks(line: ConnectionCheck, upto: int, ref: int = 0) -> None:
    line.up(encode([Ask(ref, Acked(Lane.NORMAL, upto, ()))]))


def hands(line: ConnectionCheck, first: int, count: int = 1) -> None:
    entry = Entry(id="1:2:3:x", by=1, to=2, n=1, at=1, tag=b"", kind=Kind.TEXT, of=None, life_ms=0, ciphertext=b"")
    line.down(encode([Entries(Lane.NORMAL, first, (entry,) * count)]))


def test_a_new_connection_may_bring_again_what_its_hello_does_not_know() -> None:
    check = RedeliveryCheck("phone")
    line = check.connection()
    hello(line)
    hands(line, 1, 5)
    acks(line, 5)
    line = check.connection()
    hello(line, 3)
    hands(line, 4, 2)
    assert (check.redelivered, check.unexplained) == (2, 0)


def test_what_the_hello_knows_may_not_come_again() -> None:
    check = RedeliveryCheck("phone")
    line = check.connection()
    hello(line, 3)
    hands(line, 3, 2)
    assert check.unexplained == 1


def test_the_oldest_may_come_again_as_a_probe_and_no_other() -> None:
    check = RedeliveryCheck("phone")
    line = check.connection()
    hello(line)
    hands(line, 1, 5)
    hands(line, 1)
    assert (check.redelivered, check.unexplained) == (1, 0)
    hands(line, 2)
    hands(line, 1, 2)
    assert check.unexplained == 2


def test_an_ack_counts_from_the_first_answer_to_something_later() -> None:
    for ask, answer in (
        (Ask(9, Acked(Lane.NORMAL, 2, ())), Answered(9, Done())),
        (Ping(4), Pong(4, 0)),
    ):
        check = RedeliveryCheck("phone")
        line = check.connection()
        hello(line)
        hands(line, 1, 2)
        acks(line, 2)
        hands(line, 1)
        assert check.unexplained == 0, "it was on its way already"
        line.up(encode([ask]))
        line.down(encode([answer]))
        hands(line, 2)
        assert check.unexplained == 1
