"""Everything that the chat window asks of the client, and the notices that it makes from events.

Knows:   the client's API, and nothing about a terminal.
Never:   caches a message. Only the rows of the list are cached, until an event changes one of them.
"""

from __future__ import annotations

from nightmail.cli.contact_names import ContactNames, resolve_any
from nightmail.cli.durations import check_timer, duration_ms, duration_words, life_differs, timer_words
from nightmail.cli.errors import no_keys_yet
from nightmail.cli.presence_words import sight_words
from nightmail.client import Client, Group
from nightmail.client.client import Trust
from nightmail.client.errors import Misused
from nightmail.client.events import (
    Disappeared,
    Event,
    KeysRefused,
    LifeDiffers,
    ListRefused,
    ListUnsigned,
    MessageFailed,
    SecurityCodeChanged,
    SentAck,
    TimerChanged,
    Unreadable,
)
from nightmail.client.group_events import GroupEvent
from nightmail.client.messages import Message, Tick, unnamed
from nightmail.client.store.rows import Conversation
from nightmail.client.store.search import Found, text_of
from nightmail.model.group_chain import is_group
from nightmail.model.ids import MessageId, account_of

from .files import ChatFiles
from .groups import ChatGroups
from .lines import Notice, ShownMessage
from .model import ConversationSummary
from .schedules import ChatSchedules, text_content

NO_TEXT = "(something that is not text)"
DISAPPEARED = "(disappeared)"


