"""The JSON bodies of requests and responses.

Ids and digests are lower-case hex, device lists are base64. A time is in milliseconds since 1970, with the same as text
beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from nightmail.model.ids import account_of, log_of
from nightmail.model.roster import GroupReceipts
from nightmail.model.rows import Account
from nightmail.model.traces import Trace
from nightmail.model.words import MessageState, Platform, PushPlatform

from .times import Milliseconds, Time, rfc3339

PlatformName = Literal["cli", "ios", "android", "web"]
StateName = Literal["sent", "delivered", "read", "failed"]

Hex = Annotated[str, Meta(pattern="^[1-9a-f][0-9a-f]{0,15}$")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="SHA-256 of the device's token, in hex.")]
Code = Annotated[str, Meta(pattern="^[0-9]{6}$", description="The code that was sent to the handle's owner.")]
PinToken = Annotated[
    str, Meta(pattern="^[0-9a-f]{64}$", description="What Argon2id made of the PIN on the device, in hex.")
]
Number = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]

PLATFORMS: dict[PlatformName, Platform] = {
    "cli": Platform.CLI, "ios": Platform.IOS, "android": Platform.ANDROID, "web": Platform.WEB,
}  # fmt: skip
PLATFORM_NAMES: dict[Platform, PlatformName] = {platform: name for name, platform in PLATFORMS.items()}
STATE_NAMES: dict[MessageState, StateName] = {
    MessageState.SENT: "sent",
    MessageState.DELIVERED: "delivered",
    MessageState.READ: "read",
    MessageState.FAILED: "failed",
}


def device_number(text: str) -> int:
    """The device that a text names. Raises ValueError unless it is the one spelling: `Hex`."""
    number = int(text, 16)
    if f"{number:x}" != text:
        raise ValueError("not lower-case hex without leading zeros")
    return number


# --- requests ---------------------------------------------------------------------------------


class NewDevice(Struct, frozen=True, forbid_unknown_fields=True):
    """A device that wants to be one of the account's."""

    label: str
    platform: PlatformName
    registration: Number
    """Chosen by the device: tells it from a successor with other keys."""
    token_digest: Digest


