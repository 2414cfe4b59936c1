"""The devices that may read what is written to a group: those that the signed lists of its members name.

Knows:   which of those lists are present.
Never:   counts a device because the server names it, or an account under another key than the chain has for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from nightmail.client.machine.context import Context
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.sealer import Then
from nightmail.e2ee.identity import Address
from nightmail.model.ids import account_of

from .known_groups import KnownGroups

ASKED_MAX = 64
"""Lists that are asked for at a time."""
SMALL = 100
"""Of a group of up to so many members every list is asked for again whenever the server says that one has changed: it
does not say which."""
RECENT_MS = 600_000
"""Of a larger group only lists that came longer ago than this, for whatever reason they were asked for: while hundreds
of members join, the server says so hundreds of times."""
UNLISTED_MS = 60_000
"""So long nothing is sealed for an account whose list is not believed, and nobody waits for it."""


class GroupAudience:
    def __init__(self, context: Context, lists: DeviceLists, believed: BelievedLists, known: KnownGroups) -> None:
        self._context, self._lists, self._believed, self._known = context, lists, believed, known
        self._unlisted: dict[int, int] = {}
        """Account → until when its list is not asked for."""
        self._listed: dict[int, object] = {}
        """Group → the version of its audience for which the lists of all members were here."""
        self._found: tuple[int, object, frozenset[Address], frozenset[Address]] | None = None
        """The group that was asked about last, its version, and what was found: a group may have thousands of devices,
        and each envelope for one of them asks."""

    def version(self, group: int) -> object:
        """While this is equal, so is everything else that is asked here about the group's devices."""
        return self._known.membership(group), self._believed.changes, self._lists.changes

    def lost(self) -> None:
        self._unlisted.clear()

    def outdate(self, group: int) -> None:
        """The devices of some member have changed."""
        members = list(self._known.members(group))
        recent = self._context.now - RECENT_MS if len(members) > SMALL else self._context.now + 1
        for account in members:
            if self._lists.found_at(account) < recent:
                self._lists.forget(account)
                self._unlisted.pop(account, None)

    def is_listed(self, group: int, then: Then) -> bool:
        """Whether the lists of all members are here, as far as they can be had. If not, they are asked for, and `then`
        is called when more of them are here."""
        version = self.version(group)
        if self._listed.get(group) == version:
            return True
        absent = [account for account in self._known.members(group) if self._lists.of(account) is None]
        if not absent:
            self._listed[group] = version
        now = self._context.now
        missing = [account for account in absent if self._unlisted.get(account, 0) <= now]
        for account in missing[:ASKED_MAX]:
            self._want(group, account, then)
        return not missing

    def _want(self, group: int, account: int, then: Then) -> None:
        def refused() -> None:
            self._unlisted[account] = self._context.now + UNLISTED_MS
            then()

        self._lists.want(account, (self, group), lambda _: then(), refused)

    def addresses(self, group: int) -> frozenset[Address]:
        """Every device that may read, except this one."""
        return self._devices(group)[0]

    def at_server(self, group: int) -> frozenset[Address]:
        """Those of them that the server has, too: for the others it has no keys."""
        return self._devices(group)[1]

    def _devices(self, group: int) -> tuple[frozenset[Address], frozenset[Address]]:
        version = self.version(group)
        if self._found is None or self._found[:2] != (group, version):
            found = self._find(group)
            self._found = group, version, found, frozenset(each for each in found if self._is_at_server(each))
        return self._found[2:]

    def _find(self, group: int) -> frozenset[Address]:
        known, me = self._known.membership(group), self._context.identity
        found: set[Address] = set()
        for member in known.roster.members.values() if known else ():
            signed = self._believed.of(member.account)
            if signed is not None and signed.key == member.key and not self._believed.is_held(member.account):
                found.update(signed.devices)
        return frozenset(address for address in found if address.device != me.device)

    def _is_at_server(self, address: Address) -> bool:
        listed = self._lists.of(account_of(address.device))
        return listed is not None and listed.devices.get(address.device) == address.registration

    def listed(self, devices: Iterable[tuple[int, int]]) -> set[Address]:
        """Those of these devices that the lists of their accounts name, members or not."""
        found: set[Address] = set()
        for device in devices:
            signed = self._believed.of(account_of(device[0]))
            if signed is not None and Address(*device) in signed.devices:
                found.add(Address(*device))
        return found

    def has(self, group: int, address: Address) -> bool:
        return address in self.addresses(group)
