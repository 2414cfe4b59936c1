"""The attacks run against a real server, and their verdict is what the bounds say."""

from __future__ import annotations

import asyncio
import json
import math
import resource
from collections.abc import Generator

import pytest

from attacks import __main__ as attacks
from attacks.__main__ import DEFAULTS, Result
from attacks.calm import quantile_ms
from attacks.connection import Connection, register
from attacks.hostile import ATTACKS, Attack
from nightmail.testing import RunningServer, running_server

FIELDS = ["attack", "calm_p99_ms", "p99_ms", "connect_ms", "refused", "rss_mib", "cpu_share", "waited_share", "tries"]


def test_an_attack_is_run_and_reported_as_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    attacks.main(["--seconds", "2", "--only", "pings_before_hello"])
    (found,) = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (list(found), found["attack"]) == (FIELDS, "pings_before_hello")
    assert found["refused"] > 0
    assert found["rss_mib"] > 0
    assert found["cpu_share"] > 0


def test_an_attack_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        attacks.main(["--only", "kindness"])
    assert "no such attack: kindness" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("calm", "p99", "connect", "within"),
    [
        (20.0, 99.0, 10.0, True),
        (20.0, 101.0, 10.0, False),
        (1.0, 49.0, 10.0, True),
        (1.0, 51.0, 10.0, False),
        (20.0, 20.0, 999.0, True),
        (20.0, 20.0, 1_001.0, False),
        (20.0, None, 10.0, False),
        (20.0, 20.0, None, False),
    ],
)
def test_a_bound_that_is_missed_is_missed(calm: float, p99: float | None, connect: float | None, within: bool) -> None:
    assert Result("looks", calm, p99, connect, 0, 60.0).is_within_bounds() is within


def test_a_message_that_never_arrived_is_the_slowest() -> None:
    assert quantile_ms([0.001] * 98 + [math.inf] * 2, 0.99) == math.inf
    assert quantile_ms([0.001] * 199 + [math.inf], 0.99) == 1.0
    assert quantile_ms([], 0.99) == math.inf


def test_there_are_attacks_of_every_kind() -> None:
    assert len(ATTACKS) >= 8


@pytest.fixture(scope="module")
def server() -> Generator[RunningServer]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with running_server({**DEFAULTS, "http.registrations_per_minute": 0}) as running:
        yield running
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


ROUNDS = 10
"""Of questions during each attack: all together stay below the rate of one address."""


@pytest.mark.parametrize("name", ATTACKS)
def test_health_and_metrics_are_answered_during_every_attack(name: str, server: RunningServer) -> None:
    operator = f"Bearer operator.{server.operator_token}"

    async def story() -> list[int]:
        attack = Attack(server.port, (await register(server.port, f"victim-of-{name.replace('_', '-')}")).device)
        under_way = asyncio.ensure_future(ATTACKS[name](attack))
        answers: list[int] = []
        for _ in range(ROUNDS):
            for path in ("/healthz", "/metrics"):
                async with Connection(server.port) as connection:
                    answers.append((await connection.ask("GET", path, bearer=operator))[0])
        assert not under_way.done()
        under_way.cancel()
        await asyncio.gather(under_way, return_exceptions=True)
        return answers

    assert set(asyncio.run(story())) == {200}
