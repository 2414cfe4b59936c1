"""What people read about groups: changes, settings, receipts, and why something was not done.

Knows:   the words of each. Handles and names come from other people: who prints them makes them plain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from nightmail.client import group_errors as errors
from nightmail.client.events import Event
from nightmail.client.group_events import (
    GroupBroken,
    GroupChangeRefused,
    GroupReceipt,
    GroupUpdated,
    MemberJoined,
    MemberMissing,
    MembersDiffer,
    UpdateKind,
)
from nightmail.client.groups.group import Group, SeenBy
from nightmail.client.store.group_rows import GroupStanding
from nightmail.model.roster import GroupReceipts, GroupSettings, Role

from .durations import timer_words

Named: TypeAlias = Callable[[int], str]
"""Account → the name to show; "you" for the own one."""

ROLES = {"members": Role.MEMBER, "admins": Role.ADMIN}
"""Who may do something: what is typed → the lowest role that may."""
RECEIPTS = {
    "each": GroupReceipts.EACH_MEMBER,
    "any": GroupReceipts.AT_LEAST_ONE,
    "none": GroupReceipts.NONE,
}
_STANDINGS = {
    GroupStanding.MAKING: "being made",
    GroupStanding.INVITED: "waiting for a member to say who is in it",
    GroupStanding.LEFT: "you left",
    GroupStanding.REMOVED: "you were removed",
    GroupStanding.BROKEN: "the server shows another history of it than its members have",
}
_MISSING = {
    "refused": "does not take part",
    "suspended": "has registered again, and takes part when an admin adds them again",
    "closed": "has closed their account",
}


def writers_word(role: Role) -> str:
    return next(word for word, each in ROLES.items() if each is role)


def receipts_word(receipts: GroupReceipts) -> str:
    return next(word for word, each in RECEIPTS.items() if each is receipts)


def standing_words(group: Group) -> str:
    """What this account is in a group."""
    if group.role is None:
        return _STANDINGS.get(group.standing, "")
    return group.role.name.lower()


def settings_lines(settings: GroupSettings) -> list[str]:
    who = {Role.MEMBER: "Every member", Role.ADMIN: "Only admins"}
    receipts = {
        GroupReceipts.EACH_MEMBER: "Authors learn who has and who has read a message.",
        GroupReceipts.AT_LEAST_ONE: "Authors learn whether anybody has or has read a message.",
        GroupReceipts.NONE: "Authors learn nothing about who has a message.",
    }
    return [
        f"{who[settings.writers]} may write.",
        f"{who[settings.changers]} may add people and change timer and receipts.",
        receipts[settings.receipts],
        f"Messages {timer_words(settings.timer_ms)}.",
    ]


def seen_words(seen: SeenBy | GroupReceipt) -> str:
    """How many members have a message, and how many have read it."""
    if not seen.of:
        return "this group shows no receipts"
    if isinstance(seen, SeenBy) and 0 in seen.members:
        return "read by somebody" if seen.read else "delivered to somebody" if seen.delivered else "delivered to nobody"
    members = "member" if seen.of == 1 else "members"
    if seen.read:
        return f"read by {seen.read} of {seen.of} {members}"
    return f"delivered to {seen.delivered} of {seen.of} {members}"


def short_seen_words(receipt: GroupReceipt) -> str:
    """The same, for below a message."""
    return seen_words(receipt).removesuffix(" members").removesuffix(" member")


def joined(names: Sequence[str]) -> str:
    """Names in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


# --- events -------------------------------------------------------------------------------------


def event_words(event: Event, named: Named, role: Role | None = None) -> str:
    """A sentence for the group, without its full stop; empty: nothing to tell. `role` is what a member has now."""
    match event:
        case GroupUpdated():
            return _update_words(event, named, role)
        case GroupChangeRefused():
            who = f" that it says is by {named(event.by)}" if event.by else ""
            return f"the server shows a change{who}, which was not believed: {event.why.replace('_', ' ')}"
        case GroupBroken():
            return f"nothing is sent to this group until a member has said again where it stands: {event.why}"
        case MembersDiffer():
            return f"{named(event.by)} wrote to other members than this device knows of"
        case MemberMissing():
            return f"{named(event.account)} {_MISSING.get(event.state, 'does not take part')}"
        case MemberJoined():
            return f"{named(event.account)} joined"
        case _:
            return ""


def _update_words(event: GroupUpdated, named: Named, role: Role | None) -> str:
    by, whom = named(event.by), joined([named(account) for account in event.accounts])
    match event.what:
        case UpdateKind.CREATED:
            return f"{by} made the group" + (f" with {whom}" if whom else "")
        case UpdateKind.JOINED:
            return f"you are in the group, added by {by}"
        case UpdateKind.ADDED:
            return f"{by} added {whom}"
        case UpdateKind.REMOVED:
            return f"{by} removed {whom}"
        case UpdateKind.LEFT:
            return f"{by} left" + (f"; the new admin: {whom}" if whom else "")
        case UpdateKind.ROLE:
            new = "an admin" if role is Role.ADMIN else "a member" if role is Role.MEMBER else "something else"
            return f"{by} made {whom} {new}"
        case UpdateKind.SETTINGS:
            return f"{by} changed the settings: messages {timer_words(event.timer_ms)}"
        case UpdateKind.RENAMED:
            return f"{by} named the group {event.name!r}"
        case UpdateKind.PICTURE:
            return f"{by} changed the picture"


# --- why something was not done -----------------------------------------------------------------


def refusal_words(error: errors.GroupError) -> tuple[str, str]:
    """A sentence without its full stop, and advice."""
    match error:
        case errors.NoSuchGroup():
            return str(error), "List your groups: nightmail group list."
        case errors.NotInGroup():
            return "you are not a member of this group, or this device does not know its members yet", ""
        case errors.UnknownPerson():
            sentence = f"there is no account {error.handle}, or it has no device yet"
            return sentence, "Nothing was changed; check the spelling."
        case errors.NotGroupAdmin():
            return "only an admin of the group may do this", "See who is: nightmail group members."
        case errors.LastAdmin():
            return (
                "the group would be left without an admin",
                "Make somebody else an admin first (nightmail group promote), or leave with --successor.",
            )
        case errors.GroupFull():
            return str(error), "Nothing was changed."
        case errors.AlreadyMember():
            return "one of them is a member already", "Nothing was changed. See who is: nightmail group members."
        case errors.UnknownMember():
            return "one of them is not a member", "Nothing was changed. See who is: nightmail group members."
        case errors.RemovesItself():
            return "nobody removes themselves", "Leave: nightmail group leave."
        case errors.StaleGroup():
            return "others changed the group at the same time", "Try again."
        case _:
            return str(error), ""
