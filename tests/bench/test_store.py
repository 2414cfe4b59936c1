"""The benchmark of the client's store runs, and says all of its figures."""

from __future__ import annotations

from pathlib import Path

from bench.store import measure


def test_every_figure_is_measured(tmp_path: Path) -> None:
    figures = measure(tmp_path, 200)
    assert set(figures) == {
        "message_us", "tick_us", "history_of_60_ms", "search_word_ms", "search_letter_ms", "bytes_per_message",
        "open_ms", "open_by_passphrase_ms", "backup_s", "backup_increment_s",
    }  # fmt: skip
    assert all(value > 0 for value in figures.values())
