"""The attacks, each a coroutine that goes on until it is cancelled.

Knows:   what costs a server most for the least bytes.
Never:   more than `attack.RATE_BYTES` per second on one connection where the number of frames is the point: an attacker
         with a whole line is a matter for the network.

Run in a process of its own:  python -m attacks.hostile NAME PORT SECONDS VICTIM
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import resource
import sys
from collections.abc import Awaitable, Callable

from nightmail.model.ids import DEVICE_BITS, account_id
from nightmail.model.limits import FormLimits
from nightmail.model.records import Claimed, Listed, PushRemoved, PushSet
from nightmail.model.refusals import RateLimited
from nightmail.model.words import PushPlatform
from nightmail.wire.items import Answered, Ask, Foreground, LogFetch, Look, Peek, Ping, ReceiptsLook, Typing, Watch

from .attack import ADDRESSES, MANY, PIECE_S, Attack
from .calm import WINDOW, message
from .connection import BINARY, CONTINUATION, FIN, HANDSHAKE, PING, Connection, Refused, frame
from .media import half_open_uploads, range_floods, strangers_downloads, unread_downloads

NICE = 10
TOKEN_CHARS = FormLimits().push_token_chars
EMPTY_ARRAY = frame(b"\x90")


# --- frames -------------------------------------------------------------------------------------


async def empty_frames(attack: Attack) -> None:
    who = await attack.person("empty")

    async def once() -> None:
        async with Connection(attack.port, ADDRESSES[0]) as connection:
            await connection.greet(who)
            await attack.flood(connection, EMPTY_ARRAY)

    await attack.again(once)


def before_the_hello(beginning: bytes, piece: bytes) -> Callable[[Attack], Awaitable[None]]:
    """Two strangers without an account repeat a frame."""

    async def run(attack: Attack) -> None:
        async def once(number: int) -> None:
            async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
                await connection.upgrade()
                await connection.say(beginning)
                await attack.flood(connection, piece)

        await attack.crowd(2, once)

    return run


async def oversized_frames(attack: Attack) -> None:
    who = await attack.person("oversized")

    async def once() -> None:
        async with Connection(attack.port, ADDRESSES[0]) as connection:
            await connection.greet(who)
            await connection.say(frame(bytes(2 << 20)))
            await attack.flood(connection, bytes(1 << 14))

    await attack.again(once)


# --- connections and requests -------------------------------------------------------------------


async def connect_flood(attack: Attack) -> None:
    async def once(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            await connection.upgrade()
            await asyncio.sleep(PIECE_S)

    await attack.crowd(32, once)


async def slow_handshakes(attack: Attack) -> None:
    async def once(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            for byte in HANDSHAKE:
                await connection.say(bytes((byte,)))
                await asyncio.sleep(0.5)
                if connection.reader.at_eof():
                    raise Refused

    await attack.crowd(MANY, once)


async def bad_upgrades(attack: Attack) -> None:
    async def once(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            await connection.say(HANDSHAKE.replace(b"Host: ", b"Host: twice\r\nHost: "))
            await connection.reader.read()
            raise Refused

    await attack.crowd(16, once)


async def unfinished_bodies(attack: Attack) -> None:
    who = await attack.person("unfinished")
    head = (
        f"PUT /v1/devices HTTP/1.1\r\nHost: here\r\nAuthorization: {who.bearer}\r\n"
        "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
    ).encode()

    async def once(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            await connection.say(head)
            await connection.reader.read()
            raise Refused

    await attack.crowd(MANY, once)


async def health_flood(attack: Attack) -> None:
    async def once(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            if (await connection.ask("GET", "/healthz"))[0] != 200:
                raise Refused

    await attack.crowd(16, once)


async def operator_guesses(attack: Attack) -> None:
    """The operations page, and what it asks for, without the operator's token or with wrong ones."""
    paths = ("/ops", "/v1/operator/overview", "/v1/operator/history", "/v1/operator/storage", "/v1/operator/alerts")
    guesses = 0

    async def once(number: int) -> None:
        nonlocal guesses
        guesses += 1
        bearer = f"Bearer operator.{guesses:064x}" if number % 2 else ""
        async with Connection(attack.port, ADDRESSES[number // 2 % 2]) as connection:
            if (await connection.ask("GET", paths[guesses % len(paths)], bearer=bearer))[0] != 200:
                raise Refused

    await attack.crowd(16, once)


# --- records and questions ----------------------------------------------------------------------


async def key_claims(attack: Attack) -> None:
    people = [await attack.person(f"claims-{number}") for number in range(12)]

    async def once(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[0]) as connection:
            await connection.greet(people[number])
            request = 0
            while True:
                request += 1
                await connection.items(Ask(request, Claimed(attack.victim, request)))
                await _count_limited(attack, connection)

    await attack.crowd(len(people), once)


async def _count_limited(attack: Attack, connection: Connection) -> None:
    for item in await connection.hear():
        if isinstance(item, Answered) and isinstance(item.said, RateLimited):
            attack.refused += 1


async def looks(attack: Attack) -> None:
    who = await attack.person("looks")

    async def once() -> None:
        async with Connection(attack.port, ADDRESSES[0]) as connection:
            await connection.greet(who)
            await connection.items(Ask(1, Listed(who.account, 2, (who.device,), bytes(60_000))))
            while True:
                await connection.items(*(Look(ref, who.account) for ref in range(1, 101)))
                await connection.hear()

    await attack.again(once)


async def presence(attack: Attack) -> None:
    """Watching, asking, typing, coming and going, of accounts that nobody has asked for before."""

    async def once(number: int) -> None:
        who = await attack.person(f"presence-{number}", ADDRESSES[number % 2])
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            await connection.greet(who)
            guess = number << 32
            while True:
                people = tuple(range(guess + 1, guess + 101))
                guess += 100
                await connection.items(
                    Watch(1, people[:32]), Peek(2, people), *map(Typing, people[:40]),
                    *(Foreground(bool(turn & 1)) for turn in range(40)), Typing(attack.victim >> DEVICE_BITS), Ping(1),
                )  # fmt: skip
                await _count_limited(attack, connection)

    await attack.crowd(8, once)


async def group_fetches(attack: Attack) -> None:
    """Logs of thousands of groups that the attacker is not in, each to be attended, and receipts of many numbers."""
    who = await attack.person("group-fetches")

    async def once() -> None:
        async with Connection(attack.port, ADDRESSES[0]) as connection:
            await connection.greet(who)
            group = 2
            while True:
                fetches = (LogFetch(ref, group + 2 * ref, 0, True) for ref in range(1, 61))
                receipts = (ReceiptsLook(ref, group, tuple(range(1, 65))) for ref in range(61, 65))
                await connection.items(*fetches, *receipts)
                group += 120
                await _count_limited(attack, connection)

    await attack.again(once)


async def large_sends(attack: Attack) -> None:
    who, to = await attack.person("large"), await attack.person("absent")
    number = 0

    async def once() -> None:
        nonlocal number
        async with Connection(attack.port, ADDRESSES[0]) as connection:
            await connection.greet(who)
            while True:
                batch = [Ask(n % WINDOW + 1, message(who, to, n, bytes(60_000))) for n in range(number + 1, number + 9)]
                await connection.items(*batch)
                number += len(batch)
                await _count_limited(attack, connection)

    await attack.again(once)


async def push_tokens(attack: Attack) -> None:
    """Devices that change their longest token again and again, and take it back."""
    people = [await attack.person(f"push-{number}", ADDRESSES[number % 2]) for number in range(8)]

    async def once(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            await connection.greet(people[number])
            changes = itertools.count()
            while True:
                for ref in range(1, 31, 2):
                    token = f"{next(changes):0{TOKEN_CHARS}d}"
                    await connection.items(Ask(ref, PushSet(PushPlatform.ANDROID, token)), Ask(ref + 1, PushRemoved()))
                await _count_limited(attack, connection)

    await attack.crowd(len(people), once)


async def handles(attack: Attack) -> None:
    who = await attack.person("handles")

    async def over_http(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[1]) as connection:
            status, _ = await connection.ask("GET", f"/v1/accounts/guess-{number}", bearer=who.bearer)
            if status != 404:
                raise Refused

    async def by_look(_: int) -> None:
        async with Connection(attack.port, ADDRESSES[0]) as connection:
            await connection.greet(who)
            guess = 0
            while True:
                await connection.items(*(Look(ref, account_id(f"guess-{guess + ref}")) for ref in range(1, 101)))
                guess += 100
                await connection.hear()

    await asyncio.gather(attack.crowd(8, over_http), attack.crowd(1, by_look))


ATTACKS: dict[str, Callable[[Attack], Awaitable[None]]] = {
    "empty_frames": empty_frames,
    "pings_before_hello": before_the_hello(b"", frame(b"", FIN | PING)),
    "zero_length_continuations": before_the_hello(frame(b"", BINARY), frame(b"", CONTINUATION)),
    "oversized_frames": oversized_frames,
    "connect_flood": connect_flood,
    "slow_handshakes": slow_handshakes,
    "bad_upgrades": bad_upgrades,
    "unfinished_bodies": unfinished_bodies,
    "health_flood": health_flood,
    "key_claims": key_claims,
    "looks": looks,
    "presence": presence,
    "group_fetches": group_fetches,
    "large_sends": large_sends,
    "handles": handles,
    "push_tokens": push_tokens,
    "operator_guesses": operator_guesses,
    "half_open_uploads": half_open_uploads,
    "strangers_downloads": strangers_downloads,
    "range_floods": range_floods,
    "unread_downloads": unread_downloads,
}


async def run(name: str, port: int, seconds: float, victim: int) -> int:
    """Returns how often the server refused something."""
    attack = Attack(port, victim)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ATTACKS[name](attack)
    return attack.refused


def main(words: list[str]) -> None:
    name, port, seconds, victim = words
    # Attackers have machines of their own. Here they get what the server and the calm pair leave of the cores.
    os.nice(NICE)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(json.dumps({"refused": asyncio.run(run(name, int(port), float(seconds), int(victim)))}))


if __name__ == "__main__":
    main(sys.argv[1:])
