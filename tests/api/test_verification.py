from __future__ import annotations

import asyncio
import re

import pytest

from nightmail.api.limits import HttpLimits
from nightmail.api.problems import Problem
from nightmail.api.verification import WINDOW_MS, Codes, Delivery, Verification

PHONE = "+491711234567"
START = 170_000_000 * WINDOW_MS


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


class Post:
    """The operator's way to reach people, which always ends in the same way."""

    def __init__(self, outcome: Delivery = "sent") -> None:
        self.outcome: Delivery = outcome
        self.brought: list[tuple[str, str, int]] = []

    async def __call__(self, handle: str, code: str, until: int) -> Delivery:
        self.brought.append((handle, code, until))
        return self.outcome


def other_than(code: str) -> str:
    return f"{(int(code) + 1) % 1_000_000:06}"


def test_a_code_is_good_to_the_end_of_the_next_ten_minutes_on_every_node_with_the_secret() -> None:
    clock = Clock()
    code, until = Codes(b"secret", clock).make(PHONE)
    assert re.fullmatch("[0-9]{6}", code)
    assert until == START + 2 * WINDOW_MS
    another = Codes(b"secret", clock)
    for at, good in ((0, True), (WINDOW_MS, True), (2 * WINDOW_MS - 1, True), (2 * WINDOW_MS, False)):
        clock.now = START + at
        assert another.is_right(PHONE, code) is good


def test_a_code_is_of_one_handle_one_time_and_one_secret() -> None:
    clock = Clock()
    codes = {Codes(secret, clock).make(handle) for secret in (b"a", b"b") for handle in (PHONE, "ada")}
    assert len(codes) == 4
    code, _ = Codes(b"a", clock).make(PHONE)
    assert not Codes(b"a", clock).is_right(PHONE, other_than(code))


def test_a_code_is_brought_to_its_handle_and_checked() -> None:
    post, clock = Post(), Clock()
    verification = Verification(Codes(b"secret", clock), post, HttpLimits(), clock)
    until = asyncio.run(verification.send(PHONE))
    ((handle, code, told),) = post.brought
    assert (handle, told) == (PHONE, until)
    verification.check(PHONE, code)
    for wrong, problem in ((None, "verification_needed"), (other_than(code), "verification_wrong")):
        with pytest.raises(Problem) as raised:
            verification.check(PHONE, wrong)
        assert raised.value.code == problem
        assert code not in str(raised.value)


def test_five_wrong_codes_and_even_the_right_one_must_wait() -> None:
    clock = Clock()
    codes = Codes(b"secret", clock)
    verification = Verification(codes, Post(), HttpLimits(), clock)
    right, _ = codes.make(PHONE)

    def tried(code: str) -> str:
        try:
            verification.check(PHONE, code)
        except Problem as problem:
            return problem.code
        return "right"

    wrong = other_than(right)
    assert [tried(wrong) for _ in range(6)] == ["verification_wrong"] * 5 + ["rate_limited"]
    assert tried(right) == "rate_limited"
    assert verification.check("ada", codes.make("ada")[0]) is None, "nobody else has to wait"
    clock.now += WINDOW_MS // 5
    assert tried(right) == "right"
    found = 5
    for _ in range(1000):  # Patience does not help: 20 in a day.
        clock.now += WINDOW_MS // 5
        found += tried("000000" if codes.make(PHONE)[0] != "000000" else "000001") == "verification_wrong"
        if clock.now - START > 86_400_000 - WINDOW_MS:
            break
    assert found <= 2 * 20


@pytest.mark.parametrize(("outcome", "code"), [("refused", "verification_refused"), ("failed", "not_ready")])
def test_what_could_not_be_brought_is_told(outcome: Delivery, code: str) -> None:
    clock = Clock()
    verification = Verification(Codes(b"secret", clock), Post(outcome), HttpLimits(), clock)
    with pytest.raises(Problem) as raised:
        asyncio.run(verification.send(PHONE))
    assert raised.value.code == code


def test_a_handle_gets_five_codes_in_an_hour() -> None:
    clock, post = Clock(), Post()
    verification = Verification(Codes(b"secret", clock), post, HttpLimits(), clock)
    for _ in range(5):
        asyncio.run(verification.send(PHONE))
    with pytest.raises(Problem, match="too fast"):
        asyncio.run(verification.send(PHONE))
    asyncio.run(verification.send("ada"))
    assert len(post.brought) == 6


def test_trying_other_handles_does_not_help_against_one() -> None:
    clock = Clock()
    codes = Codes(b"secret", clock)
    verification = Verification(codes, Post(), HttpLimits(addresses=100, code_tries_per_minute=1_000_000), clock)

    def tried(handle: str) -> str:
        with pytest.raises(Problem) as raised:
            verification.check(handle, other_than(codes.make(handle)[0]))
        return raised.value.code

    assert [tried(PHONE) for _ in range(6)][-1] == "rate_limited"
    for n in range(1_000):
        tried(f"other{n}")
    assert tried(PHONE) == "rate_limited"


def test_wrong_codes_for_all_handles_together_are_counted_too() -> None:
    clock = Clock()
    codes = Codes(b"secret", clock)
    verification = Verification(codes, Post(), HttpLimits(), clock)
    found: list[str] = []
    for n in range(100):
        with pytest.raises(Problem) as raised:
            verification.check(f"other{n}", other_than(codes.make(f"other{n}")[0]))
        found.append(raised.value.code)
    assert found == ["verification_wrong"] * 60 + ["rate_limited"] * 40
    clock.now += 2_000
    verification.check(PHONE, codes.make(PHONE)[0])
