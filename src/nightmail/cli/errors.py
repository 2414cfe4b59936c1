"""Errors for the person at the command line: one sentence, advice, and an exit code.

Knows:   every error of the client, and the advice for it.
Touches: standard error; with --json also standard output, where a script reads the same error as an object.
Never:   prints a token or the content of a message. An unexpected exception keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum

import click

from nightmail.client import errors, group_errors, media_errors, schedule_errors
from nightmail.client.link.failures import UNTRUSTED

from .group_words import refusal_words
from .output import plain, print_json


class Exit(IntEnum):
    """Exit codes of all commands. The name in small letters is the `error` of the object that --json prints."""

    DONE = 0
    OTHER = 1
    """A promise was broken (`verify`, `demo`), or an error has no code of its own."""
    USAGE = 2
    """The command line or a setting is invalid."""
    IN_USE = 3
    """Another process uses the profile or the data folder."""
    DAMAGED = 4
    """The profile or the backup is damaged, or was written by a newer version."""
    UNWRITABLE = 5
    """The folder or the backup cannot be read or written."""
    CANNOT_LISTEN = 6
    """`serve` cannot listen on the address, or the certificate cannot be used."""
    NO_PROFILE = 10
    """The profile does not exist, or there are several and none was named."""
    NO_SERVER = 11
    """No server answered."""
    REFUSED = 12
    """The server refused the request."""
    FAILED = 13
    """The message failed; the reason was printed."""
    PENDING = 14
    """The message is in the outbox, and has not got as far as `--wait` asks; or linking or moving is not finished."""
    ENDED = 15
    """The server rejected this device permanently, or another connection replaced it."""
    LOCKED = 16
    """A passphrase, key, recovery code or PIN is missing or wrong."""
    DIFFERS = 17
    """The safety number is not the one that was given."""
    TIMED_OUT = 18
    """The time that --timeout gives is over."""
    INTERNAL = 70
    """A mistake of Nightmail itself."""


class Failure(click.ClickException):
    """One sentence, then what to do next. `reason` is the code of a refusal or of a failed message, if there is one."""

    def __init__(self, code: Exit, sentence: str, next_step: str = "", reason: str = "") -> None:
        super().__init__(f"{sentence} {next_step}".strip())
        self.exit_code = code  # pyright: ignore[reportAttributeAccessIssue]  # click reads it from the instance
        self.reason = reason


def report(error: click.ClickException, *, as_json: bool) -> None:
    """Print what went wrong: one line on standard error; for scripts, an object on standard output as well."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not as_json:
        error.show()
        return
    message = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        message = "Missing command."
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "nightmail"
        message = f"{message.rstrip('.')}. See {path} --help."
    click.echo(f"nightmail: {message}", err=True)
    if as_json:
        print_error(error.exit_code, message, error.reason if isinstance(error, Failure) else "")


def print_error(code: int, message: str, reason: str = "") -> None:
    """The object that scripts read instead of a result."""
    shape = {"type": "error", "error": Exit(code).name.lower(), "exit_code": code, "message": message}
    print_json({**shape, "reason": reason} if reason else shape)


NOT_CANCELLED = {
    "already_sent": "It was sent already.",
    "in_progress": "It is being sent right now.",
    "already_ended": "It has failed already.",
    "unknown_schedule": "Nothing is scheduled under this id.",
}
"""Why a scheduled message could not be cancelled."""

REASONS: dict[str, str] = {
    "unknown_recipient": "nobody has registered that handle on this server; check the spelling",
    "mailbox_full": "the mailboxes of all the recipient's devices are full; try again when one has been online",
    "expired": "no device of the recipient received it in time",
    "device_removed": "the device it was for was removed",
    "undecryptable": "no device of the recipient could decrypt it",
    "too_old": "it waited in the outbox for too long",
    "too_large": "it is larger than this server accepts",
    "given_up": "this device gave it up",
    "not_allowed": "the server does not allow this device to send it",
    "not_group_admin": "only admins may write in this group",
    "not_member": "you are no longer a member of this group",
    "unknown_group": "the server knows no such group",
    "time_past": "its time had passed when the server heard of it",
    "stale_devices": "the recipient's devices had changed, and no device of yours was online to seal it again",
    "outcome_unknown": "the server no longer knows what became of it",
    "blob_quota": "your files on the server take all the space that they may; it is free again when they were fetched",
    "blob_too_large": "the file is larger than this server accepts",
    "too_many_blobs": "you have too many files on the server",
    "too_many_addressed": "the file is for more devices than this server allows",
    "file_changed": "the file changed while it was being sent; send it again",
    "file_unusable": "the file could not be read",
    "file_gone": "the server no longer has the file; send it again",
    "not_found": "this server takes no files",
    "dead_lettered": "a fault in the server kept it from being processed",
}
"""Reason code → why a message failed, for people."""

