"""The real parts on a real folder, put together as one machine uses them; and the same as a process of its own.

    python -m tests.embedded open FOLDER [--segment-bytes N] [--file-bytes N] [--as-nobody]
    python -m tests.embedded hold FOLDER

`open` says what an operator would be told, as one line of JSON. `hold` says "held" and keeps the folder until its
standard input ends.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from nightmail.core.mailbox import needs_offer, offer
from nightmail.core.state import ShardState
from nightmail.engine.data_folder import DataFolder
from nightmail.engine.filelog import FileLog
from nightmail.engine.filelog.files import Files, OsFiles
from nightmail.engine.folder_check import check_folder
from nightmail.engine.loop import Loop, LoopLimits
from nightmail.engine.ports import EngineError
from nightmail.engine.saver import SaverLimits
from nightmail.engine.sqlite import SqliteRows
from nightmail.engine.watcher import Watcher
from nightmail.model.answers import Said
from nightmail.model.effects import Answer, Effect
from nightmail.model.ids import SERVER
from nightmail.model.records import AnyBody, Record
from nightmail.model.rows import Gap
from nightmail.model.words import Lane
from tests.engine.rig import PHONE, START, TABLET, a_message, a_person

SEGMENT_BYTES = 8_192
NOBODY = 65_534
LIMITS = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
"""Checkpoints are taken when asked for."""


def inline(job: Callable[[], None]) -> None:
    job()


class Server(Watcher):
    """Everything below a socket. Raises EngineError if the folder cannot be served."""

    def __init__(
        self,
        folder: Path,
        *,
        vfs: str = "",
        files: Files | None = None,
        limits: LoopLimits = LIMITS,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.now, self.said, self.troubles = START, dict[int, Said](), list[str]()
        with ExitStack() as parts:
            held = DataFolder(folder) if files is None else None
            if held:
                parts.callback(held.close)
            check_folder(folder, files or OsFiles(folder), vfs)
            if held:
                held.sign()
            self.rows = SqliteRows(folder, post=inline, execute=inline, entropy=os.urandom, vfs=vfs, alone=bool(vfs))
            parts.callback(self.rows.close)
            self.log = FileLog(
                files or OsFiles(folder), self.rows.identity, after=self.rows.pointer, post=inline, execute=inline,
                segment_bytes=segment_bytes,
            )  # fmt: skip
            parts.callback(self.log.close)
            self.loop = Loop(self.log, self.rows, lambda: self.now, self._on_effects, limits=limits, watcher=self)
            self.loop.recover()
            self._parts = parts.pop_all()

    def _on_effects(self, effects: Sequence[Effect]) -> None:
        self.said |= {effect.via: effect.said for effect in effects if isinstance(effect, Answer)}

    def on_trouble(self, why: str) -> None:
        self.troubles.append(why)

    def say(self, by: int, body: AnyBody) -> Said | None:
        via = len(self.said) + 1
        self.loop.submit(Record(by, via, body))
        self.loop.flush()
        return self.said.get(via)

    def texts(self) -> list[str]:
        """What waits for Bob."""
        found: list[str] = []

        def look(state: ShardState) -> None:
            items = offer(state, TABLET, Lane.NORMAL, 0, 10_000)
            found.extend("gap" if isinstance(item, Gap) else item[1].ciphertext.decode() for item in items)

        self.loop.read(lambda state: needs_offer(state, TABLET, Lane.NORMAL, 0, 10_000), look)
        return found

    def close(self) -> None:
        self._parts.close()


def live(server: Server, messages: int) -> list[str]:
    """Alice writes to Bob, who is away; half of it is saved, all of it is logged."""
    server.say(SERVER, a_person("alice"))
    server.say(SERVER, a_person("bob"))
    texts = [f"message {n} {'x' * 300}" for n in range(1, messages + 1)]
    for n, text in enumerate(texts, 1):
        server.say(PHONE, a_message(n, text=text))
        if n == messages // 2:
            server.loop.save(at_once=True)
    assert server.texts() == texts
    return texts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("open", "hold"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--segment-bytes", type=int, default=SEGMENT_BYTES)
    parser.add_argument("--file-bytes", type=int, help="no file may grow beyond this, as on a full disk")
    parser.add_argument("--as-nobody", action="store_true")
    asked = parser.parse_args()
    if asked.file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked.file_bytes, asked.file_bytes))
    if asked.as_nobody and os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if asked.what == "hold":
        folder = DataFolder(asked.folder)
        folder.sign()
        print("held", flush=True)
        sys.stdin.read()
        folder.close()
        return
    try:
        server = Server(asked.folder, segment_bytes=asked.segment_bytes)
    except EngineError as error:
        print(json.dumps({"refused": type(error).__name__, "because": str(error)}))
    else:
        print(json.dumps({"ready": server.loop.ready, "texts": server.texts(), "tight": server.log.tight}))
        server.close()


if __name__ == "__main__":
    main()
