"""What the chat window shows of groups, and asks of the client about them.

Knows:   how far messages to groups got, as this window was told. Everything else is read from the client.
"""

from __future__ import annotations

import re

from nightmail.cli.contact_names import ContactNames, resolve_people
from nightmail.cli.group_words import Named, event_words, joined, short_seen_words, standing_words
from nightmail.client import Client, Group, Message
from nightmail.client.errors import Misused
from nightmail.client.events import Event
from nightmail.client.group_events import (
    GroupBroken,
    GroupChangeRefused,
    GroupReceipt,
    GroupUpdated,
    MemberJoined,
    MemberMissing,
    MembersDiffer,
)
from nightmail.client.messages import Tick
from nightmail.model.group_rows import MemberState
from nightmail.model.ids import account_of
from nightmail.model.roster import Role

from .lines import Notice

_MENTION = re.compile(r"(?<!\S)@(\S+)")
_PUNCTUATION = ".,:;!?)"


class ChatGroups:
    def __init__(self, client: Client, names: ContactNames) -> None:
        self._client, self._names = client, names
        self._seen: dict[str, str] = {}
        """Message → how many members have it, or have read it."""

    # --- reading --------------------------------------------------------------------------------

    def author(self, message: Message) -> str:
        """Who wrote a message in a group; empty for own ones, and between two people."""
        if message.group is None or message.own:
            return ""
        return self._names.of(account_of(message.by))

    def seen(self, message: Message) -> str:
        return self._seen.get(message.id, "") if message.group is not None and message.own else ""

    def head(self, group: int) -> str:
        """Who is typing; otherwise how many members there are, or why this account is none."""
        typing = [self._names.of(account) for account in self._client.typing_in(group)]
        if typing:
            return f"{joined(typing)} {'is' if len(typing) == 1 else 'are'} typing…"
        found = self._client.group(group)
        count = len(found.members)
        return f"{count} member{'' if count == 1 else 's'}" if found.is_joined else standing_words(found)

    def members(self, group: int) -> list[tuple[str, str]]:
        """(Name, what somebody is in the group), for a dialog."""
        found = self._client.group(group)
        return [
            (
                self._names.or_you(member.account),
                member.role.name.lower() if member.state is MemberState.JOINED else member.state.name.lower(),
            )
            for member in found.members
        ]

    # --- actions --------------------------------------------------------------------------------

    async def create(self, name: str, typed: str) -> Group:
        """`typed` are handles or names, separated by commas, or by spaces. Raises Misused, GroupError."""
        words = tuple(word.strip() for word in typed.split("," if "," in typed else None) if word.strip())
        if not words:
            raise Misused("a group needs somebody else: name its members")
        return await self._client.create_group(name, resolve_people(self._client, words))

    def mentions(self, group: int, text: str) -> list[int]:
        """The members whom a text names by @ and their handle, or the name that they have here."""
        typed = {word.rstrip(_PUNCTUATION).casefold() for word in _MENTION.findall(text)}
        if not typed:
            return []
        members = self._client.group(group).members
        return [
            member.account
            for member in members
            if typed & {member.handle.casefold(), self._names.of(member.account).casefold()}
        ]

    async def look_who_has(self, messages: list[Message]) -> None:
        """Ask who has the newest own message, unless it is known. The answer comes as an event. Raises GroupError."""
        own = [each for each in messages if each.own and each.group_seq and each.state is not Tick.FAILED]
        if own and own[-1].id not in self._seen and self._client.online:
            await self._client.seen_by(own[-1].id)

    # --- events ---------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        if isinstance(event, GroupReceipt) and event.of:
            self._seen[event.message_id] = short_seen_words(event)

    def notice(self, event: Event, at: int) -> tuple[int, Notice] | None:
        """The line that an event adds to a group, with the group."""
        match event:
            case GroupChangeRefused() | GroupBroken() | MembersDiffer():
                grave = True
            case GroupUpdated() | MemberMissing() | MemberJoined():
                grave = False
            case _:
                return None
        role = self._role(event) if isinstance(event, GroupUpdated) else None
        words = event_words(event, self._named(), role)
        # A handle is written as it is.
        start = words[:1].upper() if words.startswith(("you ", "the ", "nothing ")) else words[:1]
        return event.group, Notice(at, f"{start}{words[1:]}.", grave=grave)

    def _named(self) -> Named:
        return self._names.or_you

    def _role(self, event: GroupUpdated) -> Role | None:
        return self._names.role(event.group, event.accounts[-1]) if event.accounts else None
