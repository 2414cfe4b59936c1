"""Alerts fire by their causes: a real node judges its own figures, over as much time as each alert asks for."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from nightmail.model.answers import Accepted
from nightmail.model.ids import device_id
from nightmail.model.records import Acked, Envelope, Linked, Listed, Record, Sent
from nightmail.model.words import Lane, Platform
from nightmail.server.alerts.table import ALERTS
from tests.server import metric_stories as stories
from tests.server.rig import Times, message, serving
from tests.server.stage import SCRAPES_MAX, Stage, ask

EVERY_MS = 15_000
MANY = 60
"""Messages in a step, where a rate asks for some."""
LATE_MS = 150
STEPS_MAX = 200
"""Of a story that goes on: many times as long as any alert looks back."""
ALERT = {alert.name: alert for alert in ALERTS}


AStory = Callable[[Stage, Times, int], None]
"""With the number of the step, from 0 on."""


class Cause(NamedTuple):
    story: AStory
    settings: dict[str, Any] = {}  # noqa: RUF012 (never written)
    goes_on: bool = False
    """The story is told again in every step of time: a rate asks for much of it."""


def told(story: Callable[[Stage], None]) -> AStory:
    """A story that needs no clock, and is told once."""
    return lambda on, _times, _step: story(on)


def fill_the_disk(on: Stage, _times: Times, _step: int) -> None:
    on.patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4_000_000_000))


def put_the_clock_ahead(_: Stage, times: Times, _step: int) -> None:
    times.wall += 600_000


def put_the_clock_back(on: Stage, times: Times, _step: int) -> None:
    stories.leave_something(on)
    times.wall -= 1_200_000


def send(on: Stage, first: int, count: int, times: int = 1) -> None:
    """So many messages of Ada's, as quickly as one frame takes them, each so many times."""
    with on.online(on.ada) as ada:
        ask(ada, *(floating(on, n) for n in range(first, first + count) for _ in range(times)))


def floating(on: Stage, n: int) -> Sent:
    return structs.replace(message(on.ada, on.bob, n), floor=max(1, n - 200))


def overfill_a_mailbox(on: Stage) -> None:
    """Bob's phone is away and full. His tablet has room, so the message is taken, and fails on the phone."""
    phone, account = on.bob.device, on.bob.account
    tablet = device_id(account, 2)
    on.town.say(phone, Linked(account, 8, bytes(32), "tablet", Platform.CLI))
    on.town.say(phone, Listed(account, 2, (phone, tablet), b""))
    envelopes = (Envelope(phone, 7, b"sealed"), Envelope(tablet, 8, b"sealed"))
    for n in (1, 2):
        sent = structs.replace(message(on.ada, on.bob, n), list_version=2, envelopes=envelopes)
        assert isinstance(on.town.say(on.ada.device, sent), Accepted)
        on.town.say(tablet, Acked(Lane.NORMAL, n))


def leave_very_much(on: Stage) -> None:
    """Bob is away, and writes to nobody: only settings let so much wait for him."""
    submit(on, (floating(on, n) for n in range(1, 10_002)))


def set_many_aside(on: Stage) -> None:
    """A thousand letters take a minute, because the state is rebuilt after each: one that is real counts as so many."""
    stories.fall_over_a_record(on)
    shard = on.town.node.heart.loop.state.shard
    on.town.run(lambda: setattr(shard, "dead", 1_001 * shard.dead))


def submit(on: Stage, bodies: Iterable[Sent]) -> None:
    """Past the gateway, and without waiting for the answers."""
    records = [Record(on.ada.device, 0, body) for body in bodies]
    for first in range(0, len(records), 200):
        on.town.run(lambda batch=records[first : first + 200]: on.town.node.desk.submit(batch))
        on.town.run(on.town.node.heart.loop.flush)


class LateAcks:
    """Bob is connected, and takes longer than a tenth of a second for what comes."""

    def __call__(self, on: Stage, times: Times, step: int) -> None:
        if step == 0:
            self._bob = on.stays(on.bob)
        send(on, 1 + step * MANY, MANY)
        self._look(on, times)
        times.go_on(LATE_MS)
        ask(self._bob, Acked(Lane.NORMAL, (step + 1) * MANY))
        self._look(on, times)

    def _look(self, on: Stage, times: Times) -> None:
        """Time passes more quickly here than the node ticks: a checkpoint may come before the node has looked."""
        node = on.town.node
        on.town.run(lambda: node.message_counts.look(node.heart.loop.state, times.pace))


