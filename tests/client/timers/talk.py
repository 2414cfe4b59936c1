"""Two people whose messages disappear, and what is left of them."""

from __future__ import annotations

from nightmail.client.messages import Message
from nightmail.client.store.search import terms_of
from nightmail.e2ee.content import Content
from nightmail.model.words import Kind
from tests.client.sealed_town import a_town, pass_time
from tests.client.town import Device, Town

MINUTE = 60_000


def timed_talk(*handles: str, life_ms: int = MINUTE) -> tuple[Town, list[Device]]:
    """The first two have set a timer."""
    town, devices = a_town(*(handles or ("alice", "bob")))
    sets(devices[0], devices[1], life_ms)
    town.settle()
    return town, devices


def sets(device: Device, peer: Device, life_ms: int) -> Message:
    change = device.machine.set_timer(peer.me.account, life_ms, device.town.now)
    device.look()
    return change


def writes(device: Device, to: Device, text: str, life_ms: int | None = None) -> Message:
    """As the person types it; the timer of the conversation counts."""
    content = Content(Kind.TEXT, text)
    message = device.machine.write(to.me.account, content, device.town.now, life_ms=life_ms)
    device.look()
    return message


def texts(device: Device, peer: Device) -> list[str]:
    """What the history shows, without changes of the timer."""
    return [each.text for each in device.store.history(peer.me.account, 100) if each.kind is Kind.TEXT]


def finds(device: Device, word: str) -> list[str]:
    return [message.text for message in device.store.search(terms_of(word), None, 10)]


def waits(town: Town, ms: int) -> None:
    pass_time(town, ms)


def waits_until(town: Town, at: int) -> None:
    """To the millisecond: nothing is carried to or from the server meanwhile."""
    town.wait(at - town.now)
