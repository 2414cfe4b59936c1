"""How long a command waits: `--timeout` for every command that waits for a server or for another device.

Knows:   the seconds that were given, kept in click's context until the command runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from nightmail.client.limits import ClientLimits

from .errors import Exit, Failure

SECONDS = 30.0
"""The default, unless a person at another device has to do something."""
TRANSFER_S = 3_600.0
"""The default while something large is carried to or from a server."""
_META = "nightmail.waiting"

T = TypeVar("T")


def timeout_option(seconds: float = SECONDS) -> Callable[[Any], Any]:
    return click.option(
        "--timeout", type=click.FloatRange(min=0, min_open=True), default=seconds, metavar="SECONDS",
        expose_value=False, callback=_keep, help="Stop waiting after this time.",
    )  # fmt: skip


def timeout_seconds() -> float | None:
    """None if this command has no --timeout."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_META) if context else None


def bounded_limits(limits: ClientLimits) -> ClientLimits:
    """These limits, for a client whose requests end with the command."""
    seconds = timeout_seconds()
    if seconds is None or seconds * 1_000 >= limits.http_ms:
        return limits
    return replace(limits, http_ms=max(1, int(seconds * 1_000)))


def run_within(work: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, for as long as --timeout says. Raises Failure."""

    async def bounded() -> T:
        async with asyncio.timeout(timeout_seconds()):
            return await work

    try:
        return asyncio.run(bounded())
    except TimeoutError:
        raise Failure(
            Exit.TIMED_OUT, f"The server did not finish this within {timeout_seconds():g} seconds.",
            "It is safe to run the command again; --timeout waits longer.",
        ) from None  # fmt: skip


def _keep(ctx: click.Context, _: click.Parameter, value: float) -> None:
    ctx.meta[_META] = value
