"""The widgets of the window: the list of conversations, the messages of one, and the text field.

Knows:   how to keep the scroll position when the content changes.
Touches: only its arguments; actions of the user leave as Textual messages.
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

from .bubbles import draw, draw_summary
from .lines import Line, MessageLine
from .model import ConversationSummary

NEAR_TOP = 3
"""Lines from the top at which older messages are loaded: a day line is above the first message."""


class ConversationList(OptionList):
    """Conversations, the newest first."""

    def __init__(self) -> None:
        super().__init__(id="conversations", markup=False)
        self._listed: Sequence[ConversationSummary] = ()

    def show(self, summaries: Sequence[ConversationSummary], is_open: int | None) -> None:
        """Draw only the rows that differ. Highlights the open one, unless the list has the focus."""
        same = [summary.peer for summary in summaries] == [summary.peer for summary in self._listed]
        before, self._listed = self._listed, tuple(summaries)
        if same and self.option_count:
            for at, (old, new) in enumerate(zip(before, summaries, strict=True)):
                if old != new:
                    self.replace_option_prompt_at_index(at, self._draw(new))
        else:
            marked = self.highlighted_option.id if self.highlighted_option and self.has_focus else None
            self.set_options([Option(self._draw(summary), id=str(summary.peer)) for summary in summaries])
            self._mark(marked or (str(is_open) if is_open is not None else None))
        if not self.has_focus and is_open is not None:
            self._mark(str(is_open))

    def _mark(self, ident: str | None) -> None:
        peers = [str(summary.peer) for summary in self._listed]
        self.highlighted = peers.index(ident) if ident in peers else None

    def on_resize(self) -> None:
        for at, summary in enumerate(self._listed):
            self.replace_option_prompt_at_index(at, self._draw(summary))

    def _draw(self, summary: ConversationSummary) -> Any:
        return draw_summary(summary, max(10, self.scrollable_content_region.width - 2), _clock(summary.at))


def _clock(at_ms: int) -> str:
    if not 0 < at_ms < 1 << 60:
        return ""
    then, now = datetime.fromtimestamp(at_ms / 1000).astimezone(), datetime.now().astimezone()
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then.day} {then:%b}"


class Messages(OptionList):
    """The lines of one conversation. Messages can be selected and answered."""

    BINDINGS: ClassVar = [
        Binding("r", "select", "Reply", show=False),
        Binding("s", "save_file", "Save the file", show=False),
        Binding("delete", "give_up_file", "Do not send the file", show=False),
    ]

    class OlderWanted(Posted):
        """The reader has reached the top."""

    class FileChosen(Posted):
        """The reader wants to save the file of a message, or to stop sending it."""

        def __init__(self, message_id: str, *, gives_up: bool) -> None:
            super().__init__()
            self.message_id, self.gives_up = message_id, gives_up

    def __init__(self) -> None:
        super().__init__(id="messages", markup=False)
        self._shown: Sequence[Line] = ()

    def show(self, lines: Sequence[Line], *, to_end: bool = False) -> None:
        """Keeps the scroll position, and follows the end if the end is visible."""
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
            [Option(self._draw(line), id=_key(line), disabled=not isinstance(line, MessageLine)) for line in lines]
        )
        if marked is not None and not to_end:
            self.go_to(marked)
        self.call_after_refresh(self._settle, at_end, from_end)

    def action_save_file(self) -> None:
        self._choose(gives_up=False)

    def action_give_up_file(self) -> None:
        self._choose(gives_up=True)

    def _choose(self, *, gives_up: bool) -> None:
        at = self.highlighted
        line = self._shown[at] if at is not None and at < len(self._shown) else None
        if isinstance(line, MessageLine) and line.file is not None:
            self.post_message(self.FileChosen(line.id, gives_up=gives_up))

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
    return line.id if isinstance(line, MessageLine) else None


class Composer(TextArea):
    """Enter sends. Ctrl+J starts a new line, and so does Shift+Enter if the terminal reports it."""

    class Written(Posted):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Typed(Posted):
        """The user is writing."""

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
            if event.is_printable:
                self.post_message(self.Typed())
