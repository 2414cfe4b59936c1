"""What sealing costs a client: a message in one direction, an answer, a session, and what is stored of it.

    python -m bench.seal
    python -m bench.seal --rounds 200 --messages 50

A table for people on standard error; the last line on standard output is JSON. CPU time of this thread. Rounds are
short, and each begins with a fixed piece of work (bench/meter.py): `scaled` is the median of all rounds, each scaled
to a machine that does that work in 0.56 ms, which is what it takes here when nothing else runs (docs/performance.md).
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from msgspec import Struct

from nightmail.client.store.sqlite import SqliteStore
from nightmail.e2ee import bundles, keys, peers, state
from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import DeviceKeys
from nightmail.e2ee.note import NONCE_BYTES, Note, pack, tag_of, unpack
from nightmail.e2ee.padding import pad
from nightmail.e2ee.peers import Peer
from nightmail.model.ids import account_id, device_id
from nightmail.model.words import Kind

from .group_seal import MEMBERS, GroupTalk
from .group_sending import GroupSender
from .meter import fixed_work
from .sending import Sender

Senders: TypeAlias = "dict[str, Sender | GroupSender]"

NOW = 1_760_000_000_000
IDLE_US = 560.0
CONTENT_BYTES = 200
LONG_BYTES = 1_000
GROUPS = (5, 500, 1_000)
"""Members of the groups that a whole send is measured in."""
WORDS = "The quick brown fox jumps over the lazy dog, and then it sits down and writes home about it. "


class Figure(Struct, frozen=True):
    name: str
    median_us: float
    scaled_us: float
    best_us: float
    goal_us: float | None = None


def a_device(name: str) -> DeviceKeys:
    return keys.make_keys(Address(device_id(account_id(name), 1), 1), SYSTEM, NOW)


def a_bundle(of: DeviceKeys) -> bytes:
    up = keys.upload(of)
    return bundles.encode_bundle(of.address, up.identity, up.signed, up.one_time_kem[0], up.one_time[0])


def peer_of(other: DeviceKeys) -> Peer:
    return Peer.of(other.address, other.identity.public)


class Talk:
    """Two devices that have heard each other."""

    def __init__(self) -> None:
        self.ada, self.bob = a_device("ada"), a_device("bob")
        self.bundle = a_bundle(self.bob)
        self.to_bob = peers.begin(self.ada, peer_of(self.bob), bundles.decode_bundle(self.bundle), SYSTEM, NOW)
        self.to_ada = peer_of(self.ada)
        self.first = self.say(b"hello")
        self.bob = self.hear(self.first).keys
        self.answer()

    def say(self, text: bytes) -> bytes:
        self.to_bob, sealed = peers.seal(self.to_bob, text)
        return sealed

    def hear(self, sealed: bytes) -> peers.Opened:
        opened = peers.open_sealed(self.bob, self.to_ada, sealed, SYSTEM, NOW)
        self.to_ada = opened.peer
        return opened

    def answer(self) -> None:
        self.to_ada, sealed = peers.seal(self.to_ada, b"answer")
        self.to_bob = peers.open_sealed(self.ada, self.to_bob, sealed, SYSTEM, NOW).peer


def per_call(count: int, act: Callable[[], object]) -> float:
    began = time.thread_time_ns()
    for _ in range(count):
        act()
    return (time.thread_time_ns() - began) / count / 1_000


def in_a_group(talk: Talk, note: Note, messages: int) -> dict[str, float]:
    """What does not depend on how many members there are, and what does."""
    group, sealed, handed = GroupTalk(NOW), list[bytes](), list[bytes]()
    taken = {"group: seal for everybody": per_call(messages, lambda: sealed.append(group.say(note)))}
    coming = iter(sealed)
    taken["group: open"] = per_call(messages, lambda: unpack(group.hear(next(coming))))
    taken["group: hand on, per device"] = per_call(messages, lambda: handed.append(talk.say(group.handed())))
    for each in handed:
        talk.hear(each)  # Keys of what never comes would be stored with the session.
    taken[f"group: compare {MEMBERS} holders"] = per_call(3, group.may_go_on)
    return taken


def a_round(talk: Talk, fresh: DeviceKeys, first: bytes, senders: Senders, messages: int) -> dict[str, float]:
    """Microseconds of everything, once."""
    content = encode_content(Content(Kind.TEXT, (WORDS * 9)[: CONTENT_BYTES - 7]))
    assert len(content) == CONTENT_BYTES
    note = Note(SYSTEM.draw(NONCE_BYTES), f"{talk.ada.address.device:x}:1706745600000:00042:x9k2", content)
    packed = pack(note)
    talk.hear(talk.say(packed))  # the ratchet turns here: what follows is one direction
    sealed: list[bytes] = []
    taken = {"calibration": per_call(3, fixed_work)}
    taken["seal"] = per_call(messages, lambda: sealed.append(talk.say(pack(note))))
    coming = iter(sealed)  # what is sealed later comes, too

    def open_next() -> None:
        opened = unpack(talk.hear(next(coming)).plaintext)
        assert tag_of(opened.nonce, opened.content, "1f-2e")

    taken["open"] = per_call(messages, open_next)
    long = note._replace(content=encode_content(Content(Kind.TEXT, (WORDS * 11)[: LONG_BYTES - 7])))
    taken["seal 1,000 bytes, deflated"] = per_call(messages, lambda: sealed.append(talk.say(pack(long))))
    taken["open 1,000 bytes, deflated"] = per_call(messages, open_next)
    taken["of seal: pack"] = per_call(messages, lambda: pack(note))
    taken["of open: unpack"] = per_call(messages, lambda: unpack(packed))
    taken["store a session"] = per_call(messages, lambda: state.encode_peer(talk.to_bob))

    def there_and_back() -> None:
        talk.hear(talk.say(packed))
        talk.answer()

    few = max(messages // 20, 3)
    taken["message and answer"] = per_call(few, there_and_back)
    taken["begin a session"] = per_call(
        few, lambda: peers.begin(talk.ada, peer_of(talk.bob), bundles.decode_bundle(talk.bundle), SYSTEM, NOW)
    )
    taken["open its first message"] = per_call(
        few, lambda: peers.open_sealed(fresh, peer_of(talk.ada), first, SYSTEM, NOW)
    )
    for name, sender in senders.items():
        frames: list[bytes] = []
        taken[name] = per_call(few, lambda sender=sender, frames=frames: frames.extend(sender.send()))
        sender.answer(frames)
    return taken | in_a_group(talk, note, messages)


def add_group(folder: Path, members: int, senders: Senders) -> float:
    """A client in a group of so many; how many seconds of CPU its first message takes, scaled."""
    place = folder / f"group-{members}"
    place.mkdir()
    sender = GroupSender(SqliteStore(place, SYSTEM.draw(32)), members, CONTENT_BYTES)
    calibration = per_call(3, fixed_work)
    taken = sender.send_first()
    senders[f"send to {members:,} members"] = sender
    return taken / (calibration + per_call(3, fixed_work)) * 2 * IDLE_US


GOALS = {"seal": 40.0, "open": 40.0, "begin a session": 2_000.0, "open its first message": 2_000.0,
         "send to 4 devices": 1_000.0}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--messages", type=int, default=60, help="per round")
    options = parser.parse_args(arguments)
    gc.collect()
    gc.freeze()
    talk, fresh = Talk(), a_device("carl")
    meeting = peers.begin(talk.ada, peer_of(fresh), bundles.decode_bundle(a_bundle(fresh)), SYSTEM, NOW)
    _, first = peers.seal(meeting, pad(bytes(CONTENT_BYTES)))
    with TemporaryDirectory() as folder:
        senders: Senders = {}
        for devices in (1, 4):
            place = Path(folder) / str(devices)
            place.mkdir()
            name = f"send to {devices} device{'s' * (devices > 1)}"
            senders[name] = Sender(SqliteStore(place, SYSTEM.draw(32)), devices, CONTENT_BYTES)
        first_s = {members: add_group(Path(folder), members, senders) for members in GROUPS}
        rounds = [a_round(talk, fresh, first, senders, options.messages) for _ in range(options.rounds)]
    figures = [
        Figure(
            name,
            round(statistics.median(one[name] for one in rounds), 1),
            round(statistics.median(one[name] / one["calibration"] for one in rounds) * IDLE_US, 1),
            round(min(one[name] for one in rounds), 1),
            GOALS.get(name),
        )
        for name in rounds[0]
    ]
    print(f"{'µs of CPU, 200-byte message':28} {'median':>9} {'scaled':>9} {'best':>9} {'goal':>9}", file=sys.stderr)
    for figure in figures:
        goal = "" if figure.goal_us is None else f"{figure.goal_us:9.0f}"
        print(
            f"{figure.name:28} {figure.median_us:9.1f} {figure.scaled_us:9.1f} {figure.best_us:9.1f} {goal}",
            file=sys.stderr,
        )
    found: dict[str, object] = {figure.name: [figure.median_us, figure.scaled_us, figure.best_us] for figure in figures}
    for members, seconds in first_s.items():
        print(f"first message to {members:,} members: {seconds:.2f} s, scaled", file=sys.stderr)
        found[f"first message to {members:,} members, s"] = round(seconds, 3)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
