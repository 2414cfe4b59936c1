"""The name, device and token of the n-th person, and how persons are registered.

A few register over HTTP, as real clients do. Many are put into the data folder by the engine itself, before
the server starts: the same records in the same log, only without a request for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path

from bench.measured_node import Broken, Rig
from nightmail.model.answers import Joined
from nightmail.model.effects import Answer
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.records import Record, Registered
from nightmail.model.refusals import Overloaded
from nightmail.model.words import Platform

REQUESTERS = 16
BY_HTTP_MAX = 2_000
AT_ONCE = 4_096
"""Registrations on their way to the engine at a time."""
REGISTRATION = 1


def handle(number: int) -> str:
    return f"person-{number}"


def token(number: int) -> bytes:
    return sha256(b"the token of %d" % number).digest()


def account(number: int) -> int:
    return account_id(handle(number))


def device(number: int) -> int:
    return device_id(account(number), 1)


def register_by_http(port: int, numbers: Iterable[int]) -> None:
    """Over the same port as everything else. Raises Broken if one is refused."""
    everybody = list(numbers)
    shares = [everybody[n::REQUESTERS] for n in range(REQUESTERS)]
    with ThreadPoolExecutor(REQUESTERS) as pool:
        list(pool.map(_register_share, [port] * REQUESTERS, shares))


def _register_share(port: int, numbers: list[int]) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    for number in numbers:
        asked = {
            "handle": handle(number),
            "label": "phone",
            "platform": "android",
            "registration": REGISTRATION,
            "token_digest": sha256(token(number)).hexdigest(),
        }
        connection.request("POST", "/v1/accounts", json.dumps(asked), {"Content-Type": "application/json"})
        response = connection.getresponse()
        said = response.read()
        if response.status != 201:
            raise Broken(f"{handle(number)} could not register: {response.status} {said.decode()}")
        if int(json.loads(said)["device"], 16) != device(number):
            raise Broken(f"{handle(number)} got another device than expected")
    connection.close()


def register_by_engine(folder: Path, count: int) -> None:
    """Persons 0 to `count` - 1, into a folder that no server has open."""
    rig = Rig(folder)
    try:
        rig.loop.recover()
        register(rig, count)
        rig.settle()
    finally:
        rig.close()


def register(rig: Rig, count: int) -> None:
    waiting: dict[int, Record] = {}
    next_number = joined = 0
    while joined < count:
        batch: list[Record] = []
        while len(waiting) < AT_ONCE and next_number < count:
            waiting[next_number + 1] = _registered(next_number)
            batch.append(waiting[next_number + 1])
            next_number += 1
        for effect in rig.turn(batch):
            if not isinstance(effect, Answer):
                continue
            if isinstance(effect.said, Overloaded):
                rig.loop.submit(waiting[effect.via])
            elif isinstance(effect.said, Joined):
                del waiting[effect.via]
                joined += 1
            else:
                raise Broken(f"{waiting[effect.via]} was told {effect.said}")


def _registered(number: int) -> Record:
    digest = sha256(token(number)).digest()
    body = Registered(account(number), handle(number), REGISTRATION, digest, "phone", Platform.ANDROID)
    return Record(SERVER, number + 1, body)
