# pyright: reportPrivateUsage=false
"""Bugs of files on the client: the order of things, what is verified, and what is left behind."""

from __future__ import annotations

from nightmail.client.media import transfers
from nightmail.client.media.jobs import MediaJobs
from nightmail.client.media.part import Media
from nightmail.client.media.stream_check import StreamCheck

from .tools import Bug, edit, edit_method

FILES = ("files",)
BLOBS = ("tests of blobs",)
TESTS = ("tests/client/media",)

BUGS = (
    Bug("a message is sent before its blob is whole",
        edit_method(MediaJobs, "_upload",
                    "await upload(self._http, blob, sealed.size, source, self._limits, self._report(message_id))",
                    "await source(0, 1 << 40)"), FILES, TESTS),
    Bug("an audience is forgotten",
        edit_method(Media, "addressing", "if not missing:", "if True:"), FILES, TESTS),
    Bug("an audience forgets own devices",
        edit_method(Media, "addressing", "missing = set(devices) -",
                    "missing = {each for each in devices if account_of(each) != self._context.identity.account} -"),
        FILES, TESTS),
    Bug("a blob that is named again has its full life",
        edit_method(Media, "wanted", "left_ms(self._context, message) if message.life_ms else 0", "message.life_ms"),
        FILES, TESTS),
    Bug("an upload believes that the server has nothing",
        edit(transfers.upload, "offset = seen.offset", "offset = 0"), FILES, TESTS),
    Bug("a chunk leaves before its digest is durable",
        edit_method(MediaJobs, "_remember", "await self._driver.committed()", "pass"), FILES, TESTS),
    Bug("a file that changed is sealed in the same places",
        edit_method(MediaJobs, "_remember", "if not digests.startswith(before) or first * DIGEST_BYTES > len(known):",
                    "if False:"), FILES, TESTS),
    Bug("an upload begins again under the key that it had",
        edit_method(Media, "begin_again", 'replace(upload, blob="", key=key)', 'replace(upload, blob="")'),
        FILES, TESTS),
    Bug("the digest of a file is not compared",
        edit_method(StreamCheck, "_chunk", "if is_last and not", "if False and not"), FILES, TESTS),
    Bug("the commitment of a file is not checked",
        edit_method(StreamCheck, "_head", "self._cipher.check_head(head)", "pass"), FILES, TESTS),
    Bug("the server hears of a file before it is durable",
        edit_method(MediaJobs, "fetch", "await in_thread(arriving.finish)",
                    "await in_thread(lambda: self._http.verified(pointer.blob_id)); await in_thread(arriving.finish)"),
        FILES, TESTS),
    Bug("a file is refused for what lies there of an earlier attempt",
        edit_method(MediaJobs, "_fetch_to", "if not first:", "if True:"), BLOBS, TESTS),
    Bug("a part of a file outlives its message",
        edit_method(Media, "message_ended", ", self.rows.due_state(SAVING, message.id))", ")"), FILES, TESTS),
    Bug("nobody hears that a file was kept",
        edit_method(Media, "kept", "self.rows.put_due(VERIFIED, pointer.blob_id)", "pass"), FILES, TESTS),
    Bug("a file outlives its message",
        edit_method(Media, "message_ended", "self.rows.put_due(ERASING,", "(lambda *_: None)("),
        FILES, TESTS),
)  # fmt: skip
