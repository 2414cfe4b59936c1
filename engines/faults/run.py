"""A run of `nightmail verify` on a cluster of real processes, with faults of the cluster in place of the network's.

Knows:   the plan of faults, and how far the run has come.
Touches: the cluster, by its faults; its nodes, by clients that live through all of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

from nightmail.model.words import Lane
from nightmail.verify.participants import Participant
from nightmail.verify.plan import Plan
from nightmail.verify.proxy import Upstream
from nightmail.verify.run import Progress, Run

from .cluster import FaultyCluster
from .plan import Fault, Kind
from .timing import Silences

PEOPLE, DEVICES = 4, 2
WRITES_PER_S = 2.0
"""Of each device, on average."""
FLOWING = 12
"""Messages acknowledged after a fault, before the next one."""
STUCK_S = 180.0
KEPT_S = 10.0
"""A shard that went to nobody else by then has stayed where it was: its owner was back before the group noticed."""
LOOK_S = 0.02


class NodeFell(Exception):
    """A node ended by itself. Its text names the nodes."""


class FaultRun(Run):
    def __init__(
        self,
        cluster: FaultyCluster,
        planned: list[Fault],
        seed: int,
        look: Callable[[Progress], None],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`say` is called with a line for each fault that is over."""
        plan = Plan(seed=seed, people=PEOPLE, devices=DEVICES, seconds=0, kills=False, faults=False)
        super().__init__(plan, [node.url for node in cluster.nodes], look=look)
        self._cluster, self._planned, self._chance = cluster, planned, Random(seed)
        self._say = say
        self.patience_s = STUCK_S
        self._over = False
        self.kinds: Counter[str] = Counter()
        self.silences = Silences(self.ledger, cluster.outages)

    async def execute(self) -> None:
        self.progress.stage = "faults"
        looking = asyncio.ensure_future(self._looking())
        try:
            for participant in self.participants:
                self.do(self._writing(participant, Random(self._chance.getrandbits(64))))
            await self._suffer_all()
            self._over = True
            await self._flowing()
        finally:
            self._over = True
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _suffer_all(self) -> None:
        under_way: set[asyncio.Task[None]] = set()
        for fault in self._planned:
            task = asyncio.create_task(self._suffer(fault))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            if fault.then_s:
                await asyncio.gather(*under_way)
                await self._flowing()
                await asyncio.sleep(fault.then_s)
            else:
                await asyncio.sleep(fault.lasts_s / 2)
        await asyncio.gather(*under_way)
        await self._flowing()

    async def _suffer(self, fault: Fault) -> None:
        self.progress.stage = fault.kind
        if fault.kind is Kind.TWO_NODES:
            await self._send_to_two(fault)
        else:
            await self._cluster.suffer(fault)
        self.kinds[fault.kind] += 1
        self.progress.kills += 1
        self._say(
            f"{self.progress.kills:3}/{len(self._planned)}  {fault.kind:18} node{fault.node + 1}  "
            f"{fault.lasts_s:5.2f} s  {len(self.ledger.acked)} sent, silence {self.silences.longest_s:.1f} s"
        )
        if self._cluster.fallen:
            raise NodeFell(", ".join(self._cluster.fallen))

    async def _send_to_two(self, fault: Fault) -> None:
        other = Upstream(self._cluster.nodes[fault.other].url)
        proxies = [proxy for device in range(len(self.participants)) if (proxy := self.proxy_in_use(device))]
        await asyncio.gather(*(proxy.send_to_two(other, fault.lasts_s) for proxy in proxies))

    async def _looking(self) -> None:
        while True:
            self.silences.look()
            self._cluster.read_logs()
            await asyncio.sleep(LOOK_S)

    async def _writing(self, participant: Participant, chance: Random) -> None:
        plan = self.plan
        others = [person for person in range(plan.people) if person != plan.owner(participant.number)]
        if plan.owner(participant.number) in plan.members:
            others.append(plan.group)
        while not self._over:
            to = chance.choice(others)
            lane = chance.choice((Lane.NORMAL, Lane.NORMAL, Lane.HIGH))
            if (address := self.address_of(to)) is not None:
                await participant.write(address, to, lane, chance.choice((0, 40, 500, 4_000)))
            await asyncio.sleep(chance.expovariate(WRITES_PER_S))

    async def _flowing(self) -> None:
        """Until messages are acknowledged again, and every shard is served."""
        wanted, takeovers = len(self.ledger.acked) + FLOWING, self._cluster.takeovers
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(STUCK_S):
            while len(self.ledger.acked) < wanted or takeovers.waiting:
                await asyncio.sleep(LOOK_S)
                if self._over and self.ledger.done:
                    return
                if asyncio.get_running_loop().time() - began > KEPT_S:
                    takeovers.forget_kept()
