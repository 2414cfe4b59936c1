"""Points in time, as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nightmail.cli.times import time_or_delay, time_typed


def test_a_length_of_time_and_a_time_with_its_zone_are_told_apart() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    typed = ("5m", " 14D ", "2026-03-01T12:00:00Z", "2026-03-01T13:00+01:00", "20260301T12:00:00Z")
    assert [time_or_delay(each) for each in typed] == [timedelta(minutes=5), timedelta(days=14), noon, noon, noon]
    assert time_typed("2026-03-01T12:00:00Z") == noon


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("soon", "'soon' is no time: write 30s, 5m, 1h, 7d, or 2026-03-01T12:00:00Z"),
        ("off", "'off' is no time: write 30s, 5m, 1h, 7d, or 2026-03-01T12:00:00Z"),
        ("0s", "'0s' is no time: write 30s, 5m, 1h, 7d, or 2026-03-01T12:00:00Z"),
        ("2026-03-01", "'2026-03-01' has no zone: 2026-03-01T12:00:00Z, or +01:00 instead of Z"),
        ("14:65", "'14:65' is no time: 2026-03-01T12:00:00Z is one"),
    ],
)
def test_what_can_be_no_time_is_said_so(typed: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        time_or_delay(typed)
    assert str(refused.value) == why
