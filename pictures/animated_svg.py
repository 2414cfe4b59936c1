"""An animated SVG from the frames of a terminal.

Knows:   that most rows stay the same from frame to frame: each distinct row is drawn once, with the times at which it
         is visible. Where animations are off (print, reduced motion), the last frame is shown.
Never:   makes the SVG load anything: no font, no script.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from typing import TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME as THEME

CELL_W, CELL_H, MARGIN = 8.4, 18, 14
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
LAST_S = 4.0
"""How long the last frame stays before the animation repeats."""

Row: TypeAlias = tuple[tuple[str, Style | None], ...]
Span: TypeAlias = tuple[float, float]


class AnimatedSvg:
    """Frames, each with the time at which it began."""

    def __init__(self) -> None:
        self._frames: list[tuple[float, list[Row]]] = []

    def add(self, at_s: float, rows: Sequence[Sequence[Segment]]) -> None:
        frame = [tuple((part.text, part.style) for part in row) for row in rows]
        if not self._frames or self._frames[-1][1] != frame:
            self._frames.append((at_s, frame))

    def svg(self, title: str) -> str:
        """The finished file. Raises ValueError if there is no frame."""
        if not self._frames:
            raise ValueError("there is no frame")
        start = self._frames[0][0]
        seconds = self._frames[-1][0] - start + LAST_S
        ends = [at - start for at, _ in self._frames[1:]] + [seconds]
        seen: defaultdict[tuple[int, Row], list[Span]] = defaultdict(list)
        for (at, frame), end in zip(self._frames, ends, strict=True):
            for y, row in enumerate(frame):
                spans = seen[y, row]
                if spans and spans[-1][1] == at - start:
                    spans[-1] = (spans[-1][0], end)
                else:
                    spans.append((at - start, end))
        names: dict[tuple[Span, ...], str] = {}
        drawn: list[str] = []
        for (y, row), spans in seen.items():
            texts = _texts(row, y)
            if not texts:
                continue
            if spans == [(0.0, seconds)]:
                drawn.append(f"<g>{texts}</g>")
                continue
            name = names.setdefault(tuple(spans), f"k{len(names)}")
            hidden = "" if spans[-1][1] == seconds else " class='h'"
            drawn.append(f"<g{hidden} style='animation-name:{name}'>{texts}</g>")
        height = len(self._frames[0][1])
        width = max(sum(cell_len(text) for text, _ in row) for row in self._frames[0][1])
        return _page(title, width, height, seconds, names, drawn)


def _texts(row: Row, y: int) -> str:
    texts: list[str] = []
    x = 0
    for text, style in row:
        cells = cell_len(text)
        if stripped := text.strip(" "):
            left = x + cell_len(text) - cell_len(text.lstrip(" "))
            at = f"x='{MARGIN + left * CELL_W:.1f}' y='{MARGIN + (y + 0.75) * CELL_H:.1f}'"
            # An explicit width keeps the columns with any font.
            size = f"textLength='{cell_len(stripped) * CELL_W:.1f}'"
            texts.append(f"<text {at} {size}{_look(style)}>{escape(stripped)}</text>")
        x += cells
    return "".join(texts)


def _look(style: Style | None) -> str:
    if style is None:
        return ""
    colour = style.color.get_truecolor(THEME) if style.color and not style.color.is_default else None
    look = f" fill='{colour.hex}'" if colour else ""
    look += " font-weight='bold'" if style.bold else ""
    return look + (" opacity='.55'" if style.dim else "")


def _page(
    title: str, width: int, height: int, seconds: float, names: dict[tuple[Span, ...], str], drawn: list[str]
) -> str:  # fmt: skip
    w, h = width * CELL_W + 2 * MARGIN, height * CELL_H + 2 * MARGIN
    frames = "\n".join(f"@keyframes {name}{{{_keys(spans, seconds)}}}" for spans, name in names.items())
    body = "\n".join(drawn)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" role="img" aria-label="{escape(title)}">
<title>{escape(title)}</title>
<style>
svg{{fill:#c5c8c6;font:14px {FONT}}}
text{{white-space:pre}}
g{{animation-duration:{seconds:.2f}s;animation-timing-function:step-end;animation-iteration-count:infinite}}
.h{{opacity:0}}
{frames}
@media (prefers-reduced-motion:reduce){{g{{animation:none!important}}}}
</style>
<rect width="100%" height="100%" rx="10" fill="#16181d"/>
{body}
</svg>
"""


def _keys(spans: tuple[Span, ...], seconds: float) -> str:
    """Visible from the beginning to the end of each span, hidden otherwise."""
    keys = {0.0: 0}
    for begin, end in spans:
        keys[begin] = 1
        if end < seconds:
            keys[end] = 0
    return "".join(f"{at / seconds * 100:.2f}%{{opacity:{shown}}}" for at, shown in sorted(keys.items()))
