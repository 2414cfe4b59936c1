"""The window: draws the model, passes the user's actions to the client, and draws again after events.

Knows:   what is on the screen.
Never:   shows a tick or a message that the client does not have: everything is read from the client when drawn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from typing import ClassVar

from rich.traceback import Traceback
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from nightmail.cli.group_words import settings_lines
from nightmail.cli.output import plain
from nightmail.client import Client
from nightmail.client.errors import ClientError, Lagging
from nightmail.client.events import Disappeared, Event
from nightmail.client.schedule_events import ScheduleEvent
from nightmail.model.group_chain import is_group

from .conversations import Conversations
from .file_screens import PathScreen
from .group_screens import MembersScreen, NewGroupScreen
from .lines import Line, MessageLine, lines_of
from .model import ConnectionState, Model, Status
from .schedule_screens import LaterScreen, ScheduledScreen
from .screens import RecipientScreen, SafetyNumberScreen, SearchScreen, TimerScreen
from .style import CSS as STYLE
from .widgets import Composer, ConversationList, Messages
from .words import error_words, escaped, one_line

NARROW = 72
"""With fewer columns, the window shows either the list or one conversation."""
PAGE = 60
"""Messages that are loaded at first, and each time the reader reaches the top."""
_DOTS = {
    ConnectionState.ONLINE: "●",
    ConnectionState.CONNECTING: "◌",
    ConnectionState.OFFLINE: "○",
    ConnectionState.ENDED: "✗",
}


class ChatApp(App[None]):
    TITLE = "Nightmail"
    CSS = STYLE
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding("ctrl+q", "quit", "Quit"),
        Binding("ctrl+n", "new_conversation", "New", priority=True),
        Binding("ctrl+g", "new_group", "New group", priority=True),
        Binding("ctrl+f", "search", "Search", priority=True),
        Binding("ctrl+s", "safety", "Safety number", priority=True),
        Binding("ctrl+t", "timer", "Timer", priority=True),
        Binding("ctrl+l", "later", "Later", priority=True),
        Binding("ctrl+o", "send_file", "Send a file", priority=True),
        Binding("escape", "step_back", "Back"),
    ]

    def __init__(self, client: Client, person: str = "") -> None:
        super().__init__()
        self.model = Model()
        self.conversations = Conversations(client)
        self._person = person
        self._limit = PAGE
        self._new_from = ""
        self._is_focused = True
        """False while the terminal reports that it lost the focus."""
        self._is_due = False
        self.lines: list[Line] = []

    def compose(self) -> ComposeResult:
        # Kept as attributes: while a modal screen is open, a query does not find them.
        self.list, self.messages, self.composer = ConversationList(), Messages(), Composer()
        self.head, self.reply, self.bar = Static(id="head"), Static(id="reply"), Static(id="status")
        with Horizontal(id="window"):
            with Vertical(id="left"):
                yield Static(one_line(plain(self.conversations.own_name)), id="own")
                yield self.list
            with Vertical(id="right"):
                yield self.head
                yield self.messages
                yield self.reply
                yield self.composer
        yield self.bar

    def on_mount(self) -> None:
        # Subscribe before reading the history: a message that is not in the history yet then comes as an event.
        self._follow(self.conversations.client.events())
        if self.conversations.client.online:
            self.model.status = Status(ConnectionState.ONLINE)
        if self._person:
            self._open_person(self._person)
        else:
            self._draw_list()
            if self.model.conversations and not self._is_narrow:
                self._open_conversation(self.model.conversations[0].peer)
        self._draw_status()
        self._show_presence()

    # --- events ---------------------------------------------------------------------------------

    @work
    async def _follow(self, listening: AsyncIterator[Event]) -> None:
        """Handle every event of the client until the client ends."""
        while True:
            try:
                async for event in listening:
                    self._handle_client_event(event)
                return
            except Lagging:
                self._draw_soon()
            except ClientError as error:
                self._show_error(error)
                return

    def _handle_client_event(self, event: Event) -> None:
        if self.model.apply(event):
            self._draw_status()
        self.conversations.invalidate(event)
        if isinstance(event, Disappeared) and isinstance(self.screen, SearchScreen):
            self.screen.search_again()
        if isinstance(event, ScheduleEvent):
            self._draw_scheduled()
        now_ms = int(datetime.now().astimezone().timestamp() * 1000)
        if (found := self.conversations.notice(event, now_ms)) is not None:
            self.model.note(*found)
        self._draw_soon()

    def _draw_soon(self) -> None:
        """Draw once for many events in a row."""
        if not self._is_due:
            self._is_due = True
            self.set_timer(0.05, self._draw)

    def _draw(self) -> None:
        self._is_due = False
        if not self.messages.is_attached:
            return  # the window is being closed
        self._draw_lines()
        self._draw_reply()
        self._draw_list()
        self._mark_read()

    # --- drawing --------------------------------------------------------------------------------

    def _draw_list(self) -> None:
        self.model.show(self.conversations.summaries(also=self.model.open))
        self.list.show(self.model.conversations, self.model.open)
        self._draw_head()

    def _draw_head(self) -> None:
        summary = self.model.open_conversation()
        words = ""
        if summary is not None:
            marks = (
                ("  ✔ verified", summary.verified),
                ("  ⚠ number changed: Ctrl+S", summary.held),
                ("  blocked", summary.blocked),
            )
            words = plain(summary.name) + "".join(mark for mark, is_so in marks if is_so)
            words += f"  ⏱ {summary.timer}" if summary.timer else ""
            if presence := self.conversations.presence(summary.peer):
                words += f"  · {presence}"
        self.head.update(one_line(words))

    def _draw_lines(self, *, to_end: bool = False) -> None:
        if self.model.open is None:
            return
        messages = self.conversations.messages(self.model.open, self._limit)
        today = datetime.now().astimezone().date()
        notices = [*self.conversations.notices(self.model.open), *self.model.notices()]
        shown = {each.message.id for each in messages}
        lines = lines_of(messages, notices, today, new_from=self._new_from)
        lines += self.conversations.schedules.lines(self.model.open, shown)
        self.messages.show(lines, to_end=to_end)
        self.lines = lines

    def _draw_status(self) -> None:
        status = self.model.status
        about = "members" if self._is_in_group else "safety"
        keys = f"  ^N new  ^G group  ^F search  ^S {about}  ^T timer  ^L later  ^O file  ^Q quit"
        self.bar.update(one_line(f"{_DOTS[status.state]} {status.words}{'' if self._is_narrow else keys}"))
        self.bar.set_classes(status.state.value)

    def _draw_reply(self) -> None:
        said = next((e for e in self.lines if isinstance(e, MessageLine) and e.id == self.model.replying_to), None)
        self.reply.update(one_line(f"↳ {plain(said.text.replace(chr(10), ' '))}" if said else ""))
        self.reply.display = said is not None

    # --- conversations --------------------------------------------------------------------------

    def _open_conversation(self, peer: int, message_id: str = "") -> None:
        composer, messages = self.composer, self.messages
        if peer != self.model.open:
            composer.text = self.model.open_conversation_with(peer, composer.text)
            composer.move_cursor(composer.document.end)
            self._limit = PAGE
            self._new_from = self.conversations.first_unread(peer, PAGE)
            messages.highlighted = None
        self.set_class(True, "in-conversation")
        self._draw_lines(to_end=True)
        if message_id:
            while not messages.go_to(message_id) and len(self.lines) >= self._limit:
                self._limit *= 4
                self._draw_lines(to_end=True)
            messages.focus()
        else:
            composer.focus()
        self._draw_reply()
        self._draw_list()
        self._draw_status()
        self._mark_read()
        self._show_presence()
        if self._is_in_group:
            self._look_who_has(peer)

    def _open_person(self, word: str) -> None:
        try:
            self._open_conversation(self.conversations.account_of(word))
        except ClientError as error:
            self._show_error(error)

    @property
    def _is_in_group(self) -> bool:
        return self.model.open is not None and is_group(self.model.open)

    @work
    async def _look_who_has(self, group: int) -> None:
        """Learn how far the newest own message got, for a group that was opened."""
        with suppress(ClientError):
            await self.conversations.groups.look_who_has(self.conversations.client.history(group, PAGE))

    @work
    async def _create_group(self, name: str, members: str) -> None:
        try:
            self._open_conversation((await self.conversations.groups.create(name, members)).id)
        except ClientError as error:
            self._show_error(error)

    @work
    async def _mark_read(self) -> None:
        """Mark the open conversation as read, if it is visible and the terminal has the focus."""
        if self._is_focused and (peer := self._visible) is not None:
            try:
                if await self.conversations.read(peer):
                    self._draw_list()
            except ClientError as error:
                self._show_error(error)

    @property
    def _visible(self) -> int | None:
        """The account of the conversation that is on the screen."""
        return self.model.open if not self._is_narrow or self.has_class("in-conversation") else None

    def _show_presence(self) -> None:
        """Tell the server whether the user is here, and watch whom the user sees."""
        # A client that has ended is reported by its events.
        with suppress(ClientError):
            self.conversations.client.set_foreground(self._is_focused)
            self.conversations.watch(self._visible)

    # --- actions --------------------------------------------------------------------------------

    async def on_composer_written(self, event: Composer.Written) -> None:
        if self.model.open is None:
            return
        try:
            await self.conversations.send(self.model.open, event.text, self.model.replying_to)
        except ClientError as error:
            self._show_error(error)
            return
        self._clear_composer()

    def _clear_composer(self) -> None:
        """What was written is durable."""
        self.composer.text = ""
        self.model.replying_to = self._new_from = ""
        self._draw_lines(to_end=True)
        self._draw_reply()
        self._draw_list()

    def on_composer_typed(self) -> None:
        if self.model.open is not None:
            with suppress(ClientError):
                self.conversations.client.typing(self.model.open)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if isinstance(event.option_list, ConversationList):
            self._open_conversation(int(event.option_id or 0))
        elif isinstance(event.option_list, Messages):
            self.model.replying_to = event.option_id or ""
            self._draw_reply()
            self.composer.focus()

    def on_messages_older_wanted(self) -> None:
        if len(self.lines) >= self._limit:
            self._limit += PAGE
            self._draw_lines()

    def action_new_conversation(self) -> None:
        self.push_screen(RecipientScreen(), lambda word: self._open_person(word) if word else None)

    def action_new_group(self) -> None:
        self.push_screen(NewGroupScreen(), self._make_group)

    def _make_group(self, typed: tuple[str, str] | None) -> None:
        if typed:
            self._create_group(*typed)

    def action_search(self) -> None:
        self.push_screen(
            SearchScreen(self.conversations.search, self.conversations.name),
            lambda found: self._open_conversation(*found) if found else None,
        )

    def action_safety(self) -> None:
        peer = self.model.open
        if peer is None:
            return
        if self._is_in_group:
            group, members = self.conversations.client.group(peer), self.conversations.groups.members(peer)
            self.push_screen(MembersScreen(self.conversations.name(peer), members, settings_lines(group.settings)))
            return
        try:
            number, trust = self.conversations.safety_number(peer)
        except ClientError as error:
            self._show_error(error)
            return
        screen = SafetyNumberScreen(self.conversations.name(peer), number, verified=trust.verified, held=trust.held)

        async def confirm(action: str | None) -> None:
            try:
                await self.conversations.confirm_number(peer, action or "", number)
            except ClientError as error:
                self._show_error(error)
            self._draw_soon()

        self.push_screen(screen, confirm)

    def action_timer(self) -> None:
        peer = self.model.open
        if peer is None:
            return

        async def set_timer(typed: str | None) -> None:
            if typed:
                try:
                    await self.conversations.set_timer(peer, typed)
                except ClientError as error:
                    self._show_error(error)
                self._draw_soon()

        self.push_screen(TimerScreen(self.conversations.name(peer)), set_timer)

    def action_later(self) -> None:
        """Schedule what is written; if nothing is, or when asked for a time: show what is scheduled."""
        if isinstance(self.screen, LaterScreen):
            self.screen.dismiss("")
            self._show_scheduled()
        elif not isinstance(self.screen, ModalScreen):
            if self.model.open is not None and self.composer.text.strip():
                self._ask_when(self.model.open, self.composer.text.strip("\n"))
            else:
                self._show_scheduled()

    def _ask_when(self, peer: int, text: str) -> None:
        reply_to = self.model.replying_to

        async def schedule(typed: str | None) -> None:
            if typed:
                try:
                    await self.conversations.schedule(peer, text, reply_to, typed)
                except ClientError as error:
                    self._show_error(error)
                    return
                if self.model.open == peer:  # another dialog may have opened another conversation
                    self._clear_composer()

        self.push_screen(LaterScreen(self.conversations.name(peer)), schedule)

    def action_send_file(self) -> None:
        """What is written goes along with the file."""
        peer = self.model.open
        if peer is None or isinstance(self.screen, ModalScreen):
            return
        caption, reply_to = self.composer.text.strip("\n"), self.model.replying_to

        async def send(path: str | None) -> None:
            if path:
                try:
                    await self.conversations.send_file(peer, path, caption, reply_to)
                except ClientError as error:
                    self._show_error(error)
                    return
                if self.model.open == peer:
                    self._clear_composer()

        title = f"Send a file to {self.conversations.name(peer)}"
        self.push_screen(PathScreen(title, "Enter send   Esc back"), send)

    def on_messages_file_chosen(self, event: Messages.FileChosen) -> None:
        if event.gives_up:
            self._give_up(event.message_id)
            return

        def save(path: str | None) -> None:
            if path:
                self._save_file(event.message_id, path)

        self.push_screen(PathScreen("Save in a folder, or as a file", "Enter save   Esc back", "."), save)

    @work
    async def _give_up(self, message_id: str) -> None:
        with suppress(ClientError):
            await self.conversations.client.give_up(message_id)

    @work
    async def _save_file(self, message_id: str, path: str) -> None:
        try:
            saved = await self.conversations.files.save(message_id, path)
        except ClientError as error:
            self._show_error(error)
        else:
            self.notify(escaped(f"Saved {plain(str(saved))}"))
        self._draw_soon()

    def _show_scheduled(self) -> None:
        self.push_screen(ScheduledScreen(self.conversations.schedules.rows, self._cancel))

    @work
    async def _cancel(self, message_id: str) -> None:
        """Without a connection this takes until there is one; the window goes on meanwhile."""
        self.call_later(self._draw_scheduled)  # the list says meanwhile that it is being cancelled
        try:
            await self.conversations.schedules.cancel(message_id)
        except ClientError as error:
            self._show_error(error)
        self._draw_scheduled()
        self._draw_soon()

    def _draw_scheduled(self) -> None:
        if isinstance(self.screen, ScheduledScreen):
            self.screen.show_again()

    def action_step_back(self) -> None:
        if self.model.replying_to:
            self.model.replying_to = ""
            self._draw_reply()
        elif self._is_narrow:
            self.set_class(False, "in-conversation")
            self.list.focus()
            self._show_presence()
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
        self._is_focused = True
        self._mark_read()
        self._show_presence()

    def on_app_blur(self) -> None:
        self._is_focused = False
        self._show_presence()

    def _fatal_error(self) -> None:
        """Print a traceback without local variables, because they may hold message content."""
        self._exit_renderables.append(Traceback(show_locals=False))
        self._close_messages_no_wait()

    def _show_error(self, error: ClientError) -> None:
        self.notify(escaped(error_words(error)), severity="error")
