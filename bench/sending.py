"""A whole send, as a client does it: composed, sealed for every device, stored, framed.

Knows:   the client's machine, its real store in a temporary folder, and a server that accepts everything.
"""

from __future__ import annotations

from random import Random

from nightmail.client.machine.machine import Machine
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Identity
from nightmail.e2ee import keys
from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import DeviceKeys
from nightmail.e2ee.lists import sign_list
from nightmail.model.answers import Accepted, Bundle, Done, Said, Stocked
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import Claimed, Listed, Published, Sent
from nightmail.model.words import Kind
from nightmail.wire.frames import decode_from_device, encode
from nightmail.wire.items import VERSION, Answered, Ask, Devices, FromServer, Look, SaidByDevices, Welcome

NOW = 1_760_000_000_000
ADA, BOB = account_id("ada"), account_id("bob")


class Sender:
    """Ada's phone, online, with a session to each of Bob's devices."""

    def __init__(self, store: Store, devices: int, content_bytes: int) -> None:
        me = Identity("ada", ADA, device_id(ADA, 1), 7, b"t" * 32)
        self._machine = Machine(store, me, chance=Random(1))
        self._theirs = {
            device_id(BOB, index): keys.make_keys(Address(device_id(BOB, index), index), SYSTEM, NOW)
            for index in range(1, devices + 1)
        }
        listed = {known.address: known.identity.public for known in self._theirs.values()}
        bob = sign_list(SYSTEM.draw(32), BOB, 1, listed)
        self._lists = {
            ADA: (1, {me.device: 7}, b""),
            BOB: (1, {address.device: address.registration for address in listed}, bob.signed),
        }
        self._now = NOW
        self.content = encode_content(Content(Kind.TEXT, "x" * (content_bytes - 7)))
        self._machine.connected(NOW)
        self._machine.turn()
        self._hear(Welcome(VERSION, NOW, "bench", 30_000, 256, 65_536, 1 << 20))
        self.answer(self.send())

    def send(self) -> list[bytes]:
        """What is measured: until the frame is there to be written, and everything behind it is durable."""
        self._now += 1
        self._machine.compose(BOB, self.content, self._now)
        return self._machine.turn().frames

    def answer(self, frames: list[bytes]) -> None:
        """Accept everything, until the client sends nothing more."""
        while frames:
            for frame in frames:
                for item in decode_from_device(frame):
                    if isinstance(item, Look):
                        self._hear(Devices(item.ref, item.account, *self._lists[item.account]))
                    elif isinstance(item, Ask) and item.ref:
                        self._hear(Answered(item.ref, self._say(item.body)))
            frames = self._machine.turn().frames

    def _hear(self, item: FromServer) -> None:
        self._machine.receive(encode([item]), self._now)

    def _say(self, body: SaidByDevices) -> Said:
        match body:
            case Published():
                return Stocked(len(body.one_time), len(body.one_time_kem))
            case Listed():
                self._lists[ADA] = body.version, dict.fromkeys(body.devices, 7), body.signed
            case Claimed():
                return _bundle(self._theirs[body.device])
            case Sent():
                return Accepted(body.id, body.tag, self._now, body.list_version)
            case _:
                pass
        return Done()


def _bundle(of: DeviceKeys) -> Bundle:
    up = keys.upload(of)
    address = of.address
    return Bundle(address.device, address.registration, up.identity, up.signed, up.one_time_kem[0], up.one_time[0])
