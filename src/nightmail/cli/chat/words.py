"""Words in the window: on one line, without markup, and errors as sentences."""

from __future__ import annotations

from rich.text import Text

from nightmail.cli.errors import explain, sentence
from nightmail.cli.group_words import refusal_words
from nightmail.client import GroupError, MediaError, ScheduleError
from nightmail.client.errors import ClientError


def one_line(words: str) -> Text:
    return Text(words, no_wrap=True, overflow="ellipsis")


def escaped(words: str) -> str:
    """For what would otherwise be read as markup."""
    return words.replace("[", "\\[")


def error_words(error: ClientError) -> str:
    match error:
        case GroupError():
            said = refusal_words(error)[0]
            return f"{said[:1].upper()}{said[1:]}."
        case ScheduleError() | MediaError():
            return explain(error).message
        case _:
            return sentence(error)
