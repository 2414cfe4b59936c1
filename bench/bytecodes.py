"""How many bytecodes the server runs per message, between the bytes of one socket and the bytes for another.

    python -m bench.bytecodes

Knows:   the real gateway, desk, loop and fold over a log and rows in memory (`tests/gateway/rig.py`).
Never:   depends on how fast the machine is or on what else runs on it: two commits can be compared anywhere.

Without the kernel, the event loop and msgpack. In `busy` one frame carries eight messages, in `phone` one. A table
for people on standard error; the last line on standard output is JSON.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import nightmail
from bench.figures import say
from nightmail.core.state import NEWEST_FOLD, ShardState
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.ids import SERVER
from nightmail.model.records import Acked, FoldRaised, ReceiptsAcked
from nightmail.model.words import Lane
from nightmail.wire.frames import decode_from_server
from nightmail.wire.items import Ask, Receipts
from tests.gateway.rig import BEN, PHONE, TABLET, Phone, Town, a_message

if TYPE_CHECKING:
    from _typeshed import TraceFunction

PACKAGE = f"{Path(nightmail.__file__).parent}/"
BY_DEVICES = decode_from_server.__code__
"""What devices read is not the server's cost."""
WARM_UP = 20
"""Rounds that are not counted: rows come into being, rings fill."""
SCENARIOS = {"busy": (8, 100), "phone": (1, 400)}
"""Messages in a frame, and frames."""


class Counted:
    """Counts bytecodes by room, from `start` to `stop`."""

    def __init__(self) -> None:
        self.rooms: Counter[str] = Counter()

    def start(self) -> None:
        sys.settrace(self._on_call)

    def stop(self) -> None:
        sys.settrace(None)

    def _on_call(self, frame: FrameType, _event: str, _value: object) -> TraceFunction | None:
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) or frame.f_code is BY_DEVICES:
            return None
        room = file.removeprefix(PACKAGE).partition("/")[0]
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def on_event(_frame: FrameType, event: str, _value: object) -> TraceFunction | None:
            if event == "opcode":
                self.rooms[room] += 1
            return on_event

        return on_event


def measure(in_frame: int, frames: int) -> dict[str, int]:
    """Bytecodes per message, by room: sent, delivered, acknowledged, and the receipt acknowledged."""
    messages = (WARM_UP + frames) * in_frame
    town = Town(GatewayLimits(sends_burst=messages), new_state=ShardState)
    town.register("ada", "ben")
    town.fold(SERVER, FoldRaised(NEWEST_FOLD))
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    counted = Counted()
    for frame in range(WARM_UP + frames):
        if frame == WARM_UP:
            counted.start()
        exchange(town, ada, ben, frame * in_frame + 1, in_frame)
    counted.stop()
    sent = town.loop.state.streams.there((PHONE, BEN)).lanes[Lane.NORMAL].last
    assert sent == messages, f"{messages - sent} messages were refused"
    return {room: round(count / (frames * in_frame)) for room, count in sorted(counted.rooms.items())}


def exchange(town: Town, ada: Phone, ben: Phone, first: int, count: int) -> None:
    numbers = range(first, first + count)
    ada.say(*(Ask(n, a_message(n)) for n in numbers))
    town.turn()
    ben.say(Ask(0, Acked(Lane.NORMAL, numbers[-1])))
    for item in ada.take():
        if isinstance(item, Receipts):
            ada.say(Ask(0, ReceiptsAcked(item.receipts[-1].seq)))
    town.turn()
    ben.link.take()
    town.pace += 5


def main() -> int:
    results = {name: measure(*sizes) for name, sizes in SCENARIOS.items()}
    for name, rooms in results.items():
        say(f"{name:8}{sum(rooms.values()):8,}  " + ", ".join(f"{room} {count:,}" for room, count in rooms.items()))
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
