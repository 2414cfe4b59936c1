"""The demo as a picture."""

from __future__ import annotations

from xml.etree import ElementTree

from pictures.demo import record


def test_the_picture_shows_what_the_devices_showed() -> None:
    drawn = record(beat_s=0)
    ElementTree.fromstring(drawn)
    assert "And the tickets!" in drawn
    assert "read by 2 of 2" in drawn
