"""What stands between a device and the server: each fault, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from nightmail.model.words import Lane
from nightmail.testing import RunningServer, running_server
from nightmail.verify.ledger import Ledger
from nightmail.verify.participants import Participant
from nightmail.verify.plan import Fault
from nightmail.verify.proxy import Proxy, Upstream
from nightmail.verify.redelivery import RedeliveryCheck


@pytest.fixture(scope="module")
def server() -> Generator[RunningServer]:
    with running_server() as running:
        yield running


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.REOPEN])
def test_whatever_happens_to_the_line_a_message_arrives_once(fault: Fault, server: RunningServer) -> None:
    name = fault.replace(" ", "-")
    ada, bob = server.register(f"ada-{name}"), server.register(f"bob-{name}")

    async def story() -> None:
        ledger = Ledger("run", {0: (0,), 1: (1,)})
        check = RedeliveryCheck("ada")
        async with Proxy(Upstream(server.url), check) as proxy, asyncio.timeout(300):
            participants = [Participant(0, ada, [proxy.url], ledger), Participant(1, bob, [server.url], ledger)]
            for participant in participants:
                await participant.open()
            try:
                await participants[0].write(bob.handle, 1, Lane.NORMAL, 0)
                while not ledger.acked:
                    ledger.changed.clear()
                    await ledger.changed.wait()
                suffering = asyncio.ensure_future(proxy.inject(fault, 0.2))
                for _ in range(5):
                    await participants[0].write(bob.handle, 1, Lane.NORMAL, 0)
                assert await suffering
                while not ledger.done:
                    ledger.changed.clear()
                    await ledger.changed.wait()
                verdict = ledger.judge({participant.number: participant.history() for participant in participants})
            finally:
                for participant in participants:
                    await participant.leave()
        assert (verdict.sent, verdict.broken, check.unexplained) == (6, 0, 0)

    asyncio.run(story())
