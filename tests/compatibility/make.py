"""Makes a kept example: data folders and client profiles as an earlier commit leaves them, packed into one archive.

    git worktree add /tmp/earlier COMMIT && make -C /tmp/earlier setup
    .venv/bin/python -m tests.compatibility.make /tmp/earlier/.venv/bin/python tests/compatibility/COMMIT.tar.xz

Only that commit's own programs write what is kept. The archive holds `profiles`, `data-killed` (the server
was killed, so its log must be replayed) and `data-stopped` (it was started again and stopped).
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.compatibility.installation import Installation

MADE_AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
HOUR_MS = 3_600_000

TALKED = ["Hello, Bob.", "Are you there?", "Yes, I am."]
"""Delivered and read: twice Ada, then Bob."""
QUEUED_FOR_BOB = ["The first that waits for Bob.", "The second that waits for Bob.", "Good for a week."]
QUEUED_FOR_ADA = ["The first that waits for Ada.", "The second that waits for Ada."]
EXPIRING = "Good for an hour."
BLOCKED = "Ada never sees this."
BOBS_PUSHES = "https://push.example/bob"
UNSENT_ADA, UNSENT_BOB = "Ada writes without a server.", "Bob writes without a server."

SEND_WITH_LIFE = """
import asyncio, sys
from nightmail.client import Client

async def main():
    profile, url, to, text, life_ms = sys.argv[1:]
    async with Client(profile, [url]) as client:
        await (await client.send(to, text, life_ms=int(life_ms))).sent()

asyncio.run(main())
"""
"""The command line has no option for the life of a message."""


def live(at: Installation) -> None:
    """What happens while the first server runs. Ada has a phone and, linked to it, a laptop."""
    for handle in ("ada", "bob", "cleo"):
        at.run(handle, "register", handle)
    with at.start("laptop", "link", "ada", "--label", "laptop") as laptop:
        assert laptop.stdout is not None
        at.run("ada", "link", json.loads(laptop.stdout.readline())["code"], "--yes")
    for text in TALKED[:2]:
        at.run("ada", "send", "bob", text)
    at.run("bob", "listen", "--until-empty")
    at.run("bob", "send", "ada", TALKED[2])
    at.run("ada", "listen", "--until-empty")
    (number,) = at.run("ada", "verify-contact", "bob")
    at.run("ada", "verify-contact", "bob", "--verified", number["safety_number"])
    at.run("ada", "contacts", "name", "bob", "Robert")
    at.run("bob", "push", "set", "unifiedpush", BOBS_PUSHES)
    at.run("ada", "block", "cleo")
    at.run("cleo", "send", "ada", BLOCKED)
    # Nothing of hers is looked at again, and a sealed profile of 130 kB does not become smaller.
    shutil.rmtree(at.profile("cleo"))
    for text in QUEUED_FOR_ADA:
        at.run("bob", "send", "ada", text)
    ada = str(at.profile("ada"))
    at.run("ada", "send", "bob", QUEUED_FOR_BOB[0])
    at.run_python(SEND_WITH_LIFE, ada, at.url, "bob", EXPIRING, str(HOUR_MS))
    at.run("ada", "send", "bob", QUEUED_FOR_BOB[1])
    at.run_python(SEND_WITH_LIFE, ada, at.url, "bob", QUEUED_FOR_BOB[2], str(7 * 24 * HOUR_MS))


def make(at: Installation) -> None:
    with at.serving("data-killed") as server:
        live(at)
        server.kill()
    shutil.copytree(at.home / "data-killed", at.home / "data-stopped")
    with at.serving("data-stopped") as server:
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    at.run("ada", "send", "bob", UNSENT_ADA, "--wait", "queued")
    at.run("bob", "send", "ada", UNSENT_BOB, "--wait", "queued")


def without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", type=Path, help="the interpreter of the earlier commit's .venv")
    parser.add_argument("archive", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        make(Installation(asked.python.absolute(), home, MADE_AT))
        # Preset 9 looks back far enough to find in the second data folder what the first has.
        with tarfile.open(asked.archive, "w:xz", preset=9) as archive:
            for each in sorted(home.iterdir()):
                archive.add(each, each.name, filter=without_owner)
    print(f"{asked.archive}: {asked.archive.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
