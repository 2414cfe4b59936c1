from __future__ import annotations

import pytest

from nightmail.model.forms import NUMBER_MAX
from nightmail.model.records.schedules import CallOutcome
from nightmail.outlets.outcomes import DONE, CallResult, asked_ms, judge

NOW = 1_700_000_000_000  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, DONE),
        (204, DONE),
        (301, CallResult(CallOutcome.REFUSED, "redirected")),
        (307, CallResult(CallOutcome.REFUSED, "redirected")),
        (400, CallResult(CallOutcome.REFUSED, "http_400")),
        (404, CallResult(CallOutcome.REFUSED, "http_404")),
        (408, CallResult(CallOutcome.FAILED, "http_408")),
        (410, CallResult(CallOutcome.REFUSED, "http_410")),
        (429, CallResult(CallOutcome.FAILED, "http_429")),
        (500, CallResult(CallOutcome.FAILED, "http_500")),
        (599, CallResult(CallOutcome.FAILED, "http_599")),
    ],
)
def test_a_status_says_whether_a_repeat_may_help(status: int, outcome: CallResult) -> None:
    assert judge(status, None, NOW) == outcome
    assert outcome.answered


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("7", 7_000),
        (" 0 ", 0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30_000),
        ("Tue, 14 Nov 2023 22:13:10 GMT", 0),
        ("", 0),
        ("-5", 0),
        ("1.5", 0),
        ("soon", 0),
        ("²", 0),
        ("Tue, 99 Nov 2023 22:13:50 GMT", 0),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date_and_otherwise_nothing(text: str, ms: int) -> None:
    assert asked_ms(text, NOW) == ms


def test_retry_after_is_heard_only_where_a_repeat_may_help() -> None:
    assert judge(503, "9" * 20, NOW).retry_after_ms <= NUMBER_MAX
    assert judge(429, "2", NOW) == CallResult(CallOutcome.FAILED, "http_429", 2_000)
    assert judge(404, "2", NOW).retry_after_ms == 0
