"""Groups, for an app: the methods of `Client` that are about them.

Knows:   which calls wait for an answer of the server.
Never:   decides anything about a group: the machine does.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from nightmail.client.link.driver import Driver
from nightmail.client.machine.machine import Machine
from nightmail.client.store.group_rows import GroupStanding
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Identity
from nightmail.model.roster import (
    Departure,
    GroupChange,
    GroupReceipts,
    GroupSettings,
    Removal,
    Role,
    RoleChange,
    Roster,
    SettingsChange,
)

from .addressees import Addressee, group_in_text
from .errors import ClientError, Misused
from .group_errors import NotInGroup
from .groups.changes import Done
from .groups.group import Group, SeenBy
from .groups.known_groups import group_in
from .groups.names import check_name
from .groups.welcomes import OWED
from .waiters import Waiters

T = TypeVar("T")

Person: TypeAlias = str | int
"""A handle, or the number of an account."""
AnyGroup: TypeAlias = Group | str | int
"""A group; its name or its number after "group:" or without it; its number."""


class GroupClient:
    """A part of `Client`."""

    _waiters: Waiters

    @property
    @abstractmethod
    def _store(self) -> Store: ...

    @property
    @abstractmethod
    def identity(self) -> Identity: ...

    @abstractmethod
    def _open_driver(self) -> Driver: ...

    @abstractmethod
    async def _find(self, text: str) -> Addressee: ...

    # --- looking --------------------------------------------------------------------------------

    def groups(self) -> list[Group]:
        """The groups that this account is in or was in, by name."""
        store, me = self._store, self.identity
        rows = [row for row in store.groups() if row.standing is not GroupStanding.MAKING]
        return sorted((group_in(store, me, row.group) for row in rows), key=lambda group: (group.name, group.id))

    def group_names(self) -> dict[int, str]:
        """Group → its name, of the same groups; without reading who is in them."""
        return {row.group: row.name for row in self._store.groups() if row.standing is not GroupStanding.MAKING}

    def group(self, group: AnyGroup) -> Group:
        """A group as it is now, by name or number. Raises NoSuchGroup."""
        return group_in(self._store, self.identity, self._group(group))

    def is_told(self, group: AnyGroup) -> bool:
        """Whether all that this device has to say to the members has left it: messages, and welcomes to newcomers."""
        store, number = self._store, self._group(group)
        row = store.group(number)
        welcomes = [account for account in row.to_welcome if account not in row.states] if row else []
        owed = store.errands(f"{OWED}{number:013x}")
        return not welcomes and not owed and all(each.to != number for each in store.outgoing())

    async def seen_by(self, message_id: str) -> SeenBy:
        """Who has a message of this account in a group, and who has read it. Raises GroupError, Misused."""
        driver, message = self._open_driver(), self._store.message(message_id)
        if message is None or not message.own or message.group is None or not message.group_seq:
            raise Misused("no message of this account that a group has taken has that id")
        answer: asyncio.Future[SeenBy] = self._waiters.answer()
        with driver.working() as machine:
            machine.groups(driver.clock()).seen_by.seen_by(message, lambda said: _settle(answer, said))
        return await answer

    # --- members --------------------------------------------------------------------------------

    async def create_group(
        self, name: str, people: Sequence[Person] = (), *, receipts: GroupReceipts = GroupReceipts.EACH_MEMBER,
        writers: Role = Role.MEMBER, changers: Role = Role.ADMIN, timer_ms: int = 0,
    ) -> Group:  # fmt: skip
        """Make a group with these people; this account is its admin. Returns once the server has it.

        Each of them joins by itself, or not: `MemberJoined`, `MemberMissing`. Raises GroupError, Misused.
        """
        name, accounts = check_name(name), await self._accounts_of(people)
        settings = _checked(GroupSettings(writers, changers, receipts, timer_ms))
        return await self._asked(lambda machine, now, done: machine.groups(now).changes.make(
            name, accounts, settings, done
        ))  # fmt: skip

    async def add_members(self, group: AnyGroup, people: Sequence[Person]) -> Group:
        """Add people. They read what is written from then on. Raises GroupError."""
        if not people:
            raise Misused("say whom to add")
        number, accounts = self._group(group), await self._accounts_of(people)
        return await self._asked(lambda machine, now, done: machine.groups(now).changes.add(number, accounts, done))

    async def remove_members(self, group: AnyGroup, people: Sequence[Person]) -> Group:
        """Remove people: nothing that is written from then on is sealed for them. Raises GroupError."""
        accounts = tuple(sorted(set(await self._accounts_of(people))))
        return await self._change(group, lambda _: Removal(accounts))

    async def leave_group(self, group: AnyGroup, successor: Person | None = None) -> Group:
        """Leave. The last admin names somebody who becomes admin. Raises GroupError."""
        account = (await self._accounts_of([successor]))[0] if successor is not None else 0
        return await self._change(group, lambda _: Departure(account))

    async def set_group_role(self, group: AnyGroup, person: Person, role: Role) -> Group:
        """Make somebody an admin, or no longer. Raises GroupError."""
        (account,) = await self._accounts_of([person])
        return await self._change(group, lambda _: RoleChange(account, role))

    async def change_group(
        self, group: AnyGroup, *, writers: Role | None = None, changers: Role | None = None,
        receipts: GroupReceipts | None = None, timer_ms: int | None = None,
    ) -> Group:  # fmt: skip
        """Change who may write, who may add people, what authors learn, and how long messages live. What is None stays.

        Raises GroupError, Misused.
        """
        wanted = {"writers": writers, "changers": changers, "receipts": receipts, "timer_ms": timer_ms}
        given = {name: value for name, value in wanted.items() if value is not None}
        _checked(replace(GroupSettings(), **given))

        def change(roster: Roster) -> GroupChange:
            return SettingsChange(replace(roster.settings, **given))

        return await self._change(group, change)

    # --- name and picture -----------------------------------------------------------------------

    async def rename_group(self, group: AnyGroup, name: str) -> Group:
        """Give it another name, by a message to everybody. Works offline. Raises Misused, NotInGroup."""
        number = self._group(group)
        await self._written(number, lambda machine, now: machine.groups(now).names.rename(number, name))
        return self.group(number)

    async def set_group_picture(self, group: AnyGroup, picture: bytes | None) -> Group:
        """Give it another picture, or none; likewise."""
        number = self._group(group)
        await self._written(number, lambda machine, now: machine.groups(now).names.set_picture(number, picture or b""))
        return self.group(number)

    # --- inside ---------------------------------------------------------------------------------

    def _group(self, group: AnyGroup) -> int:
        if isinstance(group, Group):
            return group.id
        return group_in_text(self._store, group) if isinstance(group, str) else group

    async def _accounts_of(self, people: Iterable[Person]) -> list[int]:
        """The accounts that are meant. The handles are learned."""
        driver, accounts = self._open_driver(), list[int]()
        for person in people:
            if isinstance(person, int):
                accounts.append(person)
                continue
            account, handle, _ = await self._find(person)
            with driver.working() as machine:
                machine.learn_handle(account, handle, driver.clock())
            accounts.append(account)
        return accounts

    async def _change(self, group: AnyGroup, make: Callable[[Roster], GroupChange]) -> Group:
        number = self._group(group)
        return await self._asked(lambda machine, now, done: machine.groups(now).changes.change(number, make, done))

    async def _asked(self, ask: Callable[[Machine, int, Done], None]) -> Group:
        driver = self._open_driver()
        answer: asyncio.Future[int] = self._waiters.answer()
        with driver.working() as machine:
            ask(machine, driver.clock(), lambda said: _settle(answer, said))
        group = await answer
        await driver.committed()
        return self.group(group)

    async def _written(self, group: int, write: Callable[[Machine, int], None]) -> None:
        driver = self._open_driver()
        with driver.working() as machine:
            if machine.groups(driver.clock()).known.joined(group) is None:
                raise NotInGroup(group)
            write(machine, driver.clock())
        await driver.committed()


def _checked(settings: GroupSettings) -> GroupSettings:
    """Raises Misused unless a group may have these."""
    try:
        return GroupSettings.decode(settings.encode())
    except ValueError as error:
        raise Misused(str(error)) from None


def _settle(answer: asyncio.Future[T], said: T | ClientError) -> None:
    if answer.done():
        return  # the caller does not wait any more
    if isinstance(said, ClientError):
        answer.set_exception(said)
    else:
        answer.set_result(said)
