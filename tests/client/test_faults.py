"""Everything that can happen to devices and wires, in any order; in the end nothing is lost or shown twice."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from nightmail.client.messages import Message, Tick
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.errors import Undecipherable
from nightmail.e2ee.note import Note
from nightmail.model.ids import account_id, account_of
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane
from sim.world.opaque import Opaque
from tests.client.town import Device, Town

DEVICES = st.integers(0, 3)


class Moody(Opaque):
    """Passes bytes through, but fails to open what others write, until it is sealed again."""

    def __init__(self, handle: str) -> None:
        self.account = account_id(handle)
        self.moody = False

    def open(self, entry: Entry) -> Note:
        if self.moody and account_of(entry.by) != self.account and entry.of is None:
            raise Undecipherable
        return super().open(entry)


class Faults(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, tuple[Device, int, Lane, int]] = {}
        """Message id → who wrote it, to which account, in which lane, as which one of theirs."""
        self.given_up: set[str] = set()
        self.told: dict[tuple[int, str], int] = {}

    @initialize(seed=st.integers(0, 1 << 32))
    def people(self, seed: int) -> None:
        """Alice has a phone and a tablet; Bob and Carol have one device each."""
        self.town = Town(seed)
        self.moods = [Moody(handle) for handle in ("alice", "alice", "bob", "carol")]
        phone = self.town.join("alice", sealer=self.moods[0])
        tablet = self.town.link(phone, sealer=self.moods[1])
        self.devices = [phone, tablet]
        self.devices += [
            self.town.join(name, sealer=mood) for name, mood in zip(("bob", "carol"), self.moods[2:], strict=True)
        ]

    def body(self, count: int) -> bytes:
        return b"%d" % count

    # --- what people do -------------------------------------------------------------------------

    @rule(who=DEVICES, to=st.sampled_from(("alice", "bob", "carol")), high=st.booleans(), times=st.integers(1, 6))
    def write(self, who: int, to: str, high: bool, times: int) -> None:
        device = self.devices[who]
        if device.me.handle == to:
            return
        for _ in range(times):
            count = len(self.written)
            lane = Lane.HIGH if high else Lane.NORMAL
            message = device.send(to, self.body(count), lane)
            self.written[message.id] = device, message.peer, lane, count

    @rule(who=DEVICES, whom=DEVICES)
    def read(self, who: int, whom: int) -> None:
        self.devices[who].read(self.devices[whom])

    @rule(who=DEVICES)
    def give_up(self, who: int) -> None:
        device = self.devices[who]
        for row in device.store.outgoing():
            if not row.void and not row.reseal:
                device.machine.give_up(row.id, self.town.now)
                device.look()
                self.given_up.add(row.id)
                return

    @rule(which=st.integers(0, 99))
    def seal_again_without_need(self, which: int) -> None:
        """An over-eager sender: the device may have shown it long ago."""
        sent = [
            (author, message, device)
            for message_id, (author, to, *_) in self.written.items()
            for device in self.devices
            if (message := author.store.message(message_id)) and message.at and device.me.account == to
        ]
        if sent:
            author, message, device = sent[which % len(sent)]
            author.machine.parts.outbox.reseal(message, device.me.device)
            author.look()

    @rule(who=DEVICES, to=st.integers(2, 3))
    def write_to_somebody_who_cannot_open_it(self, who: int, to: int) -> None:
        self.moods[to].moody = True
        self.write(who, self.devices[to].me.handle, False, 1)
        self.settle()
        self.moods[to].moody = False

    # --- what the world does --------------------------------------------------------------------

    @rule(who=DEVICES)
    def connect(self, who: int) -> None:
        if not self.devices[who].plugged:
            self.devices[who].connect()

    @rule(who=DEVICES)
    def cut(self, who: int) -> None:
        if self.devices[who].plugged:
            self.devices[who].cut()

    @rule(who=DEVICES)
    def crash(self, who: int) -> None:
        self.devices[who].crash()

    @rule(who=DEVICES)
    def crash_before_the_commit(self, who: int) -> None:
        """A frame was taken in, and the power went before anything of it was committed or told."""
        device = self.devices[who]
        if device.session:
            device.down.extend(device.session.frames())
        if device.down and device.plugged:
            device.machine.receive(device.down.popleft(), self.town.now)
        device.crash()

    @rule(who=DEVICES, frames=st.integers(1, 3))
    def up(self, who: int, frames: int) -> None:
        self.devices[who].carry_up(frames)

    @rule(who=DEVICES, frames=st.integers(1, 3))
    def down(self, who: int, frames: int) -> None:
        self.devices[who].carry_down(frames)

    @rule(who=DEVICES)
    def answer_lost(self, who: int) -> None:
        """The server heard it all, and nothing of what it says comes back."""
        self.devices[who].carry_up()
        if self.devices[who].plugged:
            self.devices[who].cut()

    @rule(who=DEVICES)
    def repeat(self, who: int) -> None:
        """The server offers the oldest unacknowledged entry once more."""
        if session := self.devices[who].session:
            session.repeat()

    @rule(ms=st.sampled_from((1, 6, 250, 6_000, 400_000)))
    def wait(self, ms: int) -> None:
        self.town.wait(ms)

    @rule(who=DEVICES, moody=st.booleans())
    def mood(self, who: int, moody: bool) -> None:
        self.moods[who].moody = moody

    @precondition(lambda self: len(self.written) > 0)
    @rule(who=DEVICES, to=st.sampled_from(("alice", "bob", "carol")))
    def write_and_calm_down(self, who: int, to: str) -> None:
        self.write(who, to, False, 2)
        self.settle()
        self.check()

    # --- the verdict ----------------------------------------------------------------------------

    def settle(self) -> None:
        for device in self.devices:
            if not device.plugged:
                device.connect()
        self.town.settle()
        self.town.wait(1_000)
        self.town.settle()

    def teardown(self) -> None:
        if not self.written:
            return
        for mood in self.moods:
            mood.moody = False
        self.settle()
        self.check()
        for device in self.devices:
            assert device.store.outgoing() == []

    def check(self) -> None:
        """Shown once and in order wherever it was sent, or given up and shown nowhere."""
        for device in self.devices:
            told = [message.id for message in device.told(Message)]
            assert len(told) == len(set(told)), "told twice"
            for message_id, (author, to, _, count) in self.written.items():
                message = device.store.message(message_id)
                concerned = device.me.account in (author.me.account, to)
                if not concerned:
                    assert message is None
                    continue
                ours = author.store.message(message_id)
                assert ours is not None
                if ours.state is Tick.FAILED:
                    # Given up, and so it reached nobody.
                    assert message_id in self.given_up
                    assert message is None or device is author
                elif not any(mood.moody for mood in self.moods):
                    assert message is not None, f"{message_id} was lost"
                if message is not None:
                    assert message.body == self.body(count)
                    assert message.at == ours.at or device is not author
            self.check_order(device)

    def check_order(self, device: Device) -> None:
        """In each lane, what one device wrote is shown in the order it was written."""
        for author in self.devices:
            for peer in {row[1] for row in self.written.values()}:
                shown = device.store.history(
                    peer if author.me.account == device.me.account else author.me.account, 9_999
                )
                for lane in Lane:
                    counts = [
                        self.written[message.id][3]
                        for message in shown
                        if self.written[message.id][0] is author
                        and self.written[message.id][1:3] == (peer, lane)
                        and message.at
                        and message.id not in self.mended(device)
                    ]
                    assert counts == sorted(counts)

    def mended(self, device: Device) -> set[str]:
        """What came by a re-seal carries the re-seal's stamp."""
        return {
            message_id
            for message_id, (author, *_) in self.written.items()
            if (ours := author.store.message(message_id))
            and (theirs := device.store.message(message_id))
            and ours.at != theirs.at
        }


TestFaults = Faults.TestCase
TestFaults.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


class SealedFaults(Faults):
    """The same with real sealers: ratchets, claims and lists must survive whatever happens, too."""

    @initialize(seed=st.integers(0, 1 << 32))
    def people(self, seed: int) -> None:
        self.town = Town(seed, sealed=True)
        self.moods = []
        phone, bob, carol = (self.town.join(name) for name in ("alice", "bob", "carol"))
        for device in (phone, bob, carol):
            device.connect()
        self.town.settle()
        tablet = self.town.pair(phone)
        tablet.connect()
        self.town.settle()
        self.devices = [phone, tablet, bob, carol]
        for device in self.devices:
            device.cut()

    def body(self, count: int) -> bytes:
        return encode_content(Content(Kind.TEXT, str(count)))

    def mood(self, who: int, moody: bool) -> None:
        """Whether these can open something does not depend on their mood."""

    def write_to_somebody_who_cannot_open_it(self, who: int, to: int) -> None:
        """Likewise."""


TestSealedFaults = SealedFaults.TestCase
TestSealedFaults.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
