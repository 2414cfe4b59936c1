"""What is remembered of waking a device. `rows.py` says what holds for every row."""

from __future__ import annotations

from msgspec import Struct

from .words import PushPlatform


class PushTarget(Struct, array_like=True):
    """Where a device is reached while it sleeps, and how far waking it has come."""

    platform: PushPlatform
    token: str
    """As the platform gave it to the device. In no log, metric or error text."""
    since: int
    """The offset of the record that set it: tells it from those before and after it."""
    woke_at: int = 0
    """The wake that all below is about (`Mailbox.woke_at`)."""
    attempt: int = 0
    """Outcomes that counted for it so far."""
    first_at: int = 0
    """When it was first pushed, or given up, by elapsed time; 0: it was not."""
    retries: int = 0
    """Of the present push, which has failed so often."""
    next_at: int = 0
    """When to push again, by elapsed time; 0: never for this wake."""
    first_attempt: int = 0
    last_attempt: int = 0
    """Of the present push, by the shard's time."""
    letter: int = 0
    """The dead letter of a push that was given up, until it is settled; 0: none."""


class PushSeen(Struct, frozen=True):
    """A push that is to be made, as of now."""

    device: int
    platform: PushPlatform
    token: str
    since: int
    woke_at: int
    attempt: int
    """Its number, from 0 on: its outcome counts once."""
    depth: int
    """How much waits: messages, and groups that have something."""
    is_due: bool
    """It was not pushed yet, or it is time to do so again. Otherwise only a device that has just left is pushed to."""
