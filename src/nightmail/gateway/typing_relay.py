"""Somebody is typing: passed on to those who may know it, and forgotten.

Knows:   when each account was last said to be typing in a conversation.
Touches: the presence port and the desk, to see who may know it; connections in the foreground.
Never:   answers, stores anything, or announces a stranger: not to an account that does not know them, not in a group
         that they are no member of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from nightmail.engine.ports import Failed, Presence, Sighting
from nightmail.model.group_chain import is_group
from nightmail.model.group_questions import GroupAnswer, MembersAsked, MembersShown
from nightmail.model.group_rows import MemberState
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.rows import Account, KnownAccounts
from nightmail.model.words import Audience
from nightmail.wire.items import Types

from .ports import Shared
from .presence_limits import PresenceLimits
from .rates import Shares
from .typing_limits import TypingLimits
from .visibility import knows, may_see
from .watchers import PresentSession

GROUP_COST = 10
"""A sign of typing in a group costs as much as so many questions: up to a hundred people are looked at for it."""


class TypingReader(Protocol):
    """A connection, as far as it is told that somebody is typing."""

    @property
    def session(self) -> PresentSession: ...

    @property
    def is_in_foreground(self) -> bool: ...


class TypingRelay:
    def __init__(
        self, shared: Shared, presence: Presence, limits: PresenceLimits, asks: Shares,
        readers: Mapping[int, TypingReader],
    ) -> None:  # fmt: skip
        """`asks` is what accounts may still ask; `readers` are the connections here, by device."""
        self._shared, self._presence, self._limits = shared, presence, limits
        self._asks, self._readers = asks, readers
        self._said = TypingLimits(limits.typing_ms)

    def take(self, device: int, to: int, now: int) -> None:
        """The person at `device` is typing to an account, or in a group."""
        account = device >> DEVICE_BITS
        if account == to:
            return
        # In this order: what is remembered of an account is then no more than it may ask.
        cost = GROUP_COST if is_group(to) else 1
        if self._asks.wait_ms(account, now, cost) or not self._said.take(account, to, now):
            self._shared.counters.typing_limited += 1
        elif is_group(to):
            self._pass_on_in_group(device, to)
        else:
            self._pass_on(account, to)

    def _pass_on(self, account: int, to: int) -> None:
        """To an account that may see the one who types, and knows them."""

        def seen(sightings: Mapping[int, Sighting] | Failed) -> None:
            if not isinstance(sightings, Failed):
                audiences = sightings[to].audience, sightings[account].audience
                self._shared.desk.relations(account, lambda row, known: typer_shown(
                    may_see(to, audiences[0], account, audiences[1], row, known)
                ))  # fmt: skip

        def typer_shown(is_seen: bool) -> None:
            if is_seen:
                self._shared.desk.relations(to, reader_shown)

        def reader_shown(row: Account | None, known: KnownAccounts | None) -> None:
            if row is not None and account not in row.blocked and knows(known, account):
                self._tell(row, Types(account))

        self._presence.sightings((account, to), seen)

    def _pass_on_in_group(self, device: int, group: int) -> None:
        """To the other members: that they are stands for knowing each other. Hiding and blocks count as ever."""
        account, most = device >> DEVICE_BITS, self._limits.typing_members

        def members_shown(answer: GroupAnswer) -> None:
            # Of an account that is no member, and in a large group, it is dropped.
            if isinstance(answer, MembersShown) and not answer.more:
                joined = (member.account for member in answer.members if member.state is MemberState.JOINED)
                self._presence.sightings({account, *joined}, seen)

        def seen(sightings: Mapping[int, Sighting] | Failed) -> None:
            if not isinstance(sightings, Failed) and sightings[account].audience is not Audience.NOBODY:
                readers = [
                    reader for reader, sighting in sightings.items()
                    if reader != account and sighting.online and sighting.audience is not Audience.NOBODY
                ]  # fmt: skip
                self._shared.desk.account(account, lambda row: typer_shown(row, readers))

        def typer_shown(row: Account | None, readers: Collection[int]) -> None:
            for reader in readers:
                if row is not None and reader not in row.blocked:
                    self._shared.desk.account(reader, reader_shown)

        def reader_shown(row: Account | None) -> None:
            if row is not None and account not in row.blocked:
                self._tell(row, Types(account, group))

        self._shared.desk.about_group(MembersAsked(group, device, 0, most), members_shown)

    def _tell(self, row: Account, sign: Types) -> None:
        """Each of the account's devices that is in the foreground here."""
        for device in row.listed if not row.closed else ():
            reader = self._readers.get(device)
            if reader is not None and reader.is_in_foreground:
                self._shared.counters.typing_passed += 1
                reader.session.tell(sign)
