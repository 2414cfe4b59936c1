"""Who is online in memory, and what of it is stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from nightmail.engine.ports import EngineError, Failed, Sighting
from nightmail.engine.presence import EmbeddedPresence, PresenceSettings
from nightmail.engine.sqlite.presence_file import PersonKept, PresenceFile
from nightmail.model.ids import device_id
from nightmail.model.words import Audience

ADA, BEN = 11, 13
PHONE, LAPTOP, TABLET = device_id(ADA, 1), device_id(ADA, 2), device_id(BEN, 1)
CONTACTS, NOBODY = Audience.CONTACTS, Audience.NOBODY
START = 1_700_000_000_000


class FailingFile(PresenceFile):
    """Takes no write while it is told so."""

    fails = False

    def put_last_seen(self, people: Mapping[int, int], devices: Mapping[int, int]) -> None:
        self._try()
        super().put_last_seen(people, devices)

    def read_devices(self, devices: Collection[int]) -> dict[int, int]:
        self._try()
        return super().read_devices(devices)

    def put_audience(self, account: int, audience: Audience) -> None:
        self._try()
        super().put_audience(account, audience)

    def read(self, accounts: Collection[int]) -> dict[int, PersonKept]:
        self._try()
        return super().read(accounts)

    def _try(self) -> None:
        if self.fails:
            raise EngineError("the disk is full")


class Rig:
    """A presence whose store works when the test says so. Hears every change."""

    def __init__(self, file: FailingFile | None = None) -> None:
        self.file = file or FailingFile(":memory:")
        self.now = 0
        self.holds = False
        self.jobs: list[Callable[[], None]] = []
        self.changes: list[tuple[str, int]] = []
        self.presence = EmbeddedPresence(
            self.file, PresenceSettings(), post=lambda callback: callback(), execute=self._execute,
            clock=lambda: START + self.now,
        )  # fmt: skip
        self.presence.attend(self)

    def _execute(self, job: Callable[[], None]) -> None:
        if self.holds:
            self.jobs.append(job)
        else:
            job()

    def work(self) -> None:
        self.holds = False
        while self.jobs:
            self.jobs.pop(0)()

    def presence_changed(self, account: int) -> None:
        self.changes.append(("presence", account))

    def audience_changed(self, account: int) -> None:
        self.changes.append(("audience", account))

    def beat(self, device: int) -> None:
        self.presence.beat(device, self.now)

    def wait(self, ms: int) -> None:
        self.now += ms
        self.presence.tick(self.now)

    def seen(self, *accounts: int) -> Mapping[int, Sighting] | Failed:
        found: list[Mapping[int, Sighting] | Failed] = []
        self.presence.sightings(accounts, found.append)
        return found[0]

    def devices_seen(self, *devices: int) -> Mapping[int, int] | Failed:
        found: list[Mapping[int, int] | Failed] = []
        self.presence.devices_seen(devices, found.append)
        return found[0]


def test_a_change_is_told_when_the_first_device_comes_and_the_last_one_goes() -> None:
    rig = Rig()
    for step in (rig.beat, rig.presence.leave):
        for device in (PHONE, LAPTOP, TABLET):
            step(device)
    rig.presence.leave(PHONE)
    assert rig.changes == [("presence", ADA), ("presence", BEN), ("presence", ADA), ("presence", BEN)]


def test_a_device_is_online_for_its_lifetime_after_each_heartbeat() -> None:
    rig = Rig()
    rig.beat(PHONE)
    rig.beat(TABLET)
    rig.wait(30_000)
    rig.beat(PHONE)
    rig.wait(29_999)
    online = [rig.presence.online]
    rig.wait(1)
    online.append(rig.presence.online)
    rig.wait(30_000)
    online.append(rig.presence.online)
    assert (online, rig.changes[2:]) == ([2, 1, 0], [("presence", BEN), ("presence", ADA)])


def test_last_seen_is_the_last_heartbeat_before_and_while_and_after_it_is_stored() -> None:
    rig = Rig()
    rig.seen(ADA)
    rig.beat(PHONE)
    rig.presence.leave(PHONE)
    found = [rig.seen(ADA)]
    rig.holds = True
    rig.wait(10_000)
    found.append(rig.seen(ADA))
    rig.work()
    found.append(rig.seen(ADA))
    assert found == [{ADA: Sighting(online=False, last_seen=START, audience=CONTACTS)}] * 3
    assert rig.file.read([ADA]) == {ADA: PersonKept(START, CONTACTS)}


def test_last_seen_and_audience_are_there_after_a_restart() -> None:
    rig = Rig()
    rig.beat(PHONE)
    rig.presence.show_to(ADA, NOBODY, lambda _: None)
    rig.presence.close()
    again = Rig(rig.file)
    assert again.seen(ADA) == {ADA: Sighting(online=False, last_seen=START, audience=NOBODY)}


def test_a_crash_loses_no_heartbeat_that_is_older_than_the_last_batch() -> None:
    rig = Rig()
    rig.beat(PHONE)
    rig.wait(10_000)
    rig.beat(PHONE)
    assert Rig(rig.file).seen(ADA) == {ADA: Sighting(online=False, last_seen=START, audience=CONTACTS)}


def test_an_audience_counts_when_it_is_confirmed_and_not_before() -> None:
    rig = Rig()
    rig.seen(ADA)
    rig.holds, outcomes = True, list[Failed | None]()
    rig.presence.show_to(ADA, NOBODY, outcomes.append)
    before = rig.seen(ADA), list(outcomes), list(rig.changes)
    rig.work()
    never = Sighting(online=False, last_seen=0, audience=CONTACTS)
    assert before == ({ADA: never}, [], [])
    assert (rig.seen(ADA), outcomes, rig.changes) == (
        {ADA: never._replace(audience=NOBODY)},
        [None],
        [("audience", ADA)],
    )


def test_a_read_that_began_before_an_audience_was_stored_does_not_hide_it() -> None:
    rig = Rig()
    rig.holds, found = True, list[object]()
    rig.presence.sightings([ADA], found.append)
    rig.presence.show_to(ADA, NOBODY, lambda _: None)
    rig.work()
    assert rig.seen(ADA) == {ADA: Sighting(online=False, last_seen=0, audience=NOBODY)}


def test_a_disk_that_fails_confirms_nothing_and_loses_no_heartbeat() -> None:
    rig = Rig()
    rig.file.fails, outcomes = True, list[Failed | None]()
    rig.beat(PHONE)
    rig.presence.show_to(ADA, NOBODY, outcomes.append)
    rig.wait(10_000)
    unread = rig.seen(ADA)
    rig.file.fails = False
    rig.wait(10_000)
    assert (outcomes, unread, rig.presence.failed_saves) == (
        [Failed("the disk is full")], Failed("the disk is full"), 1,
    )  # fmt: skip
    assert rig.file.read([ADA]) == {ADA: PersonKept(START, CONTACTS)}
    assert rig.changes == [("presence", ADA)]


def test_of_a_forgotten_account_nothing_is_left_in_memory_or_on_disk() -> None:
    rig = Rig()
    rig.beat(PHONE)
    rig.presence.show_to(ADA, NOBODY, lambda _: None)
    rig.wait(10_000)
    rig.beat(PHONE)
    rig.presence.leave(PHONE)
    rig.presence.forget(ADA)
    rig.wait(10_000)
    assert (rig.seen(ADA), rig.file.read([ADA])) == ({ADA: Sighting(online=False, last_seen=0, audience=CONTACTS)}, {})


# --- devices --------------------------------------------------------------------------------------


def test_each_device_is_last_seen_when_it_was_last_connected_and_nobody_is_online_by_that() -> None:
    rig = Rig()
    rig.presence.saw(PHONE, 0)
    rig.wait(5_000)
    rig.presence.saw(LAPTOP, 2_000)
    seen = {PHONE: START, LAPTOP: START + 3_000}
    found = [rig.devices_seen(PHONE, LAPTOP, TABLET)]
    rig.wait(10_000)
    found.append(rig.devices_seen(PHONE, LAPTOP, TABLET))
    assert (found, rig.file.read_devices([PHONE, LAPTOP])) == ([seen, seen], seen)
    assert (rig.seen(ADA), rig.changes) == ({ADA: Sighting(online=False, last_seen=0, audience=CONTACTS)}, [])


def test_when_devices_were_connected_is_there_after_a_restart_and_after_a_failed_batch() -> None:
    rig = Rig()
    rig.presence.saw(PHONE, 0)
    rig.file.fails = True
    rig.wait(10_000)
    assert (rig.presence.failed_saves, isinstance(rig.devices_seen(PHONE), Failed)) == (1, True)
    rig.file.fails = False
    rig.presence.saw(LAPTOP, 0)
    rig.presence.close()
    assert Rig(rig.file).devices_seen(PHONE, LAPTOP) == {PHONE: START, LAPTOP: START + 10_000}


def test_of_a_device_or_an_account_that_is_no_more_nothing_is_kept() -> None:
    rig = Rig()
    for device in (PHONE, LAPTOP, TABLET):
        rig.presence.saw(device, 0)
    rig.wait(10_000)
    for device in (PHONE, LAPTOP, TABLET):
        rig.presence.saw(device, 0)
    rig.presence.forget_device(PHONE)
    found = [rig.devices_seen(PHONE, LAPTOP, TABLET)]
    rig.presence.forget(ADA)
    rig.wait(10_000)
    found.append(rig.devices_seen(PHONE, LAPTOP, TABLET))
    later = START + 10_000
    assert found == [{LAPTOP: later, TABLET: later}, {TABLET: later}]
