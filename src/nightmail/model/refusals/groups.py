"""Every no that concerns a group."""

from __future__ import annotations

from .refusal import Refusal


class UnknownGroup(Refusal, frozen=True, tag=0x60):
    """There is no such group."""

    word = "unknown_group"
    group: int

    @property
    def sentence(self) -> str:
        return f"there is no group {self.group:x}"


class GroupIdTaken(Refusal, frozen=True, tag=0x61):
    """Another group has this number: the client draws another one."""

    word = "group_taken"
    group: int

    @property
    def sentence(self) -> str:
        return f"another group has the number {self.group:x}"


class StaleGroup(Refusal, frozen=True, tag=0x62):
    """The group has changed since: its members, or their devices. The client catches up and says it again."""

    word = "stale_group"
    epoch: int
    head: bytes
    length: int
    """Of the chain."""

    @property
    def sentence(self) -> str:
        return f"the group is in epoch {self.epoch}, with {self.length} changes"


class NotMember(Refusal, frozen=True, tag=0x63):
    """Only members do this: the account has not joined the group, or the group does not know this device of it."""

    word = "not_member"
    group: int

    @property
    def sentence(self) -> str:
        return f"only members of the group {self.group:x} may do this"


class NotGroupAdmin(Refusal, frozen=True, tag=0x64):
    """In this group only admins do this."""

    word = "not_group_admin"
    group: int

    @property
    def sentence(self) -> str:
        return f"only admins of the group {self.group:x} may do this"


class AlreadyMember(Refusal, frozen=True, tag=0x65):
    """The change adds an account that is a member under the same key, or the one that says it."""

    word = "already_member"
    group: int

    @property
    def sentence(self) -> str:
        return f"the group {self.group:x} has that member"


class UnknownMember(Refusal, frozen=True, tag=0x66):
    """The change names an account that is no member."""

    word = "unknown_member"
    group: int

    @property
    def sentence(self) -> str:
        return f"the group {self.group:x} has no such member"


class RemovesItself(Refusal, frozen=True, tag=0x67):
    """A member does not remove itself: it leaves."""

    word = "removes_itself"
    group: int

    @property
    def sentence(self) -> str:
        return "a member leaves the group; it does not remove itself"


class LastAdmin(Refusal, frozen=True, tag=0x68):
    """The change would leave members without an admin."""

    word = "last_admin"
    group: int

    @property
    def sentence(self) -> str:
        return f"the group {self.group:x} needs another admin first"


class GroupFull(Refusal, frozen=True, tag=0x69):
    """The group would have more members than it may."""

    word = "group_full"
    limit: int

    @property
    def sentence(self) -> str:
        return f"a group has at most {self.limit} members"
