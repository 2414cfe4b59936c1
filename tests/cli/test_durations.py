from __future__ import annotations

import pytest

from nightmail.cli.durations import duration_ms, duration_words, life_differs, timer_words


@pytest.mark.parametrize(
    ("typed", "ms", "words"),
    [
        ("30s", 30_000, "30 seconds"),
        ("1m", 60_000, "1 minute"),
        ("90s", 90_000, "90 seconds"),
        (" 5M ", 300_000, "5 minutes"),
        ("60m", 3_600_000, "1 hour"),
        ("48h", 172_800_000, "2 days"),
        ("7d", 604_800_000, "7 days"),
    ],
)
def test_what_a_person_types_is_read_and_said_in_the_largest_unit_that_fits(typed: str, ms: int, words: str) -> None:
    assert (duration_ms(typed), duration_words(ms)) == (ms, words)


def test_off_is_no_timer() -> None:
    assert duration_ms("Off") == 0
    assert timer_words(0) == "do not disappear"


@pytest.mark.parametrize("typed", ["", "soon", "5", "5 m", "-5m", "0s", "1.5h", "٥m", "9999999s", "5m5s"])
def test_what_is_no_length_of_time_is_refused_with_a_sentence(typed: str) -> None:
    with pytest.raises(ValueError, match="is no length of time: write 30s, 5m, 1h, 7d, or off"):
        duration_ms(typed)


def test_what_no_unit_divides_is_said_in_seconds() -> None:
    assert duration_words(30_500) == "30.5 seconds"


def test_a_difference_names_both_lives() -> None:
    assert life_differs(0, 60_000) == (
        "The author says that a message disappears after 1 minute, the server says never. The shorter time counts."
    )