class NewAccount(NewDevice, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An account and its first device."""

    handle: str
    """A name, or a phone number that begins with +."""
    code: Code | None = None
    """Where the server verifies whose a handle is."""
    pin_token: PinToken | None = None
    """Where the account has a registration lock."""


class NewVerification(Struct, frozen=True, forbid_unknown_fields=True):
    handle: str


class FindDevice(Struct, frozen=True, forbid_unknown_fields=True):
    """A device that was linked, and has not heard its number."""

    handle: str
    registration: Number
    token_digest: Digest


class NewLock(Struct, frozen=True, forbid_unknown_fields=True):
    pin_token: PinToken


class NewLabel(Struct, frozen=True, forbid_unknown_fields=True):
    label: str


class NewList(Struct, frozen=True, forbid_unknown_fields=True):
    """The account's next device list."""

    version: Number
    devices: list[Hex]
    signed: bytes
    """The list as the account's identity key signed it; base64."""


class NewSettings(Struct, frozen=True, forbid_unknown_fields=True):
    read_receipts: bool


# --- responses --------------------------------------------------------------------------------


class CodeSent(Struct, frozen=True):
    expires_at: Milliseconds
    expires_at_rfc3339: Time


class AccountMade(Struct, frozen=True):
    account: Hex
    device: Hex
    list_version: int


class DeviceMade(Struct, frozen=True):
    device: Hex
    list_version: int


class AccountSeen(Struct, frozen=True):
    """Whom a message to this account must be sealed for."""

    account: Hex
    handle: str
    list_version: int
    devices: dict[str, int]
    """Device → registration."""
    signed: bytes


class DeviceSeen(Struct, frozen=True):
    device: Hex
    label: str
    platform: PlatformName
    registration: int
    listed: bool
    """Whether messages are sealed for it."""
    push: str | None = None
    """By whose service it is woken: ios, android, web or unifiedpush; null: it has no push token."""
    last_seen: Milliseconds | None = None
    """When it was last connected, to half a minute while it is; null: not known."""
    last_seen_rfc3339: Time | None = None


class DevicesSeen(Struct, frozen=True):
    account: Hex
    handle: str
    list_version: int
    devices: list[DeviceSeen]
    signed: bytes
    read_receipts: bool
    locked: bool
    """Whether a PIN is needed to register the handle again."""


class ListSeen(Struct, frozen=True):
    list_version: int


class DeviceState(Struct, frozen=True, omit_defaults=True):
    """What became of a message on one device of the recipient."""

    device: Hex
    state: StateName
    at: Milliseconds
    at_rfc3339: Time
    reason: str = ""
    """Why it failed."""


class MessageSeen(Struct, frozen=True):
    """What its sender may know of a message."""

    message_id: str
    state: StateName
    accepted_at: Milliseconds
    accepted_at_rfc3339: Time
    devices: list[DeviceState]


class EventSeen(Struct, frozen=True):
    at: Milliseconds
    at_rfc3339: Time
    device: str
    """Empty: at the server."""
    what: str


class TraceSeen(Struct, frozen=True):
    """Everything the delivery log knows of a message."""

    message_id: str
    events: list[EventSeen]
    states: dict[str, StateName]


class ClockShown(Struct, frozen=True):
    """What the machine's clock says (`clock`), and the time that the server goes by (`time`)."""

    state: Literal["believed", "ahead", "behind"]
    """What the server thinks of the machine's clock."""
    clock: Milliseconds
    clock_rfc3339: Time
    time: Milliseconds
    time_rfc3339: Time


class Health(Struct, frozen=True):
    status: Literal["ok"] = "ok"


class ProblemSeen(Struct, frozen=True):
    """application/problem+json. A refusal's own fields stand beside these."""

    type: str
    title: str
    status: int
    detail: str
    code: str


# --- from the model ---------------------------------------------------------------------------


def account_seen(number: int, row: Account) -> AccountSeen:
    devices = {f"{device:x}": registration for device, registration in row.listed.items()}
    return AccountSeen(f"{number:x}", row.handle, row.list_version, devices, row.signed_list)


def devices_seen(
    number: int, row: Account, pushes: Mapping[int, PushPlatform], last_seen: Mapping[int, int]
) -> DevicesSeen:
    devices = [
        DeviceSeen(
            f"{key:x}", each.label, PLATFORM_NAMES[each.platform], each.registration, key in row.listed,
            pushes[key].name.lower() if key in pushes else None,
            last_seen.get(key), rfc3339(last_seen[key]) if key in last_seen else None,
        )
        for key, each in row.devices.items()
    ]  # fmt: skip
    return DevicesSeen(
        f"{number:x}", row.handle, row.list_version, devices, row.signed_list, row.read_receipts, row.lock is not None
    )


def trace_seen(trace: Trace) -> TraceSeen:
    return TraceSeen(
        trace.id,
        [
            EventSeen(event.at, rfc3339(event.at), f"{event.device:x}" if event.device else "", event.what)
            for event in trace.events
        ],
        {f"{device:x}": STATE_NAMES[state] for device, state in trace.states.items()},
    )


ROUTED = ("online", "queued")
"""The words of a trace for the filing of an entry."""


def message_seen(trace: Trace, own: int, *, reads: bool) -> MessageSeen:
    """A sender's view: the recipient's devices only, never that it is blocked, never what it cannot learn otherwise.

    How it was routed tells how much mail the recipient gets and when they are there, so it is left out; without `reads`
    (somebody has read receipts off), a message that was read was delivered.
    """
    accepted = [event.at for event in trace.events if event.what in {"accepted", "blocked"}]
    devices: list[DeviceState] = []
    states: set[MessageState] = set()
    for device, state in trace.states.items():
        if account_of(device) == own:
            continue
        state = MessageState.DELIVERED if state is MessageState.READ and not reads else state
        states.add(state)
        # Of a message that was blocked at once nothing else is known: it looks like one that waits.
        at, reason = accepted[0] if accepted else trace.events[0].at, ""
        if (last := _last(trace, device, ROUTED if state is MessageState.SENT else (STATE_NAMES[state],))) is not None:
            at, reason = last
        why = reason if state is MessageState.FAILED else ""
        devices.append(DeviceState(f"{device:x}", STATE_NAMES[state], at, rfc3339(at), why))
    accepted_at = min(accepted or [trace.events[0].at])
    return MessageSeen(trace.id, _whole(states), accepted_at, rfc3339(accepted_at), devices)


def group_message_seen(trace: Trace, own: int, receipts: GroupReceipts) -> MessageSeen:
    """The same of a message to a group, as far as the group tells its authors. What lies in its log is no device's."""
    log = log_of(trace.group)
    told = trace if log not in trace.states else Trace(
        trace.id, trace.events, {device: state for device, state in trace.states.items() if device != log}, trace.group
    )  # fmt: skip
    seen = message_seen(told, own, reads=True)
    if receipts is GroupReceipts.EACH_MEMBER:
        return seen
    state: StateName = "sent" if receipts is GroupReceipts.NONE else seen.state
    return structs.replace(seen, state=state, devices=[])


def _last(trace: Trace, device: int, words: tuple[str, ...]) -> tuple[int, str] | None:
    """Time and reason of the device's last event with one of these words."""
    for event in reversed(trace.events):
        word, _, reason = event.what.partition(":")
        if event.device == device and word in words:
            return event.at, reason
    return None


def _whole(states: set[MessageState]) -> StateName:
    """Delivered or read when the first device is; failed only if no device got it."""
    for state in (MessageState.READ, MessageState.DELIVERED, MessageState.SENT):
        if state in states:
            return STATE_NAMES[state]
    return "failed" if states else "sent"
