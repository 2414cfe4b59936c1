"""People in a world with groups: they register, link and lose devices, make groups, change them and write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nightmail.model.answers import Done, Joined, Said
from nightmail.model.group_chain import NO_HEAD, SIGNATURE_BYTES, ChainedChange, encode_change, head_of
from nightmail.model.ids import SERVER, account_id, account_of
from nightmail.model.records import (
    AnyBody,
    Blocked,
    Closed,
    Envelope,
    GroupChanged,
    GroupMade,
    Linked,
    Listed,
    ReceiptsSet,
    Registered,
    Unlinked,
)
from nightmail.model.refusals import ListConflict
from nightmail.model.roster import (
    ACCOUNT_KEY_BYTES,
    Addition,
    Creation,
    Departure,
    GroupChange,
    GroupSettings,
    NewMember,
    Removal,
    Role,
    RoleChange,
    SettingsChange,
)
from nightmail.model.rows import Account
from nightmail.model.words import Lane, Platform

from .group_device import GroupDevice

if TYPE_CHECKING:
    from .group_town import GroupTown

ASK_AGAIN_MS = 700


class GroupPerson:
    device_class = GroupDevice

    def __init__(self, town: GroupTown, handle: str) -> None:
        self.town, self.handle, self.account = town, handle, account_id(handle)
        self.world = town.world
        self.devices: list[GroupDevice] = []
        self.lives = 1
        """How many times the account was registered."""
        self.is_private = False
        self.may_read = True
        self._linked = 0
        self._errand: Callable[[], None] | None = None
        self._version = 0

    # --- an account and its devices -------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return self._errand is not None

    def register(self) -> None:
        life = self.lives
        token = f"{self.handle} {life}".encode().ljust(32)
        body = Registered(self.account, self.handle, life, token, "phone", Platform.CLI, verified=True)

        def joined(said: Said) -> None:
            if isinstance(said, Joined) and life == self.lives:
                self._version = said.list_version
                self._begin(said.device, life, first=True)
                if self.is_private:
                    self._keep_private()

        self._run(SERVER, body, lambda said: isinstance(said, Joined), joined)

    def _keep_private(self) -> None:
        """Nothing is read before that."""

        def kept(_said: Said) -> None:
            self.may_read = True

        wish = ReceiptsSet(self.account, on=False)
        self._run(self.devices[0].number, wish, lambda said: said == Done(), kept)

    def register_again(self) -> None:
        """A new phone, and nothing is left of the old ones."""
        self.world.hit("registered again")
        self.world.tell(self.handle, "registers again")
        self._end_all()
        self.lives += 1
        self.may_read = not self.is_private
        self.register()

    def close(self) -> None:
        self.world.hit("closed")
        self.world.tell(self.handle, "closes the account")
        by = self.devices[0].number
        self._end_all()
        self._run(by, Closed(self.account), lambda said: not getattr(said, "retry", False))

    def _end_all(self) -> None:
        for device in self.devices:
            self._give_up(device)
        self.devices.clear()

    def _give_up(self, device: GroupDevice) -> None:
        device.removed = True
        self.town.history.gone_at[device.number] = self.world.now

    def _begin(self, number: int, registration: int, *, first: bool = False) -> None:
        if any(device.number == number for device in self.devices):
            return
        device = self.device_class(self, number, registration)
        device.was_listed_first = first
        if first:
            device.listed_at, device.on_list_since = 0, self.world.now
        self.devices.append(device)
        device.live()

    def link(self) -> None:
        """Another device, listed once it exists."""
        self._linked += 1
        by, registration = self.devices[0].number, 100 + self._linked
        token = f"{self.handle} another {self._linked}".encode().ljust(32)

        def joined(said: Said) -> None:
            if isinstance(said, Joined):
                self.world.hit("linked")
                self._begin(said.device, registration)
                self.list_devices()

        linked = Linked(self.account, registration, token, "tablet", Platform.CLI)
        self._run(by, linked, lambda said: isinstance(said, Joined), joined)

    def list_devices(self) -> None:
        by, version = self.devices[0].number, self._version + 1
        numbers = tuple(device.number for device in self.devices)

        def listed(said: Said) -> None:
            if isinstance(said, ListConflict):
                self._version = said.version
                self.list_devices()
            else:
                self._version = version
                for device in self.devices:
                    if device.number in numbers:
                        device.on_list_since = min(device.on_list_since, self.world.now)

        body = Listed(self.account, version, numbers, b"signed")
        self._run(by, body, lambda said: said == Done() or isinstance(said, ListConflict), listed)

    def unlink(self) -> None:
        self.world.hit("unlinked")
        device = self.devices.pop()
        self._give_up(device)

        def gone(_said: Said) -> None:
            self.is_gone(device)

        self._run(self.devices[0].number, Unlinked(device.number), lambda said: said == Done(), gone)

    def is_gone(self, device: GroupDevice) -> None:
        """The server says that a device is unlinked."""

    def log_out(self) -> None:
        """The account goes on without any device."""
        by = self.devices[0].number
        self._end_all()
        self._run(by, Unlinked(by), lambda said: not getattr(said, "retry", False))

    def forget_strangers(self, account: Account | None) -> None:
        """A request that came late may have linked a device that nobody has."""
        mine = {device.number for device in self.devices}
        strangers = [number for number in account.devices if number not in mine] if account and mine else []
        if strangers and not self.is_busy:
            self.world.hit("a device that nobody has")
            self._run(self.devices[0].number, Unlinked(strangers[0]), lambda said: said == Done())

    def block(self, other: GroupPerson, *, on: bool) -> None:
        self._run(self.devices[0].number, Blocked(self.account, other.account, on), lambda said: said == Done())

    def _run(
        self, by: int, body: AnyBody, is_answer: Callable[[Said], bool], then: Callable[[Said], None] = lambda _: None
    ) -> None:
        """Ask until it is answered. One errand at a time."""
        life = self.lives

        def errand() -> None:
            if self._errand is errand and life == self.lives:
                self.town.backend.ask(by, body, answered)
                self.world.later(ASK_AGAIN_MS, errand)

        def answered(said: Said) -> None:
            if self._errand is errand and life == self.lives and is_answer(said):
                self._errand = None
                then(said)

        self._errand = errand
        errand()

    # --- groups ---------------------------------------------------------------------------------

    @property
    def member(self) -> NewMember:
        return NewMember(self.account, f"{self.handle} {self.lives}".encode().ljust(ACCOUNT_KEY_BYTES, b"."))

    def make(self, device: GroupDevice, group: int, others: list[GroupPerson]) -> None:
        members = tuple(sorted(person.member for person in (self, *others)))
        blob = self._blob(device, group, NO_HEAD, Creation(GroupSettings(), members))
        device.change(GroupMade(group, blob))

    def change(self, device: GroupDevice, group: int) -> None:
        """Whatever comes to mind; much of it is refused."""
        chance = self.world.chance
        epoch_and_head = device.groups.get(group)
        if epoch_and_head is None or epoch_and_head[1] == NO_HEAD:
            return
        other = chance.choice(self.town.people)
        if other.account == self.account and chance.random() < 0.7:
            return
        change: GroupChange = chance.choice((
            Addition((other.member,)), Addition((other.member,)), Removal((other.account,)), Removal((other.account,)),
            RoleChange(other.account, Role.ADMIN), RoleChange(other.account, Role.ADMIN),
            Departure(other.account if other is not self else 0),
            SettingsChange(GroupSettings(changers=chance.choice(list(Role)))),
        ))  # fmt: skip
        device.change(GroupChanged(group, self._blob(device, group, epoch_and_head[1], change)))

    def change_back_and_forth(self, device: GroupDevice, group: int) -> None:
        """Somebody is added, removed and added again, faster than their shard answers."""
        _, head = device.groups.get(group, (0, NO_HEAD))
        other = self.world.chance.choice(self.town.people)
        if head == NO_HEAD or other is self:
            return
        for change in (Addition((other.member,)), Removal((other.account,)), Addition((other.member,))):
            blob = self._blob(device, group, head, change)
            device.change(GroupChanged(group, blob))
            head = head_of(blob)
            if self.world.maybe(0.3):
                return

    def _blob(self, device: GroupDevice, group: int, previous: bytes, change: GroupChange) -> bytes:
        """Nobody checks what is signed here: the fold does not, and there are no clients."""
        salt = self.world.chance.randbytes(SIGNATURE_BYTES)
        return encode_change(ChainedChange(group, previous, device.number, 7, change, bytes(32))) + salt

    def seal(self, device: GroupDevice, group: int) -> None:
        """Keys for a few devices; or something that was written, again for one of them."""
        chance, history = self.world.chance, self.town.history
        everybody = [other for person in self.town.people for other in person.devices if other is not device]
        if not everybody:
            return
        some = chance.sample(everybody, chance.randint(1, min(3, len(everybody))))
        envelopes = tuple(
            Envelope(other.number, other.registration, b"sealed for %x" % other.number)
            for other in sorted(some, key=lambda other: other.number)
        )
        own = [
            (seq, message.id)
            for seq, message in history.messages.get(group, {}).items()
            if account_of(message.by) == self.account
        ]
        if own and chance.random() < 0.5:
            seq, ident = chance.choice(own)
            device.write(group, Lane.HIGH, envelopes=envelopes[:1], of=ident, of_seq=seq)
        else:
            device.write(group, Lane.HIGH, envelopes=envelopes)
