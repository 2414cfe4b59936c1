"""What can go wrong for a person at the command line: one sentence, what to do next, and an exit code.

Knows:   every error of the client and the settings, in words.
Never:   repeats a token or the content of a message. A mistake of ours keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum
from typing import IO, Any

import click

from nightmail.client import errors


class Exit(IntEnum):
    """Exit codes of every command. `serve` has further ones of its own, which mean the same thing here."""

    DONE = 0
    BROKEN = 1
    """A promise broke (`verify`), or something failed that has no code of its own."""
    USAGE = 2
    """The command or a setting is wrong."""
    IN_USE = 3
    """Another process has the profile or the data folder."""
    DAMAGED = 4
    """The profile is damaged, or was written by a newer version."""
    UNWRITABLE = 5
    """The folder cannot be read or written, or the disk did not take it."""
    NO_PROFILE = 10
    """There is no such profile, or several and none was named."""
    NO_SERVER = 11
    """No server answered."""
    REFUSED = 12
    """The server said no."""
    FAILED = 13
    """The message will not arrive; the reason was printed."""
    QUEUED = 14
    """The message is safe in the outbox, and has not yet got as far as was asked."""
    ENDED = 15
    """The server will not have this device any more, or another process took its place."""
    LOCKED = 16
    """The profile is sealed, and what opens it is missing or wrong."""
    DIFFERS = 17
    """The safety number is another one than the one that was compared."""


class Failure(click.ClickException):
    """One sentence, then what to do next."""

    def __init__(self, code: Exit, sentence: str, advice: str = "") -> None:
        super().__init__(f"{sentence} {advice}".strip())
        self.exit_code = code  # pyright: ignore[reportAttributeAccessIssue]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"nightmail: {self.message}", file=file, err=file is None)


REASONS: dict[str, str] = {
    "unknown_recipient": "nobody has registered that handle at this server; check the spelling",
    "mailbox_full": "every device of the recipient is full; try again when they have been online",
    "expired": "no device fetched it in time",
    "device_removed": "the device it was for was removed",
    "undecryptable": "no device of the recipient could open it",
    "too_old": "it waited here too long without a network",
    "too_large": "it is larger than this server takes",
    "given_up": "it was taken back",
    "not_allowed": "the server does not let this device send it",
    "dead_lettered": "the server could not process it and set it aside; its operator can replay it",
}
"""Why a message failed, for a person."""

REFUSALS: dict[str, str] = {
    "handle_taken": "Choose another one; if it is yours, use its profile (--profile), or its PIN (--pin).",
    "verification_needed": "Ask for one: nightmail register, in a terminal; or say it with --code.",
    "verification_wrong": "Register without --code to have a new one sent.",
    "verification_refused": "Check the spelling.",
    "pin_needed": "Give it with --pin: the one that was set with nightmail lock.",
    "pin_wrong": "Try again with --pin.",
    "pin_locked": "There were too many wrong ones.",
    "rate_limited": "Wait a moment, then try again.",
    "unauthorized": "Check that the token belongs to this server.",
    "not_found": "Check the spelling.",
    "malformed": "Correct it and try again.",
    "too_many_devices": "Its numbers are used up: it needs another handle.",
    "too_many_linked": "Remove one first: nightmail devices remove.",
    "unknown_device": "See which there are: nightmail devices list.",
    "list_conflict": "Another device changed the list at the same time; try again.",
}
"""What to do about a no of the server, by its code."""


@contextmanager
def explained() -> Generator[None]:
    """Turn what a user can cause into a `Failure`."""
    try:
        yield
    except errors.ClientError as error:
        raise explain(error) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None


def explain(error: errors.ClientError) -> Failure:
    match error:
        case errors.ProfileInUse():
            return Failure(Exit.IN_USE, sentence(error), "End that process, or name another profile (--profile).")
        case errors.ProfileDamaged():
            return Failure(Exit.DAMAGED, sentence(error), "Nothing in it was changed.")
        case errors.ProfileTooNew():
            return Failure(Exit.DAMAGED, sentence(error), "Use the newer nightmail that wrote it.")
        case errors.WrongSecret():
            return Failure(Exit.LOCKED, sentence(error), "Nothing was touched.")
        case errors.ProfileLocked():
            return Failure(Exit.LOCKED, sentence(error))
        case errors.ProfileError():
            return Failure(Exit.UNWRITABLE, sentence(error), "Check its rights, or name another one (--profile).")
        case errors.StoreFailed():
            return Failure(Exit.UNWRITABLE, sentence(error), "Check the disk; nothing half-written was sent.")
        case errors.Unreachable():
            return Failure(
                Exit.NO_SERVER, sentence(error), "Start one (nightmail serve), or name another one (--server)."
            )
        case errors.Refused():
            said = error.detail or error.title
            return Failure(Exit.REFUSED, f"The server said no: {said}.", REFUSALS.get(error.code, ""))
        case errors.DeliveryFailed():
            return Failure(Exit.FAILED, failed(error.reason))
        case errors.Stopped():
            return Failure(Exit.ENDED, f"The server closed the connection for good: {error.sentence}.")
        case errors.NumberDiffers():
            return Failure(Exit.DIFFERS, sentence(error), "See it again: nightmail verify-contact.")
        case errors.Misused():
            return Failure(Exit.USAGE, sentence(error))
        case errors.TooLarge():
            return Failure(Exit.USAGE, sentence(error), "Nothing was sent.")
        case _:
            return Failure(Exit.BROKEN, sentence(error))


def failed(reason: str) -> str:
    """Why a message will not arrive, as a sentence."""
    return f"The message failed ({reason}): {REASONS.get(reason, 'the server gave no further reason')}."


def sentence(error: Exception) -> str:
    """The text of an error, as it stands at the beginning of a line."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
