"""A backup that was kept from each form: every later program reads it.

python -m tests.client.backup.test_kept     writes that of the present form, if it is not there
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.client.backup.forms import FORM
from nightmail.client.backup.looking import BackupInfo
from nightmail.client.backup.restoring import restore_into
from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.rows import Contact

from .saved import ADA, AT, BOB, ME, a_message, back_up, fill, info_of, opened

KEPT = Path(__file__).parent / "kept"


@pytest.mark.parametrize("file", sorted(KEPT.glob("form-*.backup")), ids=lambda file: file.stem)
def test_backups_of_every_form_are_restored(file: Path) -> None:
    assert info_of(file) == BackupInfo(file, "ada", ADA, AT + 1, 4, file.stat().st_size, 2, "recovery code")
    store = MemoryStore()
    store.put_identity(ME)
    store.commit()
    assert restore_into(store, opened(file), AT).messages == 4
    assert store.messages_after("", 9) == [a_message(n) for n in range(4)]
    assert store.contacts() == [Contact(BOB, "bob", "Bobby")]


def test_the_present_form_is_kept() -> None:
    assert (KEPT / f"form-{FORM}.backup").exists()


def main() -> None:
    file = KEPT / f"form-{FORM}.backup"
    if not file.exists():
        store = MemoryStore()
        fill(store)
        back_up(store, file)
        store.put_message(a_message(3))
        store.put_contact(Contact(BOB, "bob", "Bobby"))
        store.commit()
        back_up(store, file, AT + 1)


if __name__ == "__main__":
    main()
