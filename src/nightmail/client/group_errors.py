"""What can go wrong with a group.

ClientError
└── GroupError
    ├── NoGroups             the server does not know groups
    ├── NoSuchGroup          this account is in no group of that name, or in several
    ├── NotInGroup           this account is no member, or this device does not know the members
    ├── UnknownPerson        there is no such account, or it has not signed a list of its devices
    └── ChangeRefused        the change was not made
        ├── NotGroupAdmin, LastAdmin, GroupFull
        ├── AlreadyMember, UnknownMember, RemovesItself
        └── StaleGroup       somebody else's change came before, again and again
"""

from __future__ import annotations

from .errors import ClientError


class GroupError(ClientError):
    pass


class NoGroups(GroupError):
    def __init__(self) -> None:
        super().__init__("this server does not know groups: it is of an older version")


class NoSuchGroup(GroupError):
    def __init__(self, name: str, count: int = 0) -> None:
        self.name, self.count = name, count
        super().__init__(
            f"{count} groups have the name {name!r}: say which, by its number"
            if count
            else f"there is no group {name!r} here"
        )


class NotInGroup(GroupError):
    def __init__(self, group: int) -> None:
        self.group = group
        super().__init__(f"this account is not in the group {group:x}, or this device does not know its members yet")


class UnknownPerson(GroupError):
    def __init__(self, handle: str) -> None:
        self.handle = handle
        super().__init__(f"{handle} cannot be in a group: there is no such account, or it has no device yet")


class ChangeRefused(GroupError):
    """`code` is the word of the refusal, as docs/reference.md lists it."""

    code = ""

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        super().__init__(sentence)


class NotGroupAdmin(ChangeRefused):
    pass


class LastAdmin(ChangeRefused):
    pass


class GroupFull(ChangeRefused):
    pass


class AlreadyMember(ChangeRefused):
    pass


class UnknownMember(ChangeRefused):
    pass


class RemovesItself(ChangeRefused):
    pass


class StaleGroup(ChangeRefused):
    pass


_BY_WORD: dict[str, type[ChangeRefused]] = {
    "not_group_admin": NotGroupAdmin,
    "not_an_admin": NotGroupAdmin,
    "last_admin": LastAdmin,
    "group_full": GroupFull,
    "too_many_members": GroupFull,
    "already_member": AlreadyMember,
    "already_a_member": AlreadyMember,
    "unknown_member": UnknownMember,
    "no_such_member": UnknownMember,
    "removes_itself": RemovesItself,
    "stale_group": StaleGroup,
}
"""The words of the server's refusals, and those of the same rules applied here."""


def change_refused(word: str, sentence: str) -> ChangeRefused:
    return _BY_WORD.get(word, ChangeRefused)(word, sentence)
