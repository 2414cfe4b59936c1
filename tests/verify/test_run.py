"""A run on a server that does what no server may: it must be caught."""

from __future__ import annotations

import asyncio
import shutil

from nightmail.testing import RunningServer, running_server
from nightmail.verify.plan import Plan
from nightmail.verify.run import Run


class Forgetful(Run):
    """After a kill the server begins again with what it knew at first, as if nothing had ever been synced."""

    async def execute(self) -> None:
        assert self.server is not None
        await asyncio.to_thread(self.server.stop)
        shutil.copytree(self.server.folder, self.server.home / "before")
        await asyncio.to_thread(self.server.start)
        await super().execute()

    async def kill(self, server: RunningServer, down_s: float) -> None:
        await asyncio.to_thread(server.kill)
        shutil.rmtree(server.folder)
        shutil.copytree(server.home / "before", server.folder)
        await asyncio.to_thread(server.start)
        self.progress.kills += 1


def test_a_server_that_forgets_what_it_acknowledged_is_caught() -> None:
    async def story() -> None:
        plan = Plan(seed=1, people=2, devices=1, seconds=3, rate=20, faults=False)
        async with running_server() as server:
            run = Forgetful(plan, server.url, server)
            run.patience_s = 3
            result = await run()
        assert result.kills == 1
        assert result.verdict.lost > 0
        assert result.broken > 0
        assert "not on devices" in result.notes[0]

    asyncio.run(story())
