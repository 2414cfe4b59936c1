# pyright: reportPrivateUsage=false
"""Bugs of backups: what is in them, what a changed file can pass for, and what a restore brings back."""

from __future__ import annotations

from nightmail.client.backup import newest, restoring, server_parts
from nightmail.client.backup.forms import BackupPart
from nightmail.client.backup.gathering import Gathering
from nightmail.client.backup.looking import OpenBackup
from nightmail.client.backup.making import BackupRun
from nightmail.client.backup.server_copy import ServerCopies
from nightmail.client.own_devices.backup_sync import BackupSync
from nightmail.client.own_devices.past import Past
from nightmail.client.store.memory import MemoryStore
from nightmail.e2ee.streams import backup
from nightmail.e2ee.streams.stream import StreamCipher

from .tools import Bug, all_of, edit, edit_method

BLOBS = ("tests of blobs",)
TESTS = ("tests/client/backup", "tests/e2ee/streams/test_stream.py", "tests/e2ee/streams/test_backup.py")

BUGS = (
    Bug("a message with a timer is in a backup, and its deadline passes there",
        all_of((
            edit_method(Gathering, "_past", "if not message.is_past:", "if not message.at:"),
            edit_method(BackupPart, "check", "any(past.life_ms for past in self.messages)", "False"),
        )), ("backups",), TESTS),
    Bug("a message that waits to be sent is in a backup",
        edit_method(Gathering, "_past", "if not message.is_past:", "if message.life_ms:"), ("backups",), TESTS),
    Bug("what was unread comes back as read",
        edit_method(Gathering, "_past", "self._unread.get(message.id)", "None"), ("backups",), TESTS),
    Bug("an increment can be left out",
        edit(backup.segment_key, 'hkdf(link, key, Label.BACKUP_SEGMENT + b"\\0" + number.to_bytes(4, "big") + nonce',
             'hkdf(bytes(32), key, Label.BACKUP_SEGMENT + b"\\0" + nonce'), ("backups",), TESTS),
    Bug("an increment of an earlier file can be put in",
        edit(backup.segment_key, "hkdf(link, key", "hkdf(bytes(32), key"), ("backups",), TESTS),
    Bug("a stream may end anywhere",
        edit_method(StreamCipher, "_nonce", "bytes((is_last,))", "bytes(1)"), ("backups",), TESTS),
    Bug("a stream commits to no key",
        edit_method(StreamCipher, "check_head", "not hmac.compare_digest(head[1:], self.commitment)", "False"),
        ("backups",), TESTS),
    Bug("a chunk may stand anywhere",
        edit_method(StreamCipher, "_nonce", 'index.to_bytes(4, "big")', "bytes(4)"), ("backups",), TESTS),
    Bug("the oldest segment counts",
        edit_method(OpenBackup, "parts", "reversed(self._walked.segments)", "self._walked.segments"),
        ("backups",), TESTS),
    Bug("a backup is added to a file that is not the last one",
        edit_method(BackupRun, "_former", "(walked.head, walked.link) == (state.head, state.link)", "True"),
        ("backups",), TESTS),
    Bug("a message that changes is not noted for the next backup",
        edit_method(MemoryStore, "put_message", "self._changed(Saved.MESSAGE, message.id)", "pass"),
        ("backups",), TESTS),
    Bug("a contact that changes is not noted for the next backup",
        edit_method(MemoryStore, "put_contact", "self._changed(Saved.CONTACT, row.account)", "pass"),
        ("backups",), TESTS),
    Bug("the backup of another account is restored",
        edit(restoring.check_account, "identity.account != info.account", "False"), ("backups",), TESTS),
    Bug("a restore forgets whom the person has verified",
        edit_method(Past, "trust", "self._believed.adopt(row)", "pass"), ("backups",), TESTS),
    Bug("an older backup is restored although a newer one is known",
        edit(newest.newer_than, "newest > at", "False"), BLOBS, ()),
    Bug("the own devices are not told of a backup",
        edit_method(BackupSync, "step", "self._send(news, 0)", "pass"), BLOBS, ()),
    Bug("a new code leaves backups under the former one the newest",
        edit(newest.note, "each.by == said.by and each.at < said.at", "False"), BLOBS, ()),
    Bug("the former backup stays on the server",
        edit_method(BackupRun, "_server_copy", "retired=former.all_blobs if former else ()", "retired=()"), BLOBS, ()),
    Bug("a backup goes to the server as a whole each time",
        edit_method(BackupRun, "_server_copy", "former is not None and not is_whole", "False"), BLOBS, ()),
    Bug("a part that is on its way is forgotten in a crash",
        edit_method(ServerCopies, "_send", "sent=pending.end, ", ""), BLOBS, ()),
    Bug("parts of a backup are put together although one is missing",
        edit(server_parts._backup, "part.start == sum(each.size for each in file)", "True"), BLOBS, ()),
    Bug("a backup that is being forgotten loses its last part first",
        edit(server_parts._backup, "part.blob.id for part in some)", "part.blob.id for part in some[::-1])"),
        BLOBS, ()),
)  # fmt: skip
