from __future__ import annotations

from bench.bytecodes import measure


def test_every_room_that_a_message_passes_is_counted_and_the_count_does_not_change() -> None:
    first, again = measure(in_frame=2, frames=3), measure(in_frame=2, frames=3)
    assert first == again
    assert set(first) == {"core", "engine", "gateway", "model", "wire"}
    assert all(first.values())
