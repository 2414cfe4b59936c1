"""What commands print."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.text import Text

from nightmail.cli.output import INDENT, digit_groups, hanging, plain, plain_body


def test_a_long_line_is_wrapped_with_an_indent_in_a_terminal_and_kept_whole_in_a_file() -> None:
    line = Text("12:00:00  mum: " + "x " * 30 + "12:00:01  ada: Hello")
    in_file, in_terminal = (Console(width=40, force_terminal=on, file=StringIO()) for on in (False, True))
    assert hanging(in_file, line).plain == line.plain
    first, *rest = hanging(in_terminal, line).plain.split("\n")
    assert first.startswith("12:00:00  mum: x")
    assert rest
    assert all(each.startswith(INDENT) and len(each) <= 40 for each in rest)


def test_text_of_others_keeps_joined_emoji_and_loses_what_controls_a_terminal() -> None:
    family, nasty = "\U0001f469\u200d\U0001f467", "a\x1b[2J\u202eb\u2028c\td"
    assert (plain_body(family), plain_body(nasty), plain_body("a\nb")) == (family, "a�[2J�b�c d", "a\nb")
    assert (plain(family), plain("a\nb")) == ("\U0001f469�\U0001f467", "a�b")


def test_a_number_is_shown_in_groups() -> None:
    number = "".join(f"{n:05d}" for n in range(12))
    assert digit_groups(number).split("\n")[0] == "00000  00001  00002  00003"
    assert digit_groups(number).split() == [f"{n:05d}" for n in range(12)]
