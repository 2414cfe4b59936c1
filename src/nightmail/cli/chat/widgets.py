"""The parts of the window: the list of conversations, the messages of one, and where one writes.

Knows:   how to stay where the reader is when something changes.
Touches: only what it is handed; a wish of the person leaves as a message of Textual's.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding
from textual.message import Message as Posted
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from .bubbles import draw, draw_talk
from .lines import Line, Said
from .model import Talk

NEAR_TOP = 3
"""The first message stands below a day, and walking ends there."""


class Talks(OptionList):
    """Conversations, the newest first."""

    def __init__(self) -> None:
        super().__init__(id="talks", markup=False)
        self._listed: Sequence[Talk] = ()

    def show(self, talks: Sequence[Talk], is_open: int | None) -> None:
        """Only what differs is drawn. The one that is open is marked, unless somebody walks the list."""
        same = [talk.peer for talk in talks] == [talk.peer for talk in self._listed]
        before, self._listed = self._listed, tuple(talks)
        if same and self.option_count:
            for at, (old, new) in enumerate(zip(before, talks, strict=True)):
                if old != new:
                    self.replace_option_prompt_at_index(at, self._draw(new))
        else:
            marked = self.highlighted_option.id if self.highlighted_option and self.has_focus else None
            self.set_options([Option(self._draw(talk), id=str(talk.peer)) for talk in talks])
            self._mark(marked or (str(is_open) if is_open is not None else None))
        if not self.has_focus and is_open is not None:
            self._mark(str(is_open))

    def _mark(self, ident: str | None) -> None:
        peers = [str(talk.peer) for talk in self._listed]
        self.highlighted = peers.index(ident) if ident in peers else None

    def on_resize(self) -> None:
        for at, talk in enumerate(self._listed):
            self.replace_option_prompt_at_index(at, self._draw(talk))

    def _draw(self, talk: Talk) -> Any:
        return draw_talk(talk, max(10, self.scrollable_content_region.width - 2), _clock(talk.at))


def _clock(at_ms: int) -> str:
    if not 0 < at_ms < 1 << 60:
        return ""
    then, now = datetime.fromtimestamp(at_ms / 1000).astimezone(), datetime.now().astimezone()
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then.day} {then:%b}"


class Messages(OptionList):
    """The lines of one conversation. A message can be walked to, and answered."""

    BINDINGS: ClassVar = [Binding("r", "select", "Reply", show=False)]

    class OlderWanted(Posted):
        """The reader is at the top."""

    def __init__(self) -> None:
        super().__init__(id="messages", markup=False)
        self._shown: Sequence[Line] = ()

    def show(self, lines: Sequence[Line], *, to_end: bool = False) -> None:
        """Stays where it is read, unless that is the end."""
        at_end = to_end or self.scroll_offset.y >= self.max_scroll_y - 1
        before, self._shown = self._shown, tuple(lines)
        if not to_end and len(before) == len(lines) and [_key(a) for a in before] == [_key(b) for b in lines]:
            for at, (old, new) in enumerate(zip(before, lines, strict=True)):
                if old != new:
                    self.replace_option_prompt_at_index(at, self._draw(new))
            return
        marked = self.highlighted_option.id if self.highlighted_option else None
        from_end = self.max_scroll_y - self.scroll_offset.y
        self.set_options(
            [Option(self._draw(line), id=_key(line), disabled=not isinstance(line, Said)) for line in lines]
        )
        if marked is not None and not to_end:
            self.go_to(marked)
        self.call_after_refresh(self._settle, at_end, from_end)

    def _settle(self, at_end: bool, from_end: float) -> None:
        self.scroll_to(y=self.max_scroll_y if at_end else max(0, self.max_scroll_y - from_end), animate=False)

    def go_to(self, message_id: str) -> bool:
        keys = [_key(line) for line in self._shown]
        if message_id not in keys:
            return False
        self.highlighted = keys.index(message_id)
        return True

    def on_resize(self) -> None:
        for at, line in enumerate(self._shown):
            self.replace_option_prompt_at_index(at, self._draw(line))

    def on_focus(self) -> None:
        if self.highlighted is None:
            self.action_last()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value < NEAR_TOP <= old_value:
            self.post_message(self.OlderWanted())

    def _draw(self, line: Line) -> Any:
        return draw(line, max(20, self.scrollable_content_region.width - 2))


def _key(line: Line) -> str | None:
    return line.id if isinstance(line, Said) else None


class Composer(TextArea):
    """Enter sends; Ctrl+J, or Shift+Enter where the terminal tells it apart, begins a new line."""

    class Written(Posted):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(
            id="composer", soft_wrap=True, placeholder="Write a message", tab_behavior="focus", compact=True
        )

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.prevent_default()
            event.stop()
            if self.text.strip():
                self.post_message(self.Written(self.text.strip("\n")))
        elif event.key in {"ctrl+j", "shift+enter", "alt+enter"}:
            event.prevent_default()
            event.stop()
            self.insert("\n")
        else:
            await super()._on_key(event)
