"""What is in the files of a profile folder, and a message to look for in them."""

from __future__ import annotations

from pathlib import Path

from nightmail.client.messages import Message
from nightmail.client.profile.profile import Profile
from nightmail.model.ids import MessageId, account_id, device_id

MARKER = b"a sentence that must be nowhere"


def write_marker(profile: Profile, count: int = 1) -> None:
    peer, by = account_id("bob"), device_id(account_id("ada"), 1)
    for n in range(1, count + 1):
        message_id = str(MessageId(1_700_000_000_000, n, by, "abcd"))
        profile.store.put_message(Message(id=message_id, peer=peer, by=by, own=True, body=MARKER))
    profile.store.commit()


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
