"""Times as text."""

from __future__ import annotations

import pytest

from nightmail.api.times import from_rfc3339, rfc3339


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_007, "2023-11-14T22:13:20.007Z"),
        (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
    ],
)
def test_a_time_is_rfc_3339_in_utc_with_milliseconds(at_ms: int, text: str) -> None:
    assert rfc3339(at_ms) == text


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14T23:13:20.1239+01:00", 1_700_000_000_123),
        ("2023-11-14t22:13:20.5z", 1_700_000_000_500),
        ("2016-12-31T23:59:60Z", 1_483_228_799_000),
    ],
)
def test_a_time_is_read_by_rfc_3339(text: str, ms: int) -> None:
    assert from_rfc3339(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "", "2023-11-14", "2023-11-14T22:13:20", "2023-13-14T22:13:20Z", "2023-11-14T25:13:20Z", "20231114T221320Z",
        "2023-11-14T22:13:20+25:00", "٢٠٢٣-11-14T22:13:20Z", " 2023-11-14T22:13:20Z", "2023-11-14T22:13:20Z\n",
        "0000-01-01T00:00:00Z", "now",
    ],
)  # fmt: skip
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(ValueError):
        from_rfc3339(text)
