"""Read marks: what the server is told, and when."""

from __future__ import annotations

from nightmail.model.records import Acked, Read, Span
from nightmail.model.words import Lane
from tests.client.script import BOB, TABLET, an_entry, connected, entries


def test_a_message_is_acknowledged_before_it_is_said_to_be_read() -> None:
    script = connected()
    script.say(entries(1, an_entry(1), an_entry(2)))
    script.machine.mark_read(BOB, script.now)
    assert script.bodies() == [Acked(Lane.NORMAL, 2, ()), Read(BOB, (Span(TABLET, Lane.NORMAL, 1, 2),))]
