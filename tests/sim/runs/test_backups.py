from __future__ import annotations

import pytest

from nightmail.client.backup.gathering import Gathering
from sim.planted.tools import edit_method
from sim.runs.backups import Broken, run


def test_who_comes_back_with_a_backup_finds_everything_once() -> None:
    for seed in range(1, 7):
        run(seed)


def test_the_judge_sees_what_comes_back_as_read() -> None:
    forgets = edit_method(Gathering, "_past", "self._unread.get(message.id)", "None")
    with forgets(), pytest.raises(Broken, match="what was saved"):
        run(1)
