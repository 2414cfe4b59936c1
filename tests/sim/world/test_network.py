"""Connections: in order, and what becomes of the last frames when they end."""

from __future__ import annotations

from sim.world.network import BROKEN, HEADER_BYTES, Wire
from sim.world.world import World


class Phone:
    """The near end."""

    def __init__(self) -> None:
        self.heard_: list[object] = []

    def opened(self, wire: Wire) -> None:
        self.heard_.append("opened")

    def refused(self, wire: Wire, retry_ms: int) -> None:
        self.heard_.append(("refused", retry_ms))

    def heard(self, wire: Wire, frame: bytes) -> None:
        self.heard_.append(frame)

    def ended(self, wire: Wire, code: int) -> None:
        self.heard_.append(("ended", code))


class Door:
    """The far end, in place of a front: notes what it hears."""

    def __init__(self) -> None:
        self.heard_: list[object] = []

    def knock(self, wire: Wire) -> None:
        wire.accept(self, None)  # pyright: ignore[reportArgumentType]  # nobody asks for its session here

    def hear(self, wire: Wire, frame: bytes) -> None:
        self.heard_.append(frame)

    def hung_up(self, wire: Wire) -> None:
        self.heard_.append("hung up")

    def lost(self, wire: Wire) -> None:
        self.heard_.append("lost")

    def wake(self, wire: Wire) -> None:
        self.heard_.append("wake")


def connected(seed: int = 1, *, room: int = 1 << 20) -> tuple[World, Wire, Phone, Door]:
    world, phone, door = World(seed), Phone(), Door()
    wire = Wire(world, phone, (5, 60), room)
    wire.dial(lambda: door)  # pyright: ignore[reportArgumentType]
    world.run_until(world.now + 200)
    assert phone.heard_ == ["opened"]
    phone.heard_.clear()
    return world, wire, phone, door


def frames(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_each_direction_keeps_its_order() -> None:
    world, wire, phone, door = connected()
    for frame in frames(20):
        wire.say(frame)
        wire.send(frame)
    world.run_until(world.now + 5_000)
    assert phone.heard_ == door.heard_ == frames(20)


def test_where_nobody_listens_one_is_refused() -> None:
    world, phone = World(1), Phone()
    Wire(world, phone, (0, 2), 0).dial(lambda: None)
    world.run_until(world.now + 100)
    assert phone.heard_ == [("refused", 0)]


def test_a_cut_loses_the_last_frames_and_no_others() -> None:
    lost = set[int]()
    for seed in range(40):
        world, wire, phone, door = connected(seed)
        for frame in frames(10):
            wire.say(frame)
        wire.sever(half=False)
        world.run_until(world.now + 5_000)
        arrived = [frame for frame in door.heard_ if isinstance(frame, bytes)]
        assert arrived == frames(len(arrived))
        assert "lost" in door.heard_
        assert ("ended", BROKEN) in phone.heard_
        lost.add(10 - len(arrived))
    assert {0, 10} <= lost


def test_a_device_that_leaves_silently_is_believed_in_and_nothing_reaches_it() -> None:
    world, wire, phone, door = connected()
    wire.leave(silently=True)
    wire.send(b"hello?")
    world.run_until(world.now + 5_000)
    assert (phone.heard_, door.heard_) == ([], [])
    assert wire.stalled()


def test_the_last_words_arrive_before_the_end() -> None:
    world, wire, phone, door = connected()
    wire.send(b"goodbye")
    wire.close(4006, "")
    wire.send(b"not said any more")
    world.run_until(world.now + 5_000)
    assert phone.heard_ == [b"goodbye", ("ended", 4006)]
    assert door.heard_ == ["lost"]


def test_what_the_socket_does_not_take_waits_here_and_somebody_is_told_when_it_is_gone() -> None:
    world, wire, _, door = connected(room=10)
    wire.send(bytes(100))
    assert wire.unsent() == 90 + HEADER_BYTES
    world.run_until(world.now + 5_000)
    assert (wire.unsent(), door.heard_) == (0, ["wake"])


def test_a_gateway_that_is_no_more_hears_nothing() -> None:
    world, wire, phone, door = connected()
    wire.orphan(silently=False)
    wire.say(b"hello?")
    world.run_until(world.now + 5_000)
    assert (phone.heard_, door.heard_) == ([("ended", BROKEN)], [])
