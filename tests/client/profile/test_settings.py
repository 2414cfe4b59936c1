"""A profile's settings: checked, durable, and used by its client."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.client import Client
from nightmail.client.errors import Misused, ProfileDamaged
from nightmail.client.limits import ClientLimits
from nightmail.client.profile.settings import NAME, all_settings, changed, limits_of, put

SERVERS = ["ws://127.0.0.1:9"]


def test_a_client_behaves_as_its_profile_says(tmp_path: Path) -> None:
    assert limits_of(tmp_path / "none") == ClientLimits()
    put(tmp_path, "retry_ms_max", "60000")
    put(tmp_path, "retry_jitter", "0.25")
    assert Client(tmp_path, SERVERS).limits == ClientLimits(retry_ms_max=60_000, retry_jitter=0.25)
    assert Client(tmp_path, SERVERS, limits=ClientLimits(window=2)).limits == ClientLimits(window=2)


def test_without_a_value_a_setting_has_its_default_again(tmp_path: Path) -> None:
    put(tmp_path, "window", "8")
    put(tmp_path, "events", "5")
    assert put(tmp_path, "window", "") == limits_of(tmp_path) == ClientLimits(events=5)
    assert changed(tmp_path) == {"events": 5}


def test_every_default_is_allowed() -> None:
    settings = all_settings()
    assert set(settings) == set(ClientLimits.__struct_fields__)
    assert [each for each in settings.values() if not each.low <= each.default <= each.high] == []


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("windows", "8", "there is no setting 'windows'"),
        ("windows", "", "there is no setting 'windows'"),
        ("window", "257", "window is a whole number from 1 to 256, not 257"),
        ("window", "0", "window is a whole number from 1 to 256, not 0"),
        ("window", "1.5", "window is a whole number from 1 to 256, not '1.5'"),
        ("window", "many", "window is a whole number from 1 to 256, not 'many'"),
        ("retry_jitter", "nan", "retry_jitter is a number from 0 to 0.5, not nan"),
        ("retry_ms_max", "10", "retry_ms_min (1000) is above retry_ms_max (10)"),
    ],
)
def test_what_is_not_allowed_is_refused_in_one_sentence_and_nothing_changes(
    tmp_path: Path, name: str, value: str, sentence: str
) -> None:
    put(tmp_path, "events", "5")
    with pytest.raises(Misused) as refused:
        put(tmp_path, name, value)
    assert (str(refused.value), changed(tmp_path)) == (sentence, {"events": 5})


@pytest.mark.parametrize("text", ["", "[]", "{", '{"window": "8"}', '{"window": 0}', '{"window": 1.5}', '{"new": 1}'])
def test_a_file_that_was_written_wrongly_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(ProfileDamaged):
        limits_of(tmp_path)
