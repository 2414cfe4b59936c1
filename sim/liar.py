"""A device whose software is broken: it says what is not so, and must be refused without harm.

An honest client never acknowledges what it was not given and never gives one number to two
messages; a clone that was restored from an old backup does both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightmail.model.answers import Said, Settled
from nightmail.model.records import Acked, ChangesAcked, Sent
from nightmail.model.refusals import AckAboveHead, IdReused, UnknownDevice
from nightmail.model.words import Kind, Lane

from .session import Backend

if TYPE_CHECKING:
    from .client import Client

FAR = 1_000_000


def lie(client: Client, backend: Backend) -> None:
    match client.world.between(0, 2):
        case 0:
            _ack_what_never_was(client, backend)
        case 1:
            _tell(client, backend, ChangesAcked(client.cursor[2] + FAR), AckAboveHead)
        case _:
            _reuse_a_number(client, backend)


def _ack_what_never_was(client: Client, backend: Backend) -> None:
    lane = client.world.chance.choice(list(Lane))
    _tell(client, backend, Acked(lane, client.cursor[lane] + FAR), AckAboveHead)


def _reuse_a_number(client: Client, backend: Backend) -> None:
    """Another content under the id and number of a message that was accepted."""
    if not client.outbox.accepted:
        return
    first = client.world.chance.choice(client.outbox.accepted)
    body = Sent(
        to=first.to, lane=first.lane, n=first.n, floor=first.n, seen=0, id=first.id, tag=b"something else",
        kind=Kind.TEXT, of=None, life_ms=0, list_version=first.version, envelopes=(), own_envelopes=(),
    )  # fmt: skip
    _tell(client, backend, body, IdReused, Settled)


def _tell(client: Client, backend: Backend, lie: Acked | ChangesAcked | Sent, *expected: type[Said]) -> None:
    def answered(said: Said) -> None:
        if isinstance(said, expected):
            client.world.hit(f"a lie was answered {type(said).__name__}")
        elif not (getattr(said, "retry", False) or (isinstance(said, UnknownDevice) and client.removed)):
            raise client.history.broke("lies are refused", f"{client.name} said {lie!r} and was told {said!r}")

    backend.submit(client.device, lie, answered)
