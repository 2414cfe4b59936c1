"""What is measured: traffic among few devices, many devices, offline devices, and devices with a long history."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

from .clients import Talk
from .figures import Figures
from .recovery import recovery
from .scenario_setup import Settings, Stage, stage

TALKS = 50
"""Talks active at a time where few people talk, each with 8 messages in flight."""
MANY_TALKS = 200
"""The same where many people talk. They are not in step with each other, so batches are smaller."""
PIECE = 100_000
"""The most messages behind one figure of `history`."""
WARM_UP = 20
"""One part in so many is sent before anything is measured."""


def busy(settings: Settings) -> Iterator[Figures]:
    """50 devices, each writing to one other as fast as it can."""
    with stage("busy", settings) as at:
        at.register(TALKS)
        talks = at.pair_up(at.devices)
        yield _measure(at, lambda: _share_out(at, talks, settings.messages // WARM_UP), settings, talks)


def single(settings: Settings) -> Iterator[Figures]:
    """The worst case: 50 devices, one message at a time in each of 400 talks, every one acknowledged alone."""
    with stage("single", settings) as at:
        at.register(TALKS)
        at.clients.window, at.clients.single = 1, True
        step = [at.devices[n:] + at.devices[:n] for n in range(9)]
        talks = [at.clients.talk(by, peer) for peers in step[1:] for by, peer in zip(step[0], peers, strict=True)]
        yield _measure(at, lambda: _share_out(at, talks, settings.messages // WARM_UP), settings, talks)


def crowd(settings: Settings) -> Iterator[Figures]:
    """100,000 devices, 200 talks at a time, each of 8 messages; then others talk."""
    yield from _crowd("crowd", settings, settings.messages, burst=8)


def scattered(settings: Settings) -> Iterator[Figures]:
    """100,000 devices, and each message comes from another one, so nothing can be batched per sender."""
    yield from _crowd("scattered", settings, settings.messages // 4, burst=1)


def _crowd(name: str, settings: Settings, messages: int, burst: int) -> Iterator[Figures]:
    with stage(name, settings) as at:
        at.register(settings.crowd)
        talks = at.pair_up(at.devices)
        slots = MANY_TALKS * 8 // burst
        # Every device has sent something before, so no row is new.
        _once(at, talks, slots)
        at.clients.run(lambda: at.progress(at.clients.delivered, at.clients.sent, "messages"))
        before, sent = at.begin(), at.clients.sent
        _at_random(at, talks, messages, burst, slots)
        _run(at, sent + messages)
        yield at.end(name, before, at.clients.sent - sent)


def waiting(settings: Settings) -> Iterator[Figures]:
    """10, 1,000 or 10,000 messages wait for each offline device; then all devices come back."""
    for depth in settings.depths:
        name = f"waiting-{depth}"
        with stage(name, settings) as at:
            count = max(1, settings.waiting // depth)
            at.register(TALKS + count)
            senders, away = at.devices[:TALKS], at.devices[TALKS:]
            talks = [at.clients.talk(senders[i % TALKS], device) for i, device in enumerate(away)]
            for device in away:
                at.clients.mails[device].online = False
            before = at.begin()
            at.clients.until_answer = True
            at.clients.window = max(8, min(200, TALKS * 8 // count))
            _in_turn(at, talks, depth)
            _run(at, count * depth)
            full = at.end(name, before, at.clients.sent)
            at.clients.until_answer = False
            for first in range(0, count, TALKS):
                for device in away[first : first + TALKS]:
                    at.clients.come_online(device)
                _run(at, count * depth, min(first + TALKS, count) * depth)
            whole = at.end(name, before, at.clients.sent)
            fold, store = _less(whole.fold_us, full.fold_us), _less(whole.store_us, full.store_us)
            whole.more = {
                "filling": f"fold {full.fold_us} µs, store {full.store_us} µs",
                "draining": f"fold {fold} µs, store {store} µs",
                "waiting": f"{count} devices x {depth}",
            }
            yield whole


def history(settings: Settings) -> Iterator[Figures]:
    """1,000 devices and a long past: does it cost more at the end than at the beginning?"""
    piece = max(1, min(PIECE, settings.history // 20))
    with stage("history", settings) as at:
        at.register(min(1_000, settings.crowd))
        talks = at.pair_up(at.devices)

        def send(messages: int) -> None:
            _at_random(at, talks, messages, 8, MANY_TALKS)
            _run(at, settings.history)

        send(piece)
        for percent in (1, 10, 100):
            # Each figure is of the last piece before that point, so that they are of equal length.
            send(max(0, settings.history * percent // 100 - piece - at.clients.sent))
            before, sent = at.begin(), at.clients.sent
            send(piece)
            figures = at.end(f"history-{percent}%", before, at.clients.sent - sent)
            figures.more = {"messages before": f"{sent:,}", "unreachable objects found": gc.collect()}
            yield figures


def known(settings: Settings) -> Iterator[Figures]:
    """1,000,000 devices known, and a random 1 % of them talking."""
    with stage("known", settings) as at:
        before = at.begin()
        at.register(settings.known)
        joined = at.end("known-register", before, settings.known)
        joined.more = {"per": "registered device"}
        yield joined
        active = at.chance.sample(at.devices, max(2, settings.known // 100))
        talks = at.pair_up(active)
        before = at.begin()
        _at_random(at, talks, settings.messages, 8, MANY_TALKS)
        _run(at, settings.messages)
        yield at.end("known", before, at.clients.sent)


# --- how traffic is shared out ------------------------------------------------------------------


def _measure(at: Stage, warm_up: Callable[[], None], settings: Settings, talks: list[Talk]) -> Figures:
    warm_up()
    at.clients.run()
    before, sent = at.begin(), at.clients.sent
    _share_out(at, talks, settings.messages)
    _run(at, sent + settings.messages)
    return at.end(at.name, before, at.clients.sent - sent)


def _run(at: Stage, of: int, upto: int | None = None) -> None:
    clients = at.clients
    what = "messages" if upto is None else "messages drained"
    clients.run(lambda: at.progress(clients.answered if clients.until_answer else clients.delivered, of, what), upto)


def _share_out(at: Stage, talks: list[Talk], messages: int) -> None:
    """The same number for each talk, all at once."""
    for talk in talks:
        at.clients.begin(talk, max(1, messages // len(talks)))


def _in_turn(at: Stage, talks: list[Talk], each: int) -> None:
    """One talk after the other, 50 at a time."""
    left = iter(talks)

    def following() -> None:
        if talk := next(left, None):
            at.clients.begin(talk, each)

    at.clients.next_talk = following
    for _ in range(TALKS):
        following()


def _once(at: Stage, talks: list[Talk], slots: int) -> None:
    """One message in each talk, in random order."""
    left = iter(at.chance.sample(talks, len(talks)))

    def following() -> None:
        if talk := next(left, None):
            at.clients.begin(talk, 1)

    at.clients.next_talk = following
    for _ in range(slots):
        following()


def _at_random(at: Stage, talks: list[Talk], messages: int, burst: int, slots: int) -> None:
    """Random talks of `burst` messages, `slots` at a time."""
    left = [messages // burst]

    def following() -> None:
        if left[0] > 0:
            left[0] -= 1
            while (talk := at.chance.choice(talks)).active:
                pass
            at.clients.begin(talk, burst)

    at.clients.next_talk = following
    for _ in range(min(slots, len(talks) // 2)):
        following()


def _less(whole: float | None, part: float | None) -> float:
    return round((whole or 0) - (part or 0), 3)


SCENARIOS: dict[str, Callable[[Settings], Iterator[Figures]]] = {
    "busy": busy,
    "single": single,
    "crowd": crowd,
    "scattered": scattered,
    "waiting": waiting,
    "history": history,
    "known": known,
    "recovery": recovery,
}
