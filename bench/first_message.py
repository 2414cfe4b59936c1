"""The first message to a large group, from a real client to a real server: until it is *sent*.

    python -m bench.first_message
    python -m bench.first_message --members 200

The members register, publish real keys and sign real device lists, put into the data folder by the engine before the
server starts: the same records, without a request for each. They stay offline. Then a client registers, makes the
group and writes. Everything goes by the default limits of a server: how many lists one device may look up and how many
keys it may claim is part of what is measured. A table for people on standard error; the last line on standard output
is JSON.

`setup_s`: keys and accounts of the members; `group_s`: until the server has the group, with everybody in it; `sent_s`:
from writing the first message until the server has it, every member's device then being able to open it;
`second_s`: the same for the message after it. `client_cpu_s` and `server_cpu_s` are the CPU time of the first message.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct, structs

from nightmail.client import Client, Group
from nightmail.core.state import NEWEST_FOLD
from nightmail.e2ee import keys
from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.identity import Address
from nightmail.e2ee.lists import sign_list
from nightmail.model.answers import Done, Stocked
from nightmail.model.effects import Answer
from nightmail.model.group_chain import NAMED_MAX
from nightmail.model.limits import FoldLimits
from nightmail.model.records import Listed, Published, Record
from nightmail.testing import RegisteredDevice, running_server

from .figures import say
from .measured_node import Broken, Rig
from .node import people
from .node.machine import cpu_ns

MEMBERS = 1_000
AT_ONCE = 256
"""Members whose records are on their way to the engine at a time."""
SIGNED_VERSION = 2
"""Of a device list: the first one is the server's, and nobody has signed it."""
GOAL_S = 60.0


class FirstMessage(Struct, frozen=True):
    members: int
    setup_s: float
    group_s: float
    sent_s: float
    client_cpu_s: float
    server_cpu_s: float
    second_s: float


# --- the members --------------------------------------------------------------------------------


def put_members(folder: Path, count: int) -> None:
    """Persons 0 to `count` - 1 with published keys and a signed list, into a folder that no server has open."""
    rig = Rig(folder)
    try:
        rig.loop.recover()
        while not rig.loop.adopt(NEWEST_FOLD, FoldLimits()):
            rig.turn(())
        people.register(rig, count)
        for first in range(0, count, AT_ONCE):
            some = range(first, min(first + AT_ONCE, count))
            _say(rig, [record for number in some for record in _introduced(number)])
        rig.settle()
    finally:
        rig.close()


def _introduced(number: int) -> Iterator[Record]:
    """What a new device says of itself. One key of each kind is enough: it is claimed once."""
    account, device = people.account(number), people.device(number)
    made = keys.make_keys(
        Address(device, people.REGISTRATION), SYSTEM, time.time_ns() // 1_000_000, count=1, kem_count=1
    )
    up = keys.upload(made)
    published = Published(
        people.REGISTRATION, up.identity, up.signed, up.last_resort, up.one_time, up.one_time_kem
    )  # fmt: skip
    listed = sign_list(
        SYSTEM.draw(32), account, SIGNED_VERSION, {made.address: made.identity.public}, handle=people.handle(number)
    )  # fmt: skip
    yield Record(device, 2 * number + 1, published)
    yield Record(device, 2 * number + 2, Listed(account, SIGNED_VERSION, (device,), listed.signed))


def _say(rig: Rig, records: list[Record]) -> None:
    waiting, effects = {record.via for record in records}, rig.turn(records)
    while waiting:
        for effect in effects:
            if isinstance(effect, Answer):
                if not isinstance(effect.said, Stocked | Done):
                    raise Broken(f"a member was told {effect.said}")
                waiting.discard(effect.via)
        effects = rig.turn(()) if waiting else []


# --- the author ---------------------------------------------------------------------------------


async def measure(folder: Path, members: int) -> FirstMessage:
    """`members` counts the author, too."""
    began = time.perf_counter()
    put_members(folder / "data", members - 1)
    setup_s = time.perf_counter() - began
    async with running_server(folder=folder / "data") as server:
        author = RegisteredDevice("author", folder / "author", server.url)
        async with author.client(handle=author.handle) as client:
            await client.ready()
            began = time.perf_counter()
            group = await _make_group(client, members - 1)
            group_s = time.perf_counter() - began
            assert server.pid is not None
            before = time.perf_counter(), time.process_time(), cpu_ns(server.pid)
            await (await client.send(group, "Hello, everybody.")).sent()
            after = time.perf_counter(), time.process_time(), cpu_ns(server.pid)
            await (await client.send(group, "And once more.")).sent()
            second_s = time.perf_counter() - after[0]
    return FirstMessage(
        members, setup_s, group_s, after[0] - before[0], after[1] - before[1], (after[2] - before[2]) / 1e9, second_s
    )  # fmt: skip


async def _make_group(client: Client, others: int) -> Group:
    """Made with some, the others added by and by."""
    everybody = [people.account(number) for number in range(others)]
    group = await client.create_group("Everybody", everybody[: NAMED_MAX - 1])
    for first in range(NAMED_MAX - 1, others, NAMED_MAX):
        group = await client.add_members(group, everybody[first : first + NAMED_MAX])
    return group


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=MEMBERS, help="of the group, the author included")
    members: int = parser.parse_args(arguments).members
    with TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder), members))
    told = {name: value if name == "members" else round(value, 3) for name, value in structs.asdict(figures).items()}
    for name, value in told.items():
        say(f"{name:14} {value:10}")
    say(f"goal: sent within {GOAL_S:.0f} s")
    print(json.dumps({"bench": "first_message", **told}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
