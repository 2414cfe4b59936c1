"""The window: draws the model, hands wishes to the client, and draws again when something happened.

Knows:   what is on the screen.
Never:   paints a tick or a message that the client does not have: everything is looked up when it is drawn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import ClassVar

from rich.text import Text
from rich.traceback import Traceback
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import OptionList, Static

from nightmail.cli.saying import plain
from nightmail.client import Client
from nightmail.client.errors import ClientError, Lagging
from nightmail.client.events import Event

from .lines import Line, Said, lines_of
from .model import Link, Model, Status
from .screens import AskWhom, Safety, Search
from .style import CSS as STYLE
from .talking import Talking
from .widgets import Composer, Messages, Talks

NARROW = 72
"""Below so many columns the list and the conversation take turns."""
PAGE = 60
"""Messages that are looked at, and how many more when the reader goes up."""
_DOTS = {Link.ONLINE: "●", Link.CONNECTING: "◌", Link.OFFLINE: "○", Link.ENDED: "✗"}


class ChatApp(App[None]):
    TITLE = "Nightmail"
    CSS = STYLE
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding("ctrl+q", "quit", "Leave"),
        Binding("ctrl+n", "meet", "New", priority=True),
        Binding("ctrl+f", "search", "Search", priority=True),
        Binding("ctrl+s", "safety", "Safety number", priority=True),
        Binding("escape", "step_back", "Back"),
    ]

    def __init__(self, client: Client, person: str = "") -> None:
        super().__init__()
        self.model = Model()
        self.talking = Talking(client)
        self._person = person
        self._limit = PAGE
        self._new_from = ""
        self._is_seen = True
        """The terminal has the focus, as far as it tells."""
        self._is_due = False
        self.lines: list[Line] = []

    def compose(self) -> ComposeResult:
        # Kept by name: while something stands above them, a query would not find them.
        self.list, self.messages, self.composer = Talks(), Messages(), Composer()
        self.head, self.reply, self.bar = Static(id="head"), Static(id="reply"), Static(id="status")
        with Horizontal(id="window"):
            with Vertical(id="left"):
                yield Static(_text(plain(self.talking.own_name)), id="own")
                yield self.list
            with Vertical(id="right"):
                yield self.head
                yield self.messages
                yield self.reply
                yield self.composer
        yield self.bar

    def on_mount(self) -> None:
        # Asked for before anything is looked up: what the history does not have comes as an event.
        self._follow(self.talking.client.events())
        if self.talking.client.online:
            self.model.status = Status(Link.ONLINE)
        if self._person:
            self._open_person(self._person)
        else:
            self._draw_talks()
            if self.model.talks and not self._is_narrow:
                self._turn_to(self.model.talks[0].peer)
        self._draw_status()

    # --- what happens ---------------------------------------------------------------------------

    @work
    async def _follow(self, listening: AsyncIterator[Event]) -> None:
        """Everything that the client tells, until it ends."""
        while True:
            try:
                async for event in listening:
                    self._happened(event)
                return
            except Lagging:
                self._draw_soon()
            except ClientError as error:
                self._complain(error)
                return

    def _happened(self, event: Event) -> None:
        if self.model.apply(event):
            self._draw_status()
        self.talking.changed(event)
        now_ms = int(datetime.now().astimezone().timestamp() * 1000)
        if (found := self.talking.notice(event, now_ms)) is not None:
            self.model.note(*found)
        self._draw_soon()

    def _draw_soon(self) -> None:
        """A thousand ticks at once are drawn once."""
        if not self._is_due:
            self._is_due = True
            self.set_timer(0.05, self._draw)

    def _draw(self) -> None:
        self._is_due = False
        if not self.messages.is_attached:
            return  # the window is being closed
        self._draw_lines()
        self._draw_talks()
        self._see()

    # --- drawing --------------------------------------------------------------------------------

    def _draw_talks(self) -> None:
        self.model.show(self.talking.talks(also=self.model.open))
        self.list.show(self.model.talks, self.model.open)
        self._draw_head()

    def _draw_head(self) -> None:
        talk = self.model.talk()
        words = ""
        if talk is not None:
            marks = (
                ("  ✔ verified", talk.verified),
                ("  ⚠ number changed: Ctrl+S", talk.held),
                ("  blocked", talk.blocked),
            )
            words = plain(talk.name) + "".join(mark for mark, is_so in marks if is_so)
        self.head.update(_text(words))

    def _draw_lines(self, *, to_end: bool = False) -> None:
        if self.model.open is None:
            return
        told = self.talking.told(self.model.open, self._limit)
        today = datetime.now().astimezone().date()
        notices = [*self.talking.notices(self.model.open), *self.model.notices()]
        lines = lines_of(told, notices, today, new_from=self._new_from)
        self.messages.show(lines, to_end=to_end)
        self.lines = lines

    def _draw_status(self) -> None:
        status = self.model.status
        keys = "" if self._is_narrow else "   ^N new  ^F search  ^S safety  ^Q leave"
        self.bar.update(_text(f"{_DOTS[status.link]} {status.words}{keys}"))
        self.bar.set_classes(status.link.value)

    def _draw_reply(self) -> None:
        said = next((e for e in self.lines if isinstance(e, Said) and e.id == self.model.replying_to), None)
        self.reply.update(_text(f"↳ {plain(said.text)}" if said else ""))
        self.reply.display = said is not None

    # --- conversations --------------------------------------------------------------------------

    def _turn_to(self, peer: int, message_id: str = "") -> None:
        composer, messages = self.composer, self.messages
        if peer != self.model.open:
            composer.text = self.model.turn_to(peer, composer.text)
            composer.move_cursor(composer.document.end)
            self._limit = PAGE
            self._new_from = self.talking.first_unread(peer, PAGE)
            messages.highlighted = None
        self.set_class(True, "talking")
        self._draw_lines(to_end=True)
        if message_id:
            while not messages.go_to(message_id) and len(self.lines) >= self._limit:
                self._limit *= 4
                self._draw_lines(to_end=True)
            messages.focus()
        else:
            composer.focus()
        self._draw_reply()
        self._draw_talks()
        self._see()

    def _open_person(self, word: str) -> None:
        try:
            self._turn_to(self.talking.meet(word))
        except ClientError as error:
            self._complain(error)

    @work
    async def _see(self) -> None:
        """What is on the screen, with somebody before it, is read."""
        visible = self.model.open is not None and (not self._is_narrow or self.has_class("talking"))
        if self._is_seen and visible and self.model.open is not None:
            try:
                if await self.talking.read(self.model.open):
                    self._draw_talks()
            except ClientError as error:
                self._complain(error)

    # --- wishes ---------------------------------------------------------------------------------

    async def on_composer_written(self, event: Composer.Written) -> None:
        if self.model.open is None:
            return
        try:
            await self.talking.say(self.model.open, event.text, self.model.replying_to)
        except ClientError as error:
            self._complain(error)
            return
        self.composer.text = ""
        self.model.replying_to = self._new_from = ""
        self._draw_lines(to_end=True)
        self._draw_reply()
        self._draw_talks()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if isinstance(event.option_list, Talks):
            self._turn_to(int(event.option_id or 0))
        elif isinstance(event.option_list, Messages):
            self.model.replying_to = event.option_id or ""
            self._draw_reply()
            self.composer.focus()

    def on_messages_older_wanted(self) -> None:
        if len(self.lines) >= self._limit:
            self._limit += PAGE
            self._draw_lines()

    def action_meet(self) -> None:
        self.push_screen(AskWhom(), lambda word: self._open_person(word) if word else None)

    def action_search(self) -> None:
        self.push_screen(
            Search(self.talking.search, self.talking.name), lambda found: self._turn_to(*found) if found else None
        )

    def action_safety(self) -> None:
        peer = self.model.open
        if peer is None:
            return
        try:
            number, trust = self.talking.safety(peer)
        except ClientError as error:
            self._complain(error)
            return
        screen = Safety(self.talking.name(peer), number, verified=trust.verified, held=trust.held)

        async def agree(wish: str | None) -> None:
            try:
                await self.talking.agree(peer, wish or "", number)
            except ClientError as error:
                self._complain(error)
            self._draw_soon()

        self.push_screen(screen, agree)

    def action_step_back(self) -> None:
        if self.model.replying_to:
            self.model.replying_to = ""
            self._draw_reply()
        elif self._is_narrow:
            self.set_class(False, "talking")
            self.list.focus()
        else:
            self.composer.focus()

    # --- the terminal ---------------------------------------------------------------------------

    @property
    def _is_narrow(self) -> bool:
        return self.size.width < NARROW

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < NARROW, "narrow")
        self._draw_status()

    def on_app_focus(self) -> None:
        self._is_seen = True
        self._see()

    def on_app_blur(self) -> None:
        self._is_seen = False

    def _fatal_error(self) -> None:
        """A mistake of ours: a traceback without the values, for they may be what somebody wrote."""
        self._exit_renderables.append(Traceback(show_locals=False))
        self._close_messages_no_wait()

    def _complain(self, error: ClientError) -> None:
        text = str(error)
        self.notify(_escape(f"{text[:1].upper()}{text[1:]}."), severity="error")


def _text(words: str) -> Text:
    return Text(words, no_wrap=True, overflow="ellipsis")


def _escape(words: str) -> str:
    return words.replace("[", "\\[")
