"""Everything that a chat asks of the client, and what it makes of events.

Knows:   the client's face, and nothing of a terminal.
Never:   keeps a message: it is looked up whenever it is shown. Only the list of conversations is kept, until
         something happens in one of them.
"""

from __future__ import annotations

from nightmail.cli.people import Names, whom
from nightmail.client import Client
from nightmail.client.client import Trust
from nightmail.client.events import (
    Event,
    KeysRefused,
    ListRefused,
    MessageFailed,
    SecurityCodeChanged,
    SentAck,
    Unreadable,
)
from nightmail.client.messages import Message
from nightmail.client.store.search import Found, text_of
from nightmail.model.handles import spelled
from nightmail.model.ids import account_id, account_of

from .lines import Notice, Told
from .model import Talk

NO_TEXT = "(something that is not text)"


class Talking:
    def __init__(self, client: Client) -> None:
        self.client = client
        self._names = Names(client)
        self._typed: dict[int, str] = {}
        """Account → the handle that somebody typed for it: nobody else says what it is called."""
        self._known: dict[int, Talk] = {}
        """With hundreds of conversations, looking all of them up for every tick would be felt."""

    @property
    def own_name(self) -> str:
        return self.client.identity.handle

    # --- looking --------------------------------------------------------------------------------

    def talks(self, also: int | None = None) -> list[Talk]:
        """Every conversation, and one that may have no message yet."""
        peers = [row.peer for row in self.client.conversations()]
        if also is not None and also not in peers:
            peers.append(also)
        if self.client.unread() != sum(talk.unread for talk in self._known.values()):
            self._known.clear()  # another own device has read something, which nobody tells
        for peer in peers:
            if peer not in self._known:
                self._known[peer] = self._talk(peer)
        return [self._known[peer] for peer in peers]

    def changed(self, event: Event) -> None:
        """Something happened: whoever it concerns is looked up anew."""
        match event:
            case Message():
                self._known.pop(event.peer, None)
            case SentAck() | MessageFailed():
                for account in event.conversation_id.split("-"):
                    self._known.pop(int(account, 16), None)
            case SecurityCodeChanged() | ListRefused() | KeysRefused():
                self._known.pop(event.account, None)
            case _:
                pass

    def _talk(self, peer: int) -> Talk:
        newest = self.client.history(peer, 1)
        preview, at = "", 0
        if newest:
            said = text_of(newest[0])
            preview = ("you: " if newest[0].own else "") + (said if said is not None else NO_TEXT)
            at = newest[0].at or (1 << 62)
        trust = self.client.trust(peer)
        return Talk(
            peer, self.name(peer), at, preview, self.client.unread(peer), trust.verified, trust.held,
            self.client.people.get(peer).blocked,
        )  # fmt: skip

    def told(self, peer: int, limit: int) -> list[Told]:
        return [
            Told(message, text if (text := text_of(message)) is not None else NO_TEXT, message.reply_to)
            for message in self.client.history(peer, limit)
        ]

    def notices(self, peer: int) -> list[Notice]:
        """What stands in a conversation for good."""
        trust = self.client.trust(peer)
        if not trust.changed_at:
            return []
        words = f"The security code with {self.name(peer)} has changed."
        words += " What you write waits: Ctrl+S." if trust.held else ""
        return [Notice(trust.changed_at, words, grave=True)]

    def first_unread(self, peer: int, limit: int) -> str:
        """The oldest of the newest messages that nobody has read; empty: none."""
        count = self.client.unread(peer)
        theirs = [message.id for message in self.client.history(peer, limit) if not message.own]
        return theirs[-count] if count and count <= len(theirs) else ""

    def name(self, peer: int) -> str:
        name = self._names.of(peer)
        return self._typed.get(peer, name) if name == f"{peer:x}" else name

    def search(self, words: str) -> list[Found]:
        return self.client.search(words)

    # --- doing ----------------------------------------------------------------------------------

    def meet(self, word: str) -> int:
        """The account of somebody who was typed. Raises Misused."""
        found = whom(self.client, word)
        if isinstance(found, int):
            return found
        found = spelled(found)
        self._typed[account := account_id(found)] = found
        return account

    async def say(self, peer: int, text: str, reply_to: str) -> None:
        """Queue it; durable when this returns."""
        handle = self.client.people.get(peer).handle or self._typed.get(peer, "")
        await self.client.send(handle or peer, text, reply_to=reply_to)
        self._known.pop(peer, None)

    async def read(self, peer: int) -> bool:
        """Whether something became read by this."""
        count = await self.client.read(peer) if self.client.unread(peer) else 0
        if count:
            self._known.pop(peer, None)
        return bool(count)

    def safety(self, peer: int) -> tuple[str, Trust]:
        """The number to compare, and what came of it so far. Raises Misused if a key is not known yet."""
        return self.client.safety_number(peer), self.client.trust(peer)

    async def agree(self, peer: int, wish: str, number: str) -> None:
        """`wish` is "verify" or "accept", and `number` what was shown; anything else changes nothing."""
        if wish == "verify":
            await self.client.verify(peer, number)
        elif wish == "accept":
            await self.client.accept(peer, number)
        self._known.pop(peer, None)

    # --- what happened --------------------------------------------------------------------------

    def notice(self, event: Event, at: int) -> tuple[int, Notice] | None:
        """What belongs into a conversation although nobody wrote it: whose, and the words."""
        match event:
            case ListRefused() | KeysRefused():
                words = "What the server says about their devices is not what they signed. Nothing is sent meanwhile."
                return event.account, Notice(at, words, grave=True)
            case Unreadable():
                words = "Something came that this device cannot open; it was asked for again."
                return account_of(event.by), Notice(at, words)
            case _:
                return None
