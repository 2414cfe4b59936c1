"""Shows the demo's screen while the story runs.

Knows:   when to draw. A subclass knows where: in a terminal, as plain lines, in a picture.
"""

from __future__ import annotations

import asyncio

from .screen import DemoScreen

FRAME_S = 0.1


class View:
    """`async with` it: draws the screen ten times a second, and once more at the end."""

    def __init__(self, screen: DemoScreen) -> None:
        self.screen = screen
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._draw_frames())

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.draw()

    def set_caption(self, caption: str) -> None:
        self.screen.caption = caption

    def draw(self) -> None:
        """Show the screen as it is. The base class shows nothing."""

    async def _draw_frames(self) -> None:
        while True:
            self.draw()
            await asyncio.sleep(FRAME_S)
