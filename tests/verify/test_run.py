"""A run on a server that does what no server may: it must be caught."""

from __future__ import annotations

import asyncio
import shutil

from nightmail.model.words import Lane
from nightmail.testing import RunningServer, running_server
from nightmail.verify.plan import Plan
from nightmail.verify.run import Run

WAIT_S = 120


class Forgetful(Run):
    """A server that begins again after a kill with what it knew at first, as if nothing had ever been synced. It is
    killed when it has acknowledged a message whose recipient is away."""

    async def execute(self) -> None:
        assert self.server is not None
        await asyncio.to_thread(self.server.stop)
        shutil.copytree(self.server.folder, self.server.home / "before")
        await asyncio.to_thread(self.server.start)
        author, recipient = self.participants
        await recipient.close()
        await author.write(self.handles[1], 1, Lane.NORMAL, padding=0)
        async with asyncio.timeout(WAIT_S):
            while not self.ledger.acked:
                self.ledger.changed.clear()
                await self.ledger.changed.wait()
        await self.kill(self.server, 0)

    async def kill(self, server: RunningServer, down_s: float) -> None:
        await asyncio.to_thread(server.kill)
        shutil.rmtree(server.folder)
        shutil.copytree(server.home / "before", server.folder)
        await asyncio.to_thread(server.start)
        self.progress.kills += 1


def test_a_server_that_forgets_what_it_acknowledged_is_caught() -> None:
    async def story() -> None:
        async with running_server() as server:
            run = Forgetful(Plan(people=2, devices=1), [server.url], server)
            run.patience_s = 3
            result = await run()
        assert (result.kills, result.verdict.sent, result.verdict.lost, result.broken) == (1, 1, 1, 1)
        assert result.notes[0].endswith("(0 → 1, 1): not on devices [1]")

    asyncio.run(story())