class Conversations:
    def __init__(self, client: Client) -> None:
        self.client = client
        self._names = ContactNames(client)
        self.groups = ChatGroups(client, self._names)
        self.files = ChatFiles(client)
        self.schedules = ChatSchedules(client, self.name)
        self._typed: dict[int, str] = {}
        """Account → the handle that the user typed for it. The server tells account numbers only."""
        self._known: dict[int, ConversationSummary] = {}
        """Cached rows: with hundreds of conversations, reading all of them for every tick would be slow."""

    @property
    def own_name(self) -> str:
        return self.client.identity.handle

    # --- reading --------------------------------------------------------------------------------

    def summaries(self, also: int | None = None) -> list[ConversationSummary]:
        """Every conversation that was begun, also by a message for later, the groups, and one that may have no message
        yet."""
        groups = self.client.group_names()
        peers = [row.peer for row in self.client.conversations() if row.peer not in groups and self._is_begun(row)]
        peers += groups
        peers += [peer for peer in self.schedules.peers() if peer not in peers]
        if also is not None and also not in peers:
            peers.append(also)
        if self.client.unread() != sum(summary.unread for summary in self._known.values()):
            self._known.clear()  # another own device has read messages; there is no event for that
        for peer in peers:
            if peer not in self._known:
                self._known[peer] = self._summary(peer)
        return [self._known[peer] for peer in peers]

    def _is_begun(self, row: Conversation) -> bool:
        """Somebody whose handle was learned in a group is no conversation."""
        return bool(row.seen) or bool(self.client.history(row.peer, 1))

    def invalidate(self, event: Event) -> None:
        """Drop the cached row of the conversation that the event changes."""
        match event:
            case Message() | TimerChanged():
                self._known.pop(event.peer, None)
            case SentAck() | MessageFailed() | Disappeared():
                for account in event.conversation_id.split("-"):
                    self._known.pop(int(account, 16), None)
            case SecurityCodeChanged() | ListRefused() | KeysRefused():
                self._known.pop(event.account, None)
            case GroupEvent():
                self._known.pop(event.group, None)
            case _:
                pass
        self.groups.take(event)
        self.files.take(event)

    def _summary(self, peer: int) -> ConversationSummary:
        newest = self.client.history(peer, 1)
        preview, at, failed = "", 0, False
        if newest:
            said = self._text(newest[0])
            author = "you" if newest[0].own else self.groups.author(newest[0])
            preview = f"{author}: {said}" if author and newest[0].timer_ms is None else said
            failed = newest[0].own and newest[0].state is Tick.FAILED
            # A message that waits to be sent is the newest of all; one that failed has the time of its writing.
            at = newest[0].at or (MessageId.parse(newest[0].id).at_ms if failed else 1 << 62)
        trust, life_ms = self.client.trust(peer), self.client.timer(peer)
        return ConversationSummary(
            peer, self.name(peer), at, preview, self.client.unread(peer), trust.verified, trust.held,
            self.client.people.get(peer).blocked, failed, duration_words(life_ms) if life_ms else "",
        )  # fmt: skip

    def _text(self, message: Message) -> str:
        """What is shown of a message."""
        if (timer_ms := message.timer_ms) is not None:
            who = "You" if message.own else self.name(message.peer)
            return f"{who} set the timer: messages {timer_words(timer_ms)}."
        if message.is_erased:
            return DISAPPEARED
        text = text_of(message)
        return NO_TEXT if text is None else text

    def messages(self, peer: int, limit: int) -> list[ShownMessage]:
        return [
            ShownMessage(
                message,
                self._text(message),
                message.reply_to_message_id,
                is_notice=message.timer_ms is not None,
                is_queued=message.group is None and self.client.is_queued(message),
                author=self.groups.author(message),
                seen=self.groups.seen(message),
                file=self.files.line(message),
            )
            for message in self.client.history(peer, limit)
        ]

    def notices(self, peer: int) -> list[Notice]:
        """Notices that stay in a conversation after a restart."""
        trust, failed = self.client.trust(peer), self.schedules.notices(peer)
        if not trust.changed_at:
            return failed
        words = f"The security code with {self.name(peer)} has changed."
        words += " Your messages wait: Ctrl+S." if trust.held else ""
        return [Notice(trust.changed_at, words, grave=True), *failed]

    def first_unread(self, peer: int, limit: int) -> str:
        """Id of the first unread message among the newest `limit`; empty if there is none."""
        count = self.client.unread(peer)
        messages = self.client.history(peer, limit)
        theirs = [message.id for message in messages if not message.own and message.timer_ms is None]
        return theirs[-count] if count and count <= len(theirs) else ""

    def name(self, peer: int) -> str:
        name = self._names.of(peer)
        return self._typed.get(peer, name) if name == unnamed(peer) else name

    def presence(self, peer: int) -> str:
        """Whether the other person is typing or online, or when they were last seen; empty if nothing is known. Of a
        group, who is typing, or how many are in it."""
        if is_group(peer):
            return self.groups.head(peer)
        if self.client.is_typing(peer):
            return "typing…"
        sight = self.client.sight(peer)
        return sight_words(sight) if sight else ""

    def search(self, words: str) -> list[Found]:
        return self.client.search(words)

    # --- actions --------------------------------------------------------------------------------

    def account_of(self, word: str) -> int:
        """The account or the group that a typed handle or name means. Raises Misused, NoSuchGroup."""
        found = resolve_any(self.client, word)
        if isinstance(found, Group):
            return found.id
        if isinstance(found, int):
            return found
        contact = self.client.people.get(found)
        self._typed[contact.account] = contact.handle
        return contact.account

    async def send(self, peer: int, text: str, reply_to: str) -> None:
        """Queue a message. It is durable when this returns. In a group, @name mentions a member."""
        if is_group(peer):
            mentions = self.groups.mentions(peer, text)
            await self.client.send(peer, text, reply_to_message_id=reply_to, mentions=mentions)
        else:
            await self.client.send(self._addressee(peer), text, reply_to_message_id=reply_to)
        self._known.pop(peer, None)

    async def send_file(self, peer: int, path: str, caption: str, reply_to: str) -> None:
        """Queue a file. That is durable when this returns. Raises FileUnusable and what sending raises."""
        to = peer if is_group(peer) else self._addressee(peer)
        await self.client.send_file(to, path, caption=caption, reply_to_message_id=reply_to)
        self._known.pop(peer, None)

    async def schedule(self, peer: int, text: str, reply_to: str, typed: str) -> None:
        """Have a message delivered at the time that was typed. It is durable when this returns. Raises Misused,
        BadTime and what sending raises."""
        mentions = self.groups.mentions(peer, text) if is_group(peer) else ()
        to = peer if is_group(peer) else self._addressee(peer)
        await self.schedules.schedule(to, text_content(text, reply_to, mentions), typed)

    def _addressee(self, peer: int) -> str | int:
        """A person, by the handle if it is known: the client then learns it."""
        return self.client.people.get(peer).handle or self._typed.get(peer, "") or peer

    async def set_timer(self, peer: int, typed: str) -> None:
        """Set the timer of a conversation. Raises Misused."""
        try:
            life_ms = duration_ms(typed)
        except ValueError as error:
            raise Misused(str(error).removesuffix(".")) from None
        if is_group(peer):
            check_timer(life_ms)
            await self.client.change_group(peer, timer_ms=life_ms)
        else:
            await self.client.set_timer(self._addressee(peer), life_ms)
        self._known.pop(peer, None)

    def watch(self, peer: int | None) -> None:
        """This conversation is on the screen, or none is."""
        is_nobody = peer is None or is_group(peer) or peer == self.client.identity.account
        self.client.watch(*(() if peer is None or is_nobody else (peer,)))

    async def read(self, peer: int) -> bool:
        """Mark the conversation as read. True if there was an unread message."""
        count = await self.client.read(peer) if self.client.unread(peer) else 0
        if count:
            self._known.pop(peer, None)
        return bool(count)

    def safety_number(self, peer: int) -> tuple[str, Trust]:
        """The number to compare, and whether it is verified. Raises Misused if the key is not known yet."""
        return self.client.safety_number(peer), self.client.trust(peer)

    async def confirm_number(self, peer: int, action: str, number: str) -> None:
        """`action` is "verify" or "accept", otherwise nothing happens; `number` is the one that was shown."""
        if action == "verify":
            await self.client.verify(peer, number)
        elif action == "accept":
            await self.client.accept(peer, number)
        self._known.pop(peer, None)

    # --- events ---------------------------------------------------------------------------------

    def notice(self, event: Event, at: int) -> tuple[int, Notice] | None:
        """The notice that an event adds to a conversation, with the account or group of that conversation."""
        match event:
            case ListUnsigned():
                return event.account, Notice(at, no_keys_yet(event.handle), grave=True)
            case ListRefused() | KeysRefused():
                words = "The server's list of their devices does not have their signature. Messages are not sent."
                return event.account, Notice(at, words, grave=True)
            case LifeDiffers():
                return event.peer, Notice(at, life_differs(event.said_ms, event.sealed_ms), grave=True)
            case Unreadable():
                words = "This device cannot decrypt a message. Its sender was asked to send it again."
                return account_of(event.by), Notice(at, words)
            case _:
                return self.groups.notice(event, at)
