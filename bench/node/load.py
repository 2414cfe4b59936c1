"""A load process: one job, told over standard input, its findings on standard output.

Started by the orchestrator, never by hand. An unexpected input ends it with an error message.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import traceback
from typing import Any

import msgspec
import uvloop

from .group_load import talk_in_group
from .idle_load import hold
from .load_messages import Order
from .machine import raise_open_files
from .mailbox_load import drain, fill
from .pair_load import talk
from .pipes import Pipes
from .watch_load import watch

JOBS = {
    "talk": talk, "talk_mqtt": talk, "fill": fill, "drain": drain, "hold": hold, "watch": watch, "group": talk_in_group,
}  # fmt: skip


def _on_mistake(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    print(context.get("message"), file=sys.stderr)
    if isinstance(mistake := context.get("exception"), BaseException):
        traceback.print_exception(mistake)
    sys.stderr.flush()
    os._exit(1)


async def _work() -> None:
    asyncio.get_running_loop().set_exception_handler(_on_mistake)
    pipes = await Pipes.open()
    order = msgspec.json.decode(await pipes.line(), type=Order)
    raise_open_files()
    # Messages make no reference cycles, so garbage collection would only disturb the measurement.
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    await JOBS[order.job](order, pipes)


if __name__ == "__main__":
    uvloop.run(_work())
