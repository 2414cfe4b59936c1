"""The chat as a picture."""

from __future__ import annotations

from xml.etree import ElementTree

from pictures.chat import draw


def test_the_picture_shows_the_conversation_and_loads_nothing() -> None:
    drawn = draw()
    ElementTree.fromstring(drawn)
    assert "@font-face" not in drawn
    assert "night&#160;mail&#160;arrive" in drawn
    assert "Carol:&#160;I&#160;have&#160;two&#160;pairs!" in drawn
