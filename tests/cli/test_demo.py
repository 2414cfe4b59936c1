"""`nightmail demo`, and the moving picture."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from rich.segment import Segment
from rich.style import Style

from nightmail.cli.moving import Film
from tests.cli.hand import Hand


def test_the_story_is_true_and_can_be_drawn(hand: Hand) -> None:
    result = hand.types("demo", "--beat", "0", "--record", "demo.svg", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"messages": 6, "kills": 1, "kept": True}
    drawn = (hand.folder / "demo.svg").read_text()
    ElementTree.fromstring(drawn)
    assert "And the tickets!" in drawn


def test_a_row_that_stays_is_drawn_once_and_one_that_changes_is_seen_in_its_time() -> None:
    film = Film()
    film.add(10.0, [[Segment("stays", Style(color="red"))], [Segment("goes")]])
    film.add(10.5, [[Segment("stays", Style(color="red"))], [Segment("goes")]])
    film.add(11.0, [[Segment("stays", Style(color="red"))], [Segment("comes <&>")]])
    drawn = film.svg("a film")
    ElementTree.fromstring(drawn)
    assert drawn.count(">stays<") == drawn.count(">goes<") == drawn.count(">comes &lt;&amp;&gt;<") == 1
    assert "@keyframes k0{0.00%{opacity:1}20.00%{opacity:0}}" in drawn
    assert "@keyframes k1{0.00%{opacity:0}20.00%{opacity:1}}" in drawn
    # Where nothing moves, the last frame is shown.
    assert drawn.count("class='h'") == 1
