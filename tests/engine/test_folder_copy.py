"""Checking and copying a data folder, while a server uses it and while none does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nightmail.engine.data_folder import LOCK_NAME
from nightmail.engine.filelog.segment import number_of
from nightmail.engine.folder_copy import back_up, check_whole, restore
from nightmail.engine.ports import Damaged, EngineError, InUse, Unwritable
from nightmail.engine.sqlite import FILE_NAME
from nightmail.engine.sqlite.presence_file import PRESENCE_NAME, PersonKept, PresenceFile
from nightmail.engine.sqlite.row_sums import FORWARD, summed
from nightmail.model.ids import account_of
from nightmail.model.words import Audience
from tests.embedded import Server, live
from tests.engine.rig import PHONE, a_message
from tests.engine.sqlite.editing import edit, sum_again
from tests.engine.test_folder_check import everything_in, texts_in


def quietly(what: str, done: int, of: int) -> None:
    pass


def a_stopped_folder(folder: Path) -> list[str]:
    server = Server(folder)
    texts = live(server, 60)
    server.close()
    return texts


def contents(folder: Path) -> dict[str, object]:
    return {name: what for name, what in everything_in(folder).items() if name != LOCK_NAME}


def test_a_stopped_folder_is_whole_and_checking_it_changes_nothing(tmp_path: Path) -> None:
    a_stopped_folder(tmp_path / "data")
    before = everything_in(tmp_path / "data")
    checked = check_whole(tmp_path / "data", quietly)
    assert everything_in(tmp_path / "data") == before
    assert (checked.served, checked.pointer, checked.last) == (False, 32, 62)
    assert checked.rows > 30


def test_a_folder_that_is_served_can_be_checked_again_and_again_while_it_is_written_to(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    live(server, 60)
    for n in range(61, 90):
        server.say(PHONE, a_message(n, text="more"))
        if n % 7 == 0:
            server.loop.save(at_once=True)
        checked = check_whole(tmp_path / "data", quietly)
        assert (checked.served, checked.last) == (True, n + 2)
    server.close()


@pytest.mark.parametrize("served", [True, False])
def test_a_backup_has_everything_that_was_acknowledged_before_it_began(tmp_path: Path, served: bool) -> None:
    server = Server(tmp_path / "data")
    texts = live(server, 60)
    if not served:
        server.close()
    made = back_up(tmp_path / "data", tmp_path / "backup", quietly)
    assert made.rows == check_whole(tmp_path / "backup", quietly).rows > 0
    if served:
        # Life goes on, and nothing of it is in the backup.
        for n in range(61, 90):
            assert server.say(PHONE, a_message(n, text="later"))
        server.loop.save(at_once=True)
        server.close()
    restore(tmp_path / "backup", tmp_path / "restored", quietly)
    assert texts_in(tmp_path / "restored") == texts
    assert texts_in(tmp_path / "backup") == texts
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "data", "restored"]


def test_what_is_acknowledged_and_trimmed_while_the_backup_is_made_does_not_spoil_it(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    texts = live(server, 60)
    said = 60

    def busy(what: str, done: int, of: int) -> None:
        nonlocal said
        for _ in range(40):
            said += 1
            assert server.say(PHONE, a_message(said, text=f"meanwhile {'x' * 300}"))
        server.loop.save(at_once=True)

    segments = {path.name for path in (tmp_path / "data").iterdir() if number_of(path.name)}
    back_up(tmp_path / "data", tmp_path / "backup", busy)
    assert not segments & {path.name for path in (tmp_path / "data").iterdir()}  # all of them were trimmed
    server.close()
    found = texts_in(tmp_path / "backup")
    assert found[:60] == texts
    assert all(text.startswith("meanwhile") for text in found[60:])


def a_flipped_bit(name: str) -> Callable[[Path], None]:
    def flip(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(data)

    return flip


def a_changed_row(folder: Path) -> None:
    edit(folder, "UPDATE entry SET body = CAST(replace(body, 'message 5', 'message 6') AS BLOB)")


def a_vanished_row(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.glob(f"{FILE_NAME}-sums*")}
    edit(folder, "DELETE FROM entry WHERE seq = 3")
    for path, data in before.items():
        path.write_bytes(data)


@pytest.mark.parametrize("damage", [a_flipped_bit(FILE_NAME), a_changed_row, a_vanished_row])
def test_damage_is_found_and_neither_backed_up_nor_restored(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    a_stopped_folder(tmp_path / "data")
    damage(tmp_path / "data")
    for attempt in (
        lambda: check_whole(tmp_path / "data", quietly),
        lambda: back_up(tmp_path / "data", tmp_path / "backup", quietly),
        lambda: restore(tmp_path / "data", tmp_path / "restored", quietly),
    ):
        with pytest.raises(Damaged) as raised:
            attempt()
        assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_forwards_are_checked_like_every_other_row(tmp_path: Path) -> None:
    a_stopped_folder(tmp_path / "data")
    before = check_whole(tmp_path / "data", quietly)
    stored = summed(b"%20d%20d%b" % (1, 8, b"told"), FORWARD)[40:]
    edit(tmp_path / "data", "INSERT INTO forward VALUES (1, 8, ?)", (stored,))
    assert check_whole(tmp_path / "data", quietly) == before._replace(rows=before.rows + 1)
    edit(tmp_path / "data", "UPDATE forward SET k = 9")
    with pytest.raises(Damaged, match=r"^the forward 9 to shard 1 is stored, but is not what was written$"):
        check_whole(tmp_path / "data", quietly)


def test_damage_in_the_log_is_found(tmp_path: Path) -> None:
    a_stopped_folder(tmp_path / "data")
    last = sorted(path.name for path in (tmp_path / "data").iterdir() if number_of(path.name))[-3]
    a_flipped_bit(last)(tmp_path / "data")
    with pytest.raises(Damaged, match=last):
        check_whole(tmp_path / "data", quietly)


def test_nothing_is_overwritten_and_nothing_is_made_of_nothing(tmp_path: Path) -> None:
    a_stopped_folder(tmp_path / "data")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("mine")
    attempts: list[tuple[Callable[[], object], type[EngineError]]] = [
        (lambda: back_up(tmp_path / "data", tmp_path / "there", quietly), Unwritable),
        (lambda: restore(tmp_path / "data", tmp_path / "there", quietly), Unwritable),
        (lambda: back_up(tmp_path / "nothing", tmp_path / "new", quietly), Unwritable),
        (lambda: check_whole(tmp_path / "nothing", quietly), Unwritable),
    ]
    for attempt, kind in attempts:
        with pytest.raises(kind):
            attempt()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["mine"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "there"]


def test_a_served_folder_is_no_backup(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with pytest.raises(InUse, match="is served: restore from a backup of it"):
        restore(tmp_path / "data", tmp_path / "restored", quietly)
    server.close()


def test_progress_is_told_and_ends_at_the_whole(tmp_path: Path) -> None:
    a_stopped_folder(tmp_path / "data")
    told: dict[str, tuple[int, int]] = {}
    back_up(tmp_path / "data", tmp_path / "backup", lambda what, done, of: told.update({what: (done, of)}))
    assert {what: done == of for what, (done, of) in told.items()} == dict.fromkeys(
        ("checking pages", "copying rows", "copying the log", "verifying pages"), True
    )


def test_checksums_that_agree_with_a_damaged_page_do_not_hide_a_damaged_row(tmp_path: Path) -> None:
    a_stopped_folder(tmp_path / "data")
    data = (tmp_path / "data" / FILE_NAME).read_bytes()
    at = data.rindex(b"message 7 ")
    (tmp_path / "data" / FILE_NAME).write_bytes(data[:at] + b"message 8 " + data[at + 10 :])
    sum_again(tmp_path / "data")
    with pytest.raises(Damaged, match=r"^the entry \d+ of queue \d+ is stored, but is not what was written$"):
        check_whole(tmp_path / "data", quietly)


@pytest.mark.parametrize("served", [True, False])
def test_a_backup_has_what_people_chose_to_show(tmp_path: Path, served: bool) -> None:
    a_stopped_folder(tmp_path / "data")
    file = PresenceFile(str(tmp_path / "data" / PRESENCE_NAME))
    file.put_audience(account_of(PHONE), Audience.NOBODY)
    server = Server(tmp_path / "data") if served else None
    back_up(tmp_path / "data", tmp_path / "backup", quietly)
    file.close()
    if server:
        server.close()
    restore(tmp_path / "backup", tmp_path / "restored", quietly)
    with closing(PresenceFile(str(tmp_path / "restored" / PRESENCE_NAME))) as restored:
        assert restored.read([account_of(PHONE)]) == {account_of(PHONE): PersonKept(0, Audience.NOBODY)}
