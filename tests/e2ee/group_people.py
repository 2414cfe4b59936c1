"""Groups in tests: people with a device and a signed list each, and what a server would hand them."""

from __future__ import annotations

from nightmail.e2ee import lists
from nightmail.e2ee.curves import sign, signing_public
from nightmail.e2ee.groups.chain import Followed, Membership, Signer, begin, follow, sign_change, sign_creation
from nightmail.e2ee.groups.sealing import GroupContext
from nightmail.e2ee.groups.sender_keys import (
    ReceivingChain,
    SenderChain,
    decode_handed,
    hand_on,
    make_chain,
    receive_chain,
)
from nightmail.e2ee.identity import Address
from nightmail.e2ee.labels import Label
from nightmail.e2ee.lists import SignedDeviceList
from nightmail.model.group_chain import ChainedChange, encode_change
from nightmail.model.ids import account_id, account_of
from nightmail.model.roster import Addition, ChangeFault, Creation, GroupChange, GroupSettings, NewMember

from .devices import NOW, Device

GROUP = account_id("a group") & ~1
EPOCH = 7


class Person:
    """An account with one device or more, and the list that its account key signed."""

    def __init__(self, name: str, devices: int = 1) -> None:
        self.devices = [Device(name, index + 1, stock=0) for index in range(devices)]
        self.account = account_of(self.devices[0].device)
        self.list_version = 0
        self.list = self.signed_list(*self.devices)

    @property
    def device(self) -> Device:
        return self.devices[0]

    @property
    def address(self) -> Address:
        return self.device.keys.address

    @property
    def key(self) -> bytes:
        return signing_public(self.device.keys.account)

    @property
    def new(self) -> NewMember:
        return NewMember(self.account, self.key)

    def signed_list(self, *devices: Device) -> SignedDeviceList:
        self.list_version += 1
        listed = {device.keys.address: device.keys.identity.public for device in devices}
        return lists.sign_list(self.device.keys.account, self.account, self.list_version, listed)


class People(dict[int, Person]):
    """What every client can look up."""

    def __init__(self, *people: Person) -> None:
        super().__init__({person.account: person for person in people})

    def lookup(self, address: Address) -> Signer | None:
        person = self.get(account_of(address.device))
        identity = person.list.devices.get(address) if person else None
        return Signer(person.list.key, identity.signing) if person and identity else None


def in_order(*people: Person) -> tuple[NewMember, ...]:
    return tuple(sorted(person.new for person in people))


def creation(creator: Person, *others: Person, settings: GroupSettings | None = None) -> bytes:
    made = Creation(settings or GroupSettings(), in_order(creator, *others))
    return sign_creation(creator.device.keys.identity, creator.address, GROUP, made)


def change_by(person: Person, known: Membership, change: GroupChange) -> bytes:
    blob = sign_change(person.device.keys.identity, person.address, known, change)
    assert not isinstance(blob, ChangeFault)
    return blob


def added(person: Person, known: Membership, *others: Person) -> bytes:
    return change_by(person, known, Addition(in_order(*others)))


class Trio:
    """Ada, the admin, with Bob and Cyd; Eve is outside."""

    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.ada, self.bob, self.cyd, self.eve = (Person(name) for name in ("ada", "bob", "cyd", "eve"))
        self.people = People(self.ada, self.bob, self.cyd, self.eve)
        self.known = begin(GROUP, creation(self.ada, self.bob, self.cyd, settings=settings), self.people.lookup)

    def follow(self, blob: bytes) -> Followed:
        return follow(self.known, blob, self.people.lookup)

    def does(self, person: Person, change: GroupChange) -> Followed:
        """A change that is signed, followed and believed."""
        followed = self.follow(change_by(person, self.known, change))
        self.known = followed.membership
        return followed

    def forged(self, person: Person, change: GroupChange, *, roster: Membership | None = None) -> bytes:
        """A well-formed change that `person` signs without asking whether it may."""
        after = (roster or self.known).roster.hash()
        body = encode_change(ChainedChange(GROUP, self.known.head, *person.address, change, after))
        return body + sign(person.device.keys.identity.signing, Label.GROUP_CHANGE, body)


CONTEXT = GroupContext(GROUP, bytes(range(32)), EPOCH, bytes(range(32, 64)))


def writer_and_reader(name: str = "ada") -> tuple[SenderChain, ReceivingChain]:
    """A chain, and what a device has that was handed it."""
    device = Device(name, stock=0)
    chain = make_chain(device.keys.address, GROUP, CONTEXT.genesis, device.chance, NOW)
    return chain, receive_chain(decode_handed(hand_on(chain)), device.keys.address, NOW)
