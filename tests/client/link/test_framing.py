"""Many items, few frames, none too large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nightmail.client.link.framing import pack, size_of
from nightmail.model.records import Acked, Envelope, GroupSealed, GroupSent, Read, Scheduled, Sent, Span
from nightmail.model.schedule_rows import PairContent, PairTarget
from nightmail.model.words import Kind, Lane
from nightmail.wire.frames import decode_from_device, encode
from nightmail.wire.items import Ask, FromDevice, Look, Ping, Watch

BIG = (1 << 53) - 1


def a_send(size: int, envelopes: int) -> Ask:
    sealed = tuple(Envelope(BIG - n, BIG, b"x" * size) for n in range(envelopes))
    return Ask(BIG, Sent(BIG, Lane.HIGH, BIG, BIG, BIG, "i" * 64, b"t" * 16, Kind.TEXT, "o" * 64, BIG, BIG, sealed, ()))


def a_group_seal(size: int, envelopes: int) -> Ask:
    sealed = tuple(Envelope(BIG - n, BIG, b"x" * size) for n in range(envelopes))
    return Ask(
        BIG, GroupSealed(BIG, Lane.HIGH, BIG, BIG, BIG, "i" * 64, b"t" * 16, Kind.TEXT, BIG, "o" * 64, BIG, BIG, sealed)
    )  # fmt: skip


def a_group_message(size: int) -> GroupSent:
    return GroupSent(
        BIG, Lane.HIGH, BIG, BIG, BIG, "i" * 64, b"t" * 16, Kind.TEXT, BIG, b"h" * 32, BIG, b"x" * size
    )  # fmt: skip


def a_schedule(size: int) -> Scheduled:
    content = PairContent(BIG, (Envelope(BIG, BIG, b"x" * size),), ())
    return Scheduled("i" * 64, b"t" * 16, Kind.TEXT, BIG, BIG, PairTarget(BIG), content)


ITEMS = st.one_of(
    st.builds(a_send, st.integers(0, 500), st.integers(0, 4)),
    st.builds(lambda n: Ask(BIG, Acked(Lane.HIGH, BIG, (BIG,) * n)), st.integers(0, 50)),
    st.builds(lambda n: Ask(BIG, Read(BIG, (Span(BIG, Lane.HIGH, BIG, BIG),) * n)), st.integers(0, 50)),
    st.builds(a_group_seal, st.integers(0, 500), st.integers(0, 4)),
    st.builds(lambda n: Ask(BIG, a_group_message(n)), st.integers(0, 2_000)),
    st.builds(lambda n: Ask(BIG, a_schedule(n)), st.integers(0, 2_000)),
    st.builds(lambda n: Watch(BIG, (BIG,) * n), st.integers(0, 100)),
    st.just(Look(BIG, BIG)),
    st.just(Ping(BIG)),
)


@given(st.lists(ITEMS, max_size=20), st.integers(3_000, 10_000))
def test_all_items_arrive_in_order_in_frames_below_the_limit(items: list[FromDevice], limit: int) -> None:
    frames = list(pack(items, limit))
    assert [item for frame in frames for item in decode_from_device(frame)] == items
    assert all(len(frame) <= limit for frame in frames)


@given(ITEMS)
def test_an_item_is_never_larger_than_it_is_thought_to_be(item: FromDevice) -> None:
    assert len(encode([item])) <= size_of(item)


def test_a_question_that_has_no_number_yet_is_not_thought_smaller() -> None:
    body = a_group_message(1_000)
    assert len(encode([Ask(BIG, body)])) <= size_of(Ask(0, body))
