"""A conversation as lines, and lines as they are drawn."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from nightmail.cli.chat.bubbles import draw, draw_summary
from nightmail.cli.chat.lines import Day, LaterLine, MessageLine, Notice, ShownMessage, UnreadMarker, lines_of
from nightmail.cli.chat.model import ConversationSummary
from nightmail.client.messages import Message, Tick
from nightmail.model.ids import MessageId, account_id, device_id

BOB = account_id("bob")
TODAY = date(2026, 11, 16)
NOON = int(datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000


def told(n: int, text: str, at: int, *, own: bool = False, tick: Tick = Tick.SENT, reply_to: str = "") -> ShownMessage:
    by = device_id(BOB, 1)
    ident = str(MessageId(n, n, by, "abcd"))
    return ShownMessage(
        Message(id=ident, peer=BOB, by=by, own=own, at=at, body=text.encode(), state=tick), text, reply_to
    )


def said(each: ShownMessage, clock: str, quote: str = "") -> MessageLine:
    message = each.message
    return MessageLine(message.id, message.own, each.text, clock, message.state, message.reason, quote)


def test_days_are_named_as_one_speaks_of_them() -> None:
    days = [told(n, "x", NOON - back * DAY) for n, back in enumerate((400, 3, 1, 0, 0))]
    lines = lines_of(days, [], TODAY, UTC)
    assert [line.words for line in lines if isinstance(line, Day)] == [
        "Sunday, 12 October 2025", "Friday", "Yesterday", "Today",
    ]  # fmt: skip


def test_what_has_no_stamp_is_of_today_and_has_no_time() -> None:
    pending = told(1, "soon", 0, own=True, tick=Tick.PENDING)
    assert lines_of([pending], [], TODAY, UTC) == [Day("Today"), said(pending, "")]


def test_notices_stand_where_they_happened() -> None:
    first, second, pending = told(1, "a", NOON), told(2, "b", NOON + 2000), told(3, "c", 0)
    between, after = Notice(NOON + 1000, "code changed"), Notice(NOON + 9000, "later")
    assert lines_of([first, second, pending], [after, between], TODAY, UTC) == [
        Day("Today"), said(first, "12:00"), between, said(second, "12:00"), said(pending, ""), after,
    ]  # fmt: skip


def test_an_answer_shows_the_first_line_of_what_it_answers_and_new_begins_at_the_first_unread() -> None:
    question = told(1, "lunch?\nor dinner", NOON)
    answer = told(2, "dinner", NOON, reply_to=question.message.id)
    lost = told(3, "what?", NOON, reply_to="gone")
    assert lines_of([question, answer, lost], [], TODAY, UTC, new_from=answer.message.id)[1:] == [
        said(question, "12:00"), UnreadMarker(), said(answer, "12:00", "lunch? …"),
        said(lost, "12:00", "an earlier message"),
    ]  # fmt: skip


def picture(line: object, width: int) -> str:
    console = Console(width=width, color_system=None, file=(paper := io.StringIO()))
    console.print(line)
    return paper.getvalue()


def test_own_messages_stand_on_the_right_with_how_far_they_got() -> None:
    ticks = {Tick.PENDING: "🕓", Tick.SENT: "✓", Tick.DELIVERED: "✓✓", Tick.READ: "✓✓", Tick.FAILED: "✗"}
    for tick, mark in ticks.items():
        shown = picture(draw(MessageLine("i", True, "hello", "12:00", tick), 60), 60).rstrip("\n").split("\n")[0]
        assert shown.rstrip().endswith(mark)
        assert shown.startswith(" " * 40)
    assert picture(draw(MessageLine("i", False, "hello", "12:00", Tick.SENT), 60), 60).startswith(" hello  12:00 ")


def test_a_message_for_later_stands_there_with_a_clock_and_its_time() -> None:
    shown = picture(draw(LaterLine("i", "hello", "at 14:00:00"), 60), 60)
    assert shown.split() == ["hello", "🕓", "at", "14:00:00"]
    assert shown.startswith(" " * 30)


def test_a_turn_of_the_talk_leaves_room() -> None:
    lines = lines_of([told(1, "a", NOON), told(2, "b", NOON), told(3, "c", NOON, own=True)], [], TODAY, UTC)
    assert [line.turn for line in lines if isinstance(line, MessageLine)] == [False, False, True]
    assert picture(draw(lines[-1], 60), 60).startswith(" " * 60)


def test_a_failure_says_why() -> None:
    shown = picture(draw(MessageLine("i", True, "hello", "", Tick.FAILED, "unknown_recipient"), 90), 90)
    assert "Failed: nobody has registered that handle" in shown


def test_the_list_marks_a_failure_and_tells_long_names_apart() -> None:
    names = [f"{'a very long name ' * 3}(handle {n})" for n in (1, 2)]
    first, second = (
        picture(draw_summary(ConversationSummary(1, name, preview="hi", failed=True), 28, "12:00"), 28)
        for name in names
    )
    assert first.split("\n")[0] != second.split("\n")[0]
    assert "✗ hi" in first
    assert all(cell_len(row) <= 28 for row in first.split("\n"))


def test_text_of_others_is_neither_markup_nor_a_command() -> None:
    shown = picture(draw(MessageLine("i", False, "[bold]\x1b[2Jno[/bold]", "", Tick.SENT), 60), 60)
    assert "[bold]�[2Jno[/bold]" in shown


@given(st.text(), st.integers(1, 120), st.booleans())
def test_nothing_is_too_wide_for_a_narrow_terminal(text: str, width: int, own: bool) -> None:
    picture(draw(MessageLine("i", own, text, "12:00", Tick.READ, "", text), width), width)
    picture(draw_summary(ConversationSummary(1, text, 5, text, 12), width, "12:00"), width)


def test_a_change_of_the_timer_is_a_line_between_messages_and_nobodys_bubble() -> None:
    before, change = told(1, "a", NOON), replace(told(2, "Bob set the timer.", NOON + 1000), is_notice=True)
    failed = replace(told(3, "You set the timer.", 0, own=True, tick=Tick.FAILED), is_notice=True)
    assert lines_of([before, change, failed], [], TODAY, UTC) == [
        Day("Today"), said(before, "12:00"), Notice(NOON + 1000, "Bob set the timer."),
        Notice(0, "You set the timer. This was not sent."),
    ]  # fmt: skip
