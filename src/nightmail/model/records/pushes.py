"""Waking a sleeping device: its push token, when to look whether it must be woken, and what became of a push."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from nightmail.model.answers import Done
from nightmail.model.forms import DEVICE_MAX, NUMBER_MAX, Complaint, Form, out_of
from nightmail.model.ids import account_of
from nightmail.model.words import PushPlatform

from .body import Author, Body, Pace
from .schedules import ERROR


class PushOutcome(IntEnum):
    """What became of one push."""

    DELIVERED = 0
    """The provider has taken it."""
    FAILED = 1
    """For now: it is tried again, if it may be."""
    REFUSED = 2
    """For good."""
    GONE = 3
    """The token is not valid any more: nothing sent to it arrives."""


NOT_SET_UP = "not_set_up"
"""The error of a push whose platform this server does not serve. That is the operator's choice, and no dead letter."""


class PushSet(Body, frozen=True, tag=128):
    """The device can be woken, by this token. It replaces the one before."""

    said_by = Author.DEVICE
    since = 6
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    platform: PushPlatform
    token: str

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        return wrong_token(self.platform, self.token, limits)


class PushRemoved(Body, frozen=True, tag=129):
    """The device is not to be woken any more. If it has no token, that is so."""

    said_by = Author.DEVICE
    since = 6
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        return None


class WakeLooked(Body, frozen=True, tag=130):
    """One due item: does something still wait for the device, and is it time to push, or to push again?"""

    said_by = Author.FOLD
    since = 6

    device: int
    moment: int
    """That it was planned for. If the mailbox is to be looked at in another one, this does nothing."""

    def home(self, by: int) -> int:
        return account_of(self.device)


class Pushed(Body, frozen=True, tag=131):
    """What became of a push: the outlet says so."""

    said_by = Author.SERVER
    since = 6
    answered_by = (Done,)

    device: int
    set_at: int
    """Which of its tokens (`PushTarget.since`)."""
    woke_at: int
    attempt: int
    outcome: PushOutcome
    error: str
    """A word: `http_503`, `timeout`; empty if it was delivered."""
    retry_after_ms: int = 0
    """What the provider asked for; 0: nothing."""

    def home(self, by: int) -> int:
        return account_of(self.device)

    def form(self, by: int, limits: Form) -> Complaint:
        delivered = self.outcome is PushOutcome.DELIVERED
        return (
            out_of(self.device, 1, DEVICE_MAX, "device")
            or out_of(self.set_at, 1, NUMBER_MAX, "set_at")
            or out_of(self.woke_at, 0, NUMBER_MAX, "woke_at")
            or out_of(self.attempt, 0, NUMBER_MAX, "attempt")
            or out_of(self.retry_after_ms, 0, NUMBER_MAX, "retry_after_ms")
            or (delivered is bool(self.error) and "a push that failed names an error, and no other does")
            or (bool(self.error) and not ERROR.match(self.error) and "error is no word")
            or None
        )


__all__ = ("NOT_SET_UP", "PushOutcome", "PushRemoved", "PushSet", "Pushed", "WakeLooked", "wrong_token")
Bodies: TypeAlias = PushSet | PushRemoved | WakeLooked | Pushed
DeviceBodies: TypeAlias = PushSet | PushRemoved


def wrong_token(platform: PushPlatform, token: str, limits: Form) -> Complaint:
    """Whether its service could have given this token. The text says nothing of the token itself."""
    if not token or len(token) > limits.push_token_chars:
        return f"a push token has 1 to {limits.push_token_chars} characters"
    if not token.isascii() or not token.isprintable():
        return "a push token has printable ASCII characters only"
    if platform is PushPlatform.IOS and (len(token) > IOS_CHARS or not set(token) <= HEX):
        return f"a token of ios has at most {IOS_CHARS} hexadecimal digits"
    if platform is PushPlatform.ANDROID and (not set(token) <= ANDROID or len(token) < ANDROID_CHARS):
        return f"a token of android has at least {ANDROID_CHARS} letters, digits, and any of - _ :"
    if platform is PushPlatform.WEB and not (token.startswith("{") and token.endswith("}")):
        return "the token of a browser is its subscription, as JSON"
    if platform is PushPlatform.UNIFIEDPUSH and not token.startswith(("https://", "http://")):
        return "the token of unifiedpush is an address"
    return None


HEX = frozenset("0123456789abcdefABCDEF")
IOS_CHARS = 200
ANDROID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:")
ANDROID_CHARS = 32
"""Real ones have 140 and more. Fewer than these would be the token of another platform."""
