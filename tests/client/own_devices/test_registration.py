"""How a profile becomes a device, as far as that goes without a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nightmail.client.errors import Misused, Unreachable
from nightmail.client.link.http import Http
from nightmail.client.own_devices.registration import Applicant, join
from nightmail.client.profile.profile import Profile
from nightmail.client.store.rows import Identity
from nightmail.model.words import Platform

NOBODY = Http(["http://127.0.0.1:9"])


def joined(folder: Path, handle: str) -> Identity:
    profile = Profile(folder)
    try:
        return asyncio.run(join(profile, Applicant(handle, "", Platform.CLI, "", ""), NOBODY, find_ms=1))
    finally:
        profile.close()


def saved(folder: Path) -> Identity | None:
    profile = Profile(folder)
    try:
        return profile.store.identity()
    finally:
        profile.close()


def test_an_empty_profile_does_not_become_anybody_by_itself(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="is empty"):
        joined(tmp_path, "")
    assert saved(tmp_path) is None


def test_who_a_device_will_be_is_chosen_once_and_asked_for_again(tmp_path: Path) -> None:
    with pytest.raises(Unreachable):
        joined(tmp_path, "alice")
    chosen = saved(tmp_path)
    assert chosen is not None
    assert (chosen.handle, chosen.device) == ("alice", 0)
    with pytest.raises(Misused, match="never finished"):
        joined(tmp_path, "")
    with pytest.raises(Misused, match="belongs to 'alice'"):
        joined(tmp_path, "bob")
    with pytest.raises(Unreachable):
        joined(tmp_path, "alice")
    assert saved(tmp_path) == chosen


def test_what_shows_that_a_handle_is_theirs_is_in_no_trace() -> None:
    assert "4711" not in repr(Applicant("alice", "", Platform.CLI, "", "4711"))
