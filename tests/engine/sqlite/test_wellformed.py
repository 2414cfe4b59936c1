"""Whatever is well formed can be folded over real rows: no number that passes the forms is too much for the store."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog
from nightmail.engine.sqlite import SqliteRows
from nightmail.engine.watcher import Watcher
from nightmail.model.forms import LAST_RESORT, Form
from nightmail.model.ids import SERVER, device_id
from nightmail.model.records import (
    Acked,
    AnyBody,
    Author,
    Envelope,
    Linked,
    Listed,
    PinSet,
    Published,
    Read,
    Record,
    Sent,
    Span,
    Voided,
)
from nightmail.model.words import Kind, Lane, Platform
from sim.judges.strict import StrictState
from tests.conformance.test_rows import inline
from tests.engine.rig import ALICE, BOB, PHONE, SELDOM, START, TABLET, a_message, a_person
from tests.model.values import built

FORM = Form()
DEVICES = tuple(device_id(account, index) for account in (ALICE, BOB) for index in (1, 2))
EDGES = (0, -1, 4_095, (1 << 53) - 1, 1 << 53, (1 << 61) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63))
"""What a frame can say: msgpack's numbers end at 64 bits."""

small = st.integers(1, 2)
numbers = st.sampled_from((1, 2, 3, 101, *EDGES))
accounts = st.sampled_from((ALICE, BOB, *EDGES))
devices = st.sampled_from((*DEVICES, *EDGES))
lanes = st.sampled_from(Lane)


spans = st.lists(st.builds(Span, devices, lanes, numbers, numbers), max_size=3).map(tuple)
some = st.lists(devices, max_size=3).map(tuple)
bob_alone = st.just((Envelope(TABLET, 101, b"x"),))
envelopes = bob_alone | st.lists(st.builds(Envelope, devices, numbers, st.just(b"x")), max_size=2).map(tuple)
ids, lives = st.just(f"{PHONE:x}:1:1:a"), st.sampled_from((0, 1_000, 7 * 86_400_000))
BODIES: dict[type[AnyBody], st.SearchStrategy[AnyBody]] = {
    Sent: st.builds(
        Sent, to=st.just(BOB) | accounts, lane=lanes, n=small, floor=small, seen=small | numbers, id=ids,
        tag=st.just(bytes(16)), kind=st.just(Kind.TEXT), of=st.none(), life_ms=lives, list_version=small | numbers,
        envelopes=envelopes, own_envelopes=st.just(()) | envelopes,
    ),
    Voided: st.builds(Voided, accounts, lanes, small, small, ids),
    Acked: st.builds(Acked, lanes, numbers, st.lists(numbers, max_size=3).map(tuple)),
    Read: st.builds(Read, accounts, spans),
    Linked: st.builds(Linked, accounts, numbers, st.just(bytes(32)), st.just("l"), st.just(Platform.CLI)),
    Listed: st.builds(Listed, accounts, numbers, some, st.just(b"signed")),
    PinSet: st.builds(PinSet, accounts, st.just(bytes(16)), st.just(bytes(32))),
    Published: st.builds(
        Published, numbers, st.just(bytes(128)), st.just(bytes(100)), st.just(bytes((LAST_RESORT, *bytes(1_636)))),
        st.just(((1).to_bytes(4, "big") + bytes(32),)), st.just(()),
    ),
}  # fmt: skip
"""Records whose parts must fit together, well formed or not."""
BY_NAME: dict[str, st.SearchStrategy[int]] = {"account": accounts, "peer": accounts, "device": devices}
KINDS = [kind for kind in get_args(AnyBody) if kind.said_by & (Author.DEVICE | Author.SERVER)]


def said(kind: type[AnyBody]) -> st.SearchStrategy[AnyBody]:
    """What a peer may say, by the names and types of its fields unless it is spelled out above."""
    if kind in BODIES:
        return BODIES[kind]
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    by_type = {name: numbers if hint is int else built(hint) for name, hint in fields.items()}
    return st.builds(kind, **{name: BY_NAME.get(name, by_type[name]) for name in fields})


class Noting(Watcher):
    def __init__(self) -> None:
        self.troubles: list[str] = []

    def on_poison(self, offset: int, error: Exception) -> None:
        self.troubles.append(f"{offset}: {error!r}")

    def on_trouble(self, why: str) -> None:
        self.troubles.append(why)


@pytest.fixture(scope="module")
def a_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemoryLog, SqliteRows]]:
    """Two people who have talked, and all of it is only in the store."""
    log, rows = MemoryLog(), SqliteRows(tmp_path_factory.mktemp("rows"), post=inline, execute=inline, entropy=bytes)
    loop = Loop(log, rows, lambda: START, lambda _: None)
    loop.recover()
    for by, body in ((SERVER, a_person("alice")), (SERVER, a_person("bob")), (PHONE, a_message(1, life_ms=2_000))):
        loop.submit(Record(by, 0, body))
    loop.flush()
    loop.save(at_once=True)
    assert rows.pointer == 3
    yield log, rows
    rows.close()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=60)
@given(data=st.data())
def test_every_well_formed_record_can_be_folded(
    a_town: tuple[MemoryLog, SqliteRows], kind: type[AnyBody], data: st.DataObject
) -> None:
    log, rows = a_town
    now, watcher = START, Noting()
    # It never becomes time to save, so each story begins alike.
    loop = Loop(
        deepcopy(log),
        rows,
        lambda: now,
        lambda _: None,
        pace=lambda: 0,
        new_state=StrictState,
        limits=SELDOM,
        watcher=watcher,
    )
    loop.recover()
    for by in (PHONE, TABLET):
        body = data.draw(said(kind))
        if FORM.check(by, body) is None:
            loop.submit(Record(by, 1, body))
            loop.flush()
            now += data.draw(st.sampled_from((1, 3_000, 8 * 86_400_000)))
            loop.tick()
    assert (watcher.troubles, loop.ready, rows.pointer) == ([], True, 3)