REFUSALS: dict[str, str] = {
    "handle_taken": "Choose another one. If it is yours, use its profile (--profile) or its PIN (--pin).",
    "verification_needed": "Run nightmail register in a terminal to get a code, or give it with --code.",
    "verification_wrong": "Register without --code to get a new one.",
    "verification_refused": "Check the spelling.",
    "pin_needed": "Give the PIN that was set with nightmail lock (--pin).",
    "pin_wrong": "Try again with --pin.",
    "pin_locked": "There were too many wrong PINs.",
    "rate_limited": "Wait a moment, then try again.",
    "unauthorized": "Check that the token belongs to this server.",
    "not_found": "Check the spelling.",
    "malformed": "Correct it and try again.",
    "too_many_devices": "The account has used up its device numbers: register another handle.",
    "too_many_linked": "Remove one first: nightmail devices remove.",
    "unknown_device": "List the devices: nightmail devices list.",
    "list_conflict": "Another device changed the list at the same time; try again.",
}
"""Refusal code → advice."""


CA_ADVICE = "If it is a private certificate, name the CA file that signed it (--ca-file); otherwise check the address."


def advice(why: str) -> str:
    """What to do about a connection that could not be opened; empty if nothing is known."""
    return CA_ADVICE if why.startswith(UNTRUSTED) else ""


def no_keys_yet(handle: str) -> str:
    """Why a message to an account without a signed list waits."""
    return f"{plain(handle)} has registered, but has not published its keys yet: nothing can be encrypted for it."


@contextmanager
def explained() -> Generator[None]:
    """Turn errors that a user can cause into a `Failure`."""
    try:
        yield
    except errors.ClientError as error:
        raise explain(error) from error
    except OSError as error:
        # Without a name it is no file that the user chose.
        if error.filename is None:
            raise
        raise Failure(
            Exit.UNWRITABLE,
            f"{error.filename} cannot be used: {error.strerror}.",
            "Check the path and its permissions.",
        ) from error
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
            return Failure(Exit.LOCKED, sentence(error), "Nothing was changed.")
        case errors.ProfileLocked():
            return Failure(Exit.LOCKED, sentence(error))
        case errors.ProfileError():
            return Failure(
                Exit.UNWRITABLE, sentence(error), "Check its permissions, or name another profile (--profile)."
            )
        case errors.StoreFailed():
            return Failure(Exit.UNWRITABLE, sentence(error), "Check the disk. Nothing that was not stored was sent.")
        case errors.BackupLocked():
            return Failure(Exit.LOCKED, sentence(error), "Nothing was changed.")
        case errors.BackupDamaged():
            return Failure(Exit.DAMAGED, sentence(error), "Nothing was changed.")
        case errors.BackupTooNew():
            return Failure(Exit.DAMAGED, sentence(error), "Use that version. Nothing was changed.")
        case errors.BackupOfAnother():
            return Failure(Exit.USAGE, sentence(error), "Nothing was changed.")
        case errors.BackupOlder():
            return Failure(Exit.USAGE, sentence(error), "Nothing was changed. --older restores it all the same.")
        case errors.BackupError():
            return Failure(Exit.UNWRITABLE, sentence(error), "The former backup, if there is one, is as it was.")
        case errors.Untrusted():
            return Failure(Exit.NO_SERVER, sentence(error), CA_ADVICE)
        case errors.Unreachable():
            return Failure(
                Exit.NO_SERVER, sentence(error), "Start one (nightmail serve), or name another one (--server)."
            )
        case errors.Refused():
            said = error.detail or error.title
            return Failure(Exit.REFUSED, f"The server refused: {said}.", REFUSALS.get(error.code, ""), error.code)
        case errors.DeliveryFailed():
            return Failure(Exit.FAILED, failed(error.reason), reason=error.reason)
        case errors.Stopped():
            return Failure(Exit.ENDED, f"The server closed the connection permanently: {error.sentence}.")
        case errors.NumberDiffers():
            return Failure(Exit.DIFFERS, sentence(error), "Show it again: nightmail verify-contact.")
        case errors.Misused():
            return Failure(Exit.USAGE, sentence(error))
        case group_errors.GroupError():
            said, next_step = refusal_words(error)
            code = error.code if isinstance(error, group_errors.ChangeRefused) else ""
            usage = isinstance(error, group_errors.NoSuchGroup)
            return Failure(
                Exit.USAGE if usage else Exit.REFUSED, f"{said[:1].upper()}{plain(said[1:])}.", next_step, code
            )
        case schedule_errors.NotCancelled():
            return Failure(Exit.REFUSED, NOT_CANCELLED.get(error.word, sentence(error)), reason=error.word)
        case schedule_errors.ScheduleError():
            return Failure(Exit.REFUSED, sentence(error), "Nothing was scheduled.", reason=error.word)
        case media_errors.FileUnusable():
            return Failure(Exit.UNWRITABLE, sentence(error), "Check the path and its permissions.", error.reason)
        case media_errors.FileRefused():
            return Failure(Exit.REFUSED, sentence(error), "Nothing of it was saved.", error.reason)
        case media_errors.MediaError():
            return Failure(Exit.REFUSED, sentence(error), reason=error.reason)
        case errors.TooLarge():
            return Failure(Exit.USAGE, sentence(error), "Nothing was sent.")
        case _:
            return Failure(Exit.OTHER, sentence(error))


def failed(reason: str) -> str:
    """Why a message failed, as a sentence."""
    return f"The message failed ({reason}): {REASONS.get(reason, 'the server gave no explanation')}."


def sentence(error: Exception) -> str:
    """The text of an error, with a capital letter (unless it begins with an address or a path) and a full stop."""
    text = str(error)
    return f"{text}." if "/" in text.split(" ", 1)[0] else f"{text[:1].upper()}{text[1:]}."
