"""One backup, from beginning to end: the whole profile, or what changed since the last one.

Knows:   when a file can be added to, and when it is better written again as a whole.
Touches: the file (`container.py`); the errand, and the noted changes of the store.
Never:   forgets a change before the file that holds it is durable.

The caller calls, in this order, and may do anything else in between:

    begin()     on the store's thread; then commit
    prepare()   on any thread: looks at the file, and copies it
    steps()     on the store's thread, a step at a time
    finish()    on any thread: makes the file durable
    save()      on the store's thread; then commit

After a crash or an error between any two of them the former file or the new one is whole, and the next backup holds
what this one would have held: a file that is not the one that the profile remembers is written again as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from nightmail.client.errors import BackupError, BackupLocked, Misused
from nightmail.client.profile.settings import changed
from nightmail.client.store.changes_port import Change
from nightmail.client.store.port import Store
from nightmail.e2ee.chance import SYSTEM, Chance
from nightmail.e2ee.errors import BadRecoveryCode
from nightmail.e2ee.streams.backup import SEGMENT_NONCE_BYTES, BackupSecret, wrap

from .container import SegmentWriter, Walked, walk
from .forms import FORM, BackupHead, encode
from .gathering import Gathering
from .newest import lineage_of, note_made
from .schedule import BackupState, ServerCopy, new_state, put_state, state_in
from .server_parts import ID_BYTES

SEGMENTS_MAX = 64
"""After so many the file is written again as a whole; or when what was added is as long as the whole."""

Progress: TypeAlias = Callable[[int, int], None]
"""(messages done, messages in all)"""


def state_with(state: BackupState | None, secret: BackupSecret | None, chance: Chance = SYSTEM) -> BackupState:
    """The state with the key that a secret opens from now on, or with the one it has. Raises Misused, BackupLocked.

    With a new key the file is written as a whole.
    """
    if secret is None:
        if state is None:
            raise Misused("the first backup needs a passphrase or a recovery code")
        return state
    if not secret.text:
        raise Misused("an empty passphrase protects nothing")
    try:
        wrapped = wrap(secret, chance)
    except BadRecoveryCode as error:
        raise BackupLocked(str(error)) from error
    return replace(state, head=wrapped.head, key=wrapped.key) if state is not None else new_state(wrapped)


class BackupMade(NamedTuple):
    file: Path
    at: int
    messages: int
    """How many there are in it."""
    saved: int
    """How many of them were written this time."""
    size: int
    segments: int
    is_whole: bool


class BackupRun:
    def __init__(
        self, store: Store, folder: Path | None, state: BackupState, file: Path, now: int, chance: Chance = SYSTEM,
        *, to_server: bool = False,
    ) -> None:  # fmt: skip
        """`folder` is that of the profile, for its settings. `state` has the key. `to_server`: the file is what the
        server is to have (`server_copy.py`)."""
        self._to_server, self._backup_id = to_server, chance.draw(ID_BYTES)
        self._store, self._state, self._file, self._now = store, state, file, now
        self._settings = changed(folder) if folder is not None else {}
        self._nonce = chance.draw(SEGMENT_NONCE_BYTES)
        self._writer: SegmentWriter | None = None
        self._written: Walked | None = None
        self._changes: list[Change] | None = None
        """What an increment would hold; None: nothing was noted, so only a whole backup is right."""
        self._upto = self._messages = 0
        self._gathering = Gathering(store, self._settings)
        self.total = 0
        """How many messages will be written."""

    @property
    def done(self) -> int:
        return self._gathering.messages

    def begin(self) -> None:
        self._upto, changes = self._store.changes()
        if self._upto:
            self._changes = changes
        else:
            self._store.note_changes()
            self._upto, _ = self._store.changes()

    def prepare(self) -> None:
        """Raises BackupError."""
        former = self._former() if self._changes is not None else None
        self._writer = SegmentWriter(self._file, self._state.head, self._state.key, self._nonce, former)
        if former is None:
            self._changes = None
        self._writer.begin()

    def _former(self) -> Walked | None:
        """The file that can be added to, if it is there and the one that this profile wrote."""
        state = self._state
        too_many = state.segments >= SEGMENTS_MAX or state.size >= 2 * state.whole_size
        if str(self._file) != state.file or too_many:
            return None
        try:
            walked = walk(self._file)
        except BackupError:
            return None
        return walked if (walked.head, walked.link) == (state.head, state.link) else None

    def steps(self) -> Iterator[None]:
        """Raises BackupError, StoreFailed."""
        assert self._writer is not None
        yield from self._writer.steps(self._content())

    def _content(self) -> Iterator[bytes]:
        store, identity = self._store, self._store.identity()
        assert identity is not None
        messages, changes = store.past_messages(), self._changes
        self.total = messages if changes is None else len(changes)
        yield encode(BackupHead(FORM, identity.account, identity.handle, self._now, changes is None, messages))
        parts = self._gathering.everything() if changes is None else self._gathering.changed(changes)
        for part in parts:
            yield encode(part)
        self._messages = messages

    def finish(self) -> None:
        """Raises BackupError."""
        assert self._writer is not None
        self._written = self._writer.finish()

    def save(self) -> BackupMade:
        written = self._written
        assert written is not None
        # The person may have changed the schedule meanwhile.
        state = state_in(self._store) or self._state
        is_whole = self._changes is None
        whole_size = written.size if is_whole else self._state.whole_size
        put_state(
            self._store,
            replace(
                state, head=self._state.head, key=self._state.key, file=str(self._file), at=self._now,
                messages=self._messages, segments=len(written.segments), size=written.size, whole_size=whole_size,
                link=written.link, server=self._server_copy(state.server, is_whole=is_whole),
            ),
        )  # fmt: skip
        identity = self._store.identity()
        assert identity is not None
        note_made(self._store, lineage_of(self._state.head), identity.device, self._now)
        self._store.drop_changes(self._upto)
        return BackupMade(
            self._file, self._now, self._messages, self.done, written.size, len(written.segments), is_whole
        )

    def _server_copy(self, former: ServerCopy | None, *, is_whole: bool) -> ServerCopy | None:
        """A file that was written as a whole is another backup; the server keeps the former one until it has this."""
        if not self._to_server:
            return None
        if former is not None and not is_whole:
            return former
        return ServerCopy(self._backup_id, retired=former.all_blobs if former else ())

    def abandon(self) -> None:
        """It failed, or is not wanted any more. The former file stays."""
        if self._writer is not None and self._written is None:
            self._writer.abandon()


def make_backup(
    store: Store, folder: Path | None, state: BackupState, file: Path, now: int, progress: Progress | None = None,
    chance: Chance = SYSTEM, *, to_server: bool = False,
) -> BackupMade:  # fmt: skip
    """A backup at once, on this thread. Raises BackupError, StoreFailed."""
    run = BackupRun(store, folder, state, file, now, chance, to_server=to_server)
    try:
        run.begin()
        store.commit()
        run.prepare()
        for _ in run.steps():
            if progress is not None:
                progress(run.done, run.total)
        run.finish()
        made = run.save()
        store.commit()
    finally:
        run.abandon()
    return made
