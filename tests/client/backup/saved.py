"""Profiles with something in them, and backups of them."""

from __future__ import annotations

from pathlib import Path

from nightmail.client.backup.looking import BackupInfo, OpenBackup, open_backup
from nightmail.client.backup.making import BackupMade, make_backup, state_with
from nightmail.client.backup.schedule import state_in
from nightmail.client.messages import Message, Tick
from nightmail.client.own_devices.controls import PastMessage
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Contact, Conversation, Identity
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.streams.backup import BY_CODE, BackupSecret
from nightmail.e2ee.streams.recovery_code import words_of
from nightmail.model.ids import MessageId, account_id, device_id
from nightmail.model.words import Kind

ADA, BOB = account_id("ada"), account_id("bob")
ME = Identity("ada", ADA, device_id(ADA, 1), 7, b"t" * 32)
AT = 1_760_000_000_000
CODE = BackupSecret(BY_CODE, words_of(bytes(range(16))))


def a_message(n: int, text: str = "", *, life_ms: int = 0, state: Tick = Tick.SENT, at: int | None = None) -> Message:
    by = ME.device
    return Message(
        id=str(MessageId(AT + n, n, by, "abcd")), peer=BOB, by=by, own=True, at=AT + n if at is None else at,
        body=encode_content(Content(Kind.TEXT, text or f"message {n}", life_ms=life_ms or None)), life_ms=life_ms,
        state=state,
    )  # fmt: skip


def fill(store: Store, count: int = 3) -> None:
    store.put_identity(ME)
    store.put_conversation(Conversation(BOB, "bob", AT))
    store.put_contact(Contact(BOB, "bob", "Robert"))
    for n in range(count):
        store.put_message(a_message(n))
    store.commit()


def back_up(store: Store, file: Path, now: int = AT, folder: Path | None = None) -> BackupMade:
    """As a person does it: under the code the first time."""
    former = state_in(store)
    return make_backup(store, folder, state_with(former, None if former else CODE), file, now)


def opened(file: Path, secret: BackupSecret = CODE) -> OpenBackup:
    return open_backup(file, secret)


def info_of(file: Path) -> BackupInfo:
    return opened(file).info


def saved_messages(file: Path) -> dict[str, PastMessage]:
    """As the newest segment that names each of them has it."""
    found: dict[str, PastMessage] = {}
    for part in opened(file).parts():
        for past in part.messages:
            found.setdefault(past.id, past)
    return found


def saved_contacts(file: Path) -> dict[int, Contact | None]:
    found: dict[int, Contact | None] = {}
    for part in opened(file).parts():
        for account in part.dropped_contacts:
            found.setdefault(account, None)
        for contact in part.contacts:
            found.setdefault(contact.account, contact)
    return found
