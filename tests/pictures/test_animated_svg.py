"""An animated SVG from the frames of a terminal."""

from __future__ import annotations

from xml.etree import ElementTree

from rich.segment import Segment
from rich.style import Style

from pictures.animated_svg import AnimatedSvg


def test_a_row_that_stays_is_drawn_once_and_one_that_changes_is_seen_in_its_time() -> None:
    svg = AnimatedSvg()
    svg.add(10.0, [[Segment("stays", Style(color="red"))], [Segment("goes")]])
    svg.add(10.5, [[Segment("stays", Style(color="red"))], [Segment("goes")]])
    svg.add(11.0, [[Segment("stays", Style(color="red"))], [Segment("comes <&>")]])
    drawn = svg.svg("a title")
    ElementTree.fromstring(drawn)
    assert drawn.count(">stays<") == drawn.count(">goes<") == drawn.count(">comes &lt;&amp;&gt;<") == 1
    assert "@keyframes k0{0.00%{opacity:1}20.00%{opacity:0}}" in drawn
    assert "@keyframes k1{0.00%{opacity:0}20.00%{opacity:1}}" in drawn
    # Where animations are off, the last frame is shown.
    assert drawn.count("class='h'") == 1