def sync_slowly(on: Stage, times: Times, step: int) -> None:
    """Every sync takes longer than a tenth of a second."""
    fdatasync = os.fdatasync

    def slow(descriptor: int) -> None:
        times.go_on(LATE_MS)
        fdatasync(descriptor)

    on.patch.setattr(os, "fdatasync", slow)
    for n in range(1 + step * MANY, 1 + (step + 1) * MANY):
        on.town.say(on.ada.device, floating(on, n))
    on.patch.setattr(os, "fdatasync", fdatasync)


def retry_what_is_there(on: Stage, _: Times, step: int) -> None:
    send(on, 1 + step * MANY, MANY)
    send(on, 1 + step * MANY, 2)


def send_again_before_the_answer(on: Stage, _: Times, step: int) -> None:
    """Both copies are in one frame: memory does not know the first one yet."""
    send(on, 1 + step * MANY, MANY, times=2)


ROOM = {"limits__mailbox_entries": 100_000, "limits__stranger_entries": 100_000, "limits__share_parts": 1}
SPEED = {"gateway__sends_burst": 1_000_000, "gateway__items_burst": 1_000_000, **ROOM}

CAUSES = {
    "Loss": Cause(told(stories.lose_something)),
    "NotReady": Cause(told(stories.fail_to_write)),
    "DiskTight": Cause(told(stories.fail_to_write)),
    "DiskFilling": Cause(fill_the_disk),
    "StorageFailing": Cause(told(stories.fail_to_save)),
    "ClockAhead": Cause(put_the_clock_ahead),
    "ClockBehind": Cause(put_the_clock_back),
    "RecordSetAside": Cause(told(stories.fall_over_a_record)),
    "MailboxNearlyFull": Cause(told(stories.leave_something), {"limits__mailbox_entries": 1}),
    "LowPrekeys": Cause(told(stories.publish_few_keys)),
    "ExhaustedPrekeys": Cause(told(stories.publish_few_keys)),
    "FullMailboxes": Cause(told(overfill_a_mailbox), {"limits__mailbox_entries": 1}),
    "DeepAccount": Cause(told(leave_very_much), ROOM),
    "DeadLetters": Cause(told(set_many_aside), ROOM),
    "DeadLettersRise": Cause(told(set_many_aside), ROOM),
    "SlowDelivery": Cause(LateAcks(), SPEED, goes_on=True),
    "SlowCommits": Cause(sync_slowly, SPEED, goes_on=True),
    "ManyDuplicates": Cause(retry_what_is_there, SPEED, goes_on=True),
    "HotDedupMisses": Cause(send_again_before_the_answer, SPEED, goes_on=True),
}


def test_every_alert_has_a_cause() -> None:
    assert set(CAUSES) == set(ALERT)


@pytest.mark.parametrize("name", CAUSES)
def test_an_alert_fires_by_its_cause_and_not_before(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times, (story, settings, goes_on) = Times(monkeypatch), CAUSES[name]
    with (
        serving(tmp_path, data__checkpoint_ms=10_000_000, server__drain_ms=0, **settings) as town,
        monkeypatch.context() as patch,
        ExitStack() as until_read,
    ):
        on = Stage(town, town.register("ada"), town.register("bob"), patch, until_read)
        alerts = town.node.alerts
        assert alerts is not None

        def state_after(ms: int) -> str:
            times.go_on(ms)
            town.run(alerts.tick)
            (found,) = (each.state for each in town.run(alerts.show).alerts if each.name == name)
            return found

        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=50_000_000_000))
        assert state_after(EVERY_MS) == "ok"
        story(on, times, 0)
        steps = itertools.count(1)
        # What the node samples by itself, it has sampled after some ticks.
        state = "ok"
        for _ in range(STEPS_MAX if goes_on else SCRAPES_MAX):
            if (state := state_after(EVERY_MS)) != "ok":
                break
            if goes_on:
                story(on, times, next(steps))
        for _ in range(ALERT[name].for_s * 1_000 // EVERY_MS + 1):
            if goes_on:
                story(on, times, next(steps))
            state = state if state == "firing" else state_after(EVERY_MS)
        assert state == "firing"
