"""The same client for scripts without asyncio: it lives on a thread of its own.

    with SyncClient("alice.profile", servers=["ws://127.0.0.1:8080"], handle="alice") as client:
        client.send("bob", "hello")
        print(client.receive(timeout=5).text)

Every method hands the work to `Client` and waits for it. No rule is written twice.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Collection, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from nightmail.client.backup.making import BackupMade, Progress
from nightmail.client.backup.schedule import BackupState
from nightmail.client.backup.server_parts import ServerBackup
from nightmail.client.store.rows import Conversation
from nightmail.client.store.search import Found
from nightmail.e2ee.content import Content
from nightmail.e2ee.streams.backup import BackupSecret
from nightmail.model.roster import Role
from nightmail.model.words import Lane

from .client import Client
from .errors import Misused
from .group_client import AnyGroup
from .groups.group import Group, SeenBy
from .media_client import SharedFile
from .messages import Message, Position, Tick
from .schedules.scheduled import ScheduledMessage

T = TypeVar("T")


class SyncClient:
    def __init__(self, profile: str | os.PathLike[str], servers: Sequence[str], **options: Any) -> None:
        """`options` are those of `Client`."""
        self._client = Client(profile, servers, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise Misused("this client is open already")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nightmail client", daemon=True)
        self._thread.start()
        try:
            self._run(self._client.__aenter__())
            self._incoming = self._run(self._ask(self._client.messages))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """May be called again."""
        if self._thread is not None:
            try:
                self._run(self._client.close())
            finally:
                self._stop()

    # --- what `Client` does ---------------------------------------------------------------------

    def send(
        self, to: str | int | Group, text: str | Content, *, reply_to_message_id: str = "", lane: Lane = Lane.NORMAL,
        life_ms: int | None = None, mentions: Sequence[str | int] = (),
    ) -> str:  # fmt: skip
        """Queue a message durably; its id."""
        sending = self._client.send(
            to, text, reply_to_message_id=reply_to_message_id, lane=lane, life_ms=life_ms, mentions=mentions
        )
        return self._run(sending).message_id

    def wait(self, message_id: str, state: Tick = Tick.DELIVERED, timeout: float | None = None) -> None:
        """Wait until a message got that far. Raises DeliveryFailed, or TimeoutError."""
        self._run(self._wait(message_id, state), timeout)

    def receive(self, timeout: float | None = None) -> Message:
        """The next message of another person. Raises TimeoutError."""
        return self._run(anext(self._incoming), timeout)  # pyright: ignore[reportArgumentType]  # it is a coroutine

    def messages(self) -> Iterator[Message]:
        """Messages of others, as they come; until the client is closed."""
        while True:
            try:
                yield self.receive()
            except StopAsyncIteration:
                return

    def read(self, peer: str | int | Group, messages: Collection[str] | None = None) -> int:
        return self._run(self._client.read(peer, messages))

    def timer(self, peer: str | int | Group) -> int:
        return self._run(self._ask(self._client.timer, peer))

    def set_timer(self, peer: str | int, life_ms: int) -> str:
        """Set the timer of a conversation durably; the id of the message that says so."""
        return self._run(self._client.set_timer(peer, life_ms)).message_id

    def give_up(self, message_id: str) -> bool:
        return self._run(self._client.give_up(message_id))

    def history(
        self, peer: str | int | Group, limit: int = 100, before: Message | Position | None = None
    ) -> list[Message]:
        return self._run(self._ask(self._client.history, peer, limit, before))

    def conversations(self) -> list[Conversation]:
        return self._run(self._ask(self._client.conversations))

    def unread(self, peer: str | int | Group | None = None) -> int:
        return self._run(self._ask(self._client.unread, peer))

    def search(self, text: str, peer: str | int | Group | None = None, limit: int = 50) -> list[Found]:
        return self._run(self._ask(self._client.search, text, peer, limit))

    # --- files ----------------------------------------------------------------------------------

    def send_file(self, to: str | int | Group, path: str | os.PathLike[str], **options: Any) -> str:
        """Queue a file durably; the id of its message. `options` are those of `Client.send_file`."""
        return self._run(self._client.send_file(to, path, **options)).message_id

    def save_file(self, message: Message | str, path: str | os.PathLike[str] = ".", *, overwrite: bool = False) -> Path:
        """Save the file of a message; where it is. Raises MediaError, HttpError, Misused."""
        return self._run(self._client.save_file(message, path, overwrite=overwrite))

    def files(self, peer: str | int | Group | None = None) -> list[SharedFile]:
        return self._run(self._ask(self._client.files, peer))

    # --- messages for later ---------------------------------------------------------------------

    def schedule(
        self, to: str | int | Group, text: str | Content, *, at: datetime | None = None,
        delay: float | timedelta | None = None, life_ms: int | None = None,
    ) -> str:  # fmt: skip
        """Have a message delivered later; its id, once it is durable here."""
        return self._run(self._client.schedule(to, text, at=at, delay=delay, life_ms=life_ms)).message_id

    def cancel(self, message_id: str, timeout: float | None = None) -> None:
        """Returns when it is certain that the message is not delivered. Raises NotCancelled, or TimeoutError."""
        self._run(self._client.cancel(message_id), timeout)

    def scheduled(self) -> list[ScheduledMessage]:
        return self._run(self._ask(self._client.scheduled))

    # --- backups --------------------------------------------------------------------------------

    def make_backup(
        self, file: str | os.PathLike[str] = "", secret: BackupSecret | None = None, progress: Progress | None = None,
        *, to_server: bool = False,
    ) -> BackupMade:  # fmt: skip
        """Make an encrypted backup, or add what changed to the last one; as `Client.backups.make`. `progress` is called
        on the client's thread. Raises BackupError, Misused."""
        return self._run(self._client.backups.make(file, secret, progress, to_server=to_server))

    def schedule_backups(self, every_ms: int) -> BackupState:
        """Make one so often while this client is open; 0: only when asked. Raises Misused."""
        return self._run(self._client.backups.schedule(every_ms))

    def server_backups(self) -> list[ServerBackup]:
        """The account's backups on the server, the newest last. Raises BackupError."""
        return self._run(self._client.backups.on_server())

    def forget_backup(self, name: str) -> ServerBackup:
        """Remove one from the server, by its id or the beginning of it. Raises BackupError, Misused."""
        return self._run(self._client.backups.forget(name))

    def backup_state(self) -> BackupState | None:
        """What is remembered of the last backup, and how often they are made; None: there was none."""
        return self._run(self._ask(lambda: self._client.backups.state))

    # --- groups ---------------------------------------------------------------------------------

    def create_group(self, name: str, people: Sequence[str | int] = (), **settings: Any) -> Group:
        """`settings` are those of `Client.create_group`."""
        return self._run(self._client.create_group(name, people, **settings))

    def add_members(self, group: AnyGroup, people: Sequence[str | int]) -> Group:
        return self._run(self._client.add_members(group, people))

    def remove_members(self, group: AnyGroup, people: Sequence[str | int]) -> Group:
        return self._run(self._client.remove_members(group, people))

    def leave_group(self, group: AnyGroup, successor: str | int | None = None) -> Group:
        return self._run(self._client.leave_group(group, successor))

    def set_group_role(self, group: AnyGroup, person: str | int, role: Role) -> Group:
        return self._run(self._client.set_group_role(group, person, role))

    def change_group(self, group: AnyGroup, **settings: Any) -> Group:
        """`settings` are those of `Client.change_group`."""
        return self._run(self._client.change_group(group, **settings))

    def rename_group(self, group: AnyGroup, name: str) -> Group:
        return self._run(self._client.rename_group(group, name))

    def set_group_picture(self, group: AnyGroup, picture: bytes | None) -> Group:
        return self._run(self._client.set_group_picture(group, picture))

    def groups(self) -> list[Group]:
        return self._run(self._ask(self._client.groups))

    def group(self, group: AnyGroup) -> Group:
        return self._run(self._ask(self._client.group, group))

    def seen_by(self, message_id: str) -> SeenBy:
        return self._run(self._client.seen_by(message_id))

    # --- the thread -----------------------------------------------------------------------------

    async def _ask(self, what: Any, *arguments: Any) -> Any:
        return what(*arguments)

    async def _wait(self, message_id: str, state: Tick) -> None:
        receipt = self._client.receipt(message_id)
        waits = {Tick.SENT: receipt.sent, Tick.DELIVERED: receipt.delivered, Tick.READ: receipt.read}
        await waits[state]()

    def _run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        if self._loop is None:
            work.close()
            raise Misused("the client is not open: use `with`")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise

    def _stop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        assert loop is not None
        assert thread is not None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
