from __future__ import annotations

import pytest

from nightmail.e2ee import peers
from nightmail.e2ee.errors import (
    BadEncoding,
    IdentityChanged,
    KeySpent,
    NoSession,
    NotLasting,
    PrekeyGone,
    Rejected,
    Undecipherable,
    UnknownVersion,
    WrongDevice,
)
from nightmail.e2ee.header import HEADER_BYTES, MADE_MAX
from nightmail.e2ee.peers import ONCE, RESTART_MS, SESSIONS_MAX, Peer

from .devices import NOW, Device, acquainted, pair


def test_the_first_message_opens_and_so_does_its_answer() -> None:
    ada, bob = pair()
    assert bob.open(ada, ada.seal(bob, b"hello")) == b"hello"
    assert ada.open(bob, bob.seal(ada, b"and to you")) == b"and to you"
    assert ada.peers[bob.device].sessions[0].id == bob.peers[ada.device].sessions[0].id


def test_how_the_session_began_is_told_until_an_answer_comes() -> None:
    ada, bob = pair()
    first, second = ada.seal(bob, b"1"), ada.seal(bob, b"2")
    assert len(first) == len(second) > 1_600
    # Either of them can be lost, or be the one that comes first.
    assert bob.open(ada, second) == b"2"
    assert bob.open(ada, first) == b"1"
    ada.open(bob, bob.seal(ada, b"3"))
    assert len(ada.seal(bob, b"4")) < 200


def test_a_first_message_uses_up_its_one_time_keys_and_opens_once() -> None:
    ada, bob = pair()
    bundle = bob.bundle()
    ada.begin(bob, bundle)
    first = ada.seal(bob, b"hello")
    bob.open(ada, first)
    assert bundle.one_time
    assert bundle.one_time.id not in bob.keys.one_time
    assert bundle.kem.id not in bob.keys.one_time_kem
    with pytest.raises(KeySpent):
        bob.open(ada, first)
    del bob.peers[ada.device]
    with pytest.raises(PrekeyGone):
        bob.open(ada, first)


def test_without_one_time_keys_a_session_begins_all_the_same_and_its_first_message_opens_once() -> None:
    ada, bob = Device("ada"), Device("bob", stock=0)
    bundle = bob.bundle()
    assert bundle.exhausted
    ada.begin(bob, bundle)
    first = ada.seal(bob, b"hello")
    assert bob.open(ada, first) == b"hello"
    # Even a device that dropped the session does not take a replay for a new one.
    del bob.peers[ada.device]
    with pytest.raises(PrekeyGone):
        bob.open(ada, first)


def test_a_first_message_to_another_device_does_not_open() -> None:
    ada, bob = pair()
    eve, other = Device("eve"), Device("bob", index=2)
    first = ada.seal(bob, b"for bob's phone")
    for wrong in (eve, other):
        before = wrong.states()
        with pytest.raises(Rejected):
            wrong.open(ada, first)
        assert wrong.states() == before


def test_a_message_of_one_sender_does_not_pass_for_anothers() -> None:
    ada, bob = acquainted()
    eve = Device("eve")
    bob.open(eve, eve.seal(bob, b"I am eve"))
    before = bob.states()
    with pytest.raises(Undecipherable):
        bob.open(eve, ada.seal(bob, b"from ada"))
    with pytest.raises(IdentityChanged):
        bob.open(eve, Device("ada").seal(bob, b"from ada"))
    assert bob.states() == before


def test_a_bundle_of_another_device_or_key_is_refused() -> None:
    ada, bob = pair()
    eve, reset = Device("eve"), Device("bob", now=NOW + 1)
    with pytest.raises(WrongDevice):
        ada.begin(bob, eve.bundle())
    impostor = eve.bundle()._replace(address=bob.keys.address)
    with pytest.raises(IdentityChanged):
        ada.begin(bob, impostor)
    assert reset.bundle().address == bob.keys.address


def test_whatever_bit_is_changed_the_message_is_refused_and_nothing_changes() -> None:
    ada, bob = acquainted()
    for sealed in (ada.seal(bob, b"ordinary"), Device("carl").seal(bob, b"first")):
        sender = ada if len(sealed) < 1_000 else Device("carl")
        before = bob.states()
        # Every bit of the header and of the end; of the rest one in a while.
        places = [*range(HEADER_BYTES + 14), *range(HEADER_BYTES + 14, len(sealed), 97), *range(-40, 0)]
        for at in places:
            for bit in (0, 7):
                bad = bytearray(sealed)
                bad[at] ^= 1 << bit
                with pytest.raises(Rejected):
                    bob.open(sender, bytes(bad))
        assert bob.states() == before
        bob.open(sender, sealed)


@pytest.mark.parametrize("cut", [0, 1, 41, 42, 89])
def test_a_message_cut_short_is_refused(cut: int) -> None:
    ada, bob = acquainted()
    with pytest.raises(BadEncoding):
        bob.open(ada, ada.seal(bob, b"hello")[:cut])


def test_a_version_of_the_future_is_named_as_such() -> None:
    ada, bob = acquainted()
    with pytest.raises(UnknownVersion, match="version 2"):
        bob.open(ada, b"\x02" + ada.seal(bob, b"hello")[1:])


def test_nothing_is_sealed_without_a_session() -> None:
    ada, bob = pair()
    with pytest.raises(NoSession):
        peers.seal(ada.peer(bob), b"hello")
    with pytest.raises(NoSession):
        bob.open(ada, b"\x01\x01" + bytes(100))


# --- two sessions at once ---------------------------------------------------------------------


def same_session(ada: Device, bob: Device) -> bool:
    return ada.peers[bob.device].sessions[0].id == bob.peers[ada.device].sessions[0].id


@pytest.mark.parametrize("rounds", range(12))
def test_two_sessions_begun_at_once_settle_on_one(rounds: int) -> None:
    ada, bob = Device(f"ada{rounds}"), Device(f"bob{rounds}")
    to_bob, to_ada = ada.seal(bob, b"1"), bob.seal(ada, b"2")
    assert (bob.open(ada, to_bob), ada.open(bob, to_ada)) == (b"1", b"2")
    for _ in range(2):
        to_bob, to_ada = ada.seal(bob, b"3"), bob.seal(ada, b"4")
        assert (bob.open(ada, to_bob), ada.open(bob, to_ada)) == (b"3", b"4")
    assert same_session(ada, bob)
    # And from then on the ratchet turns with every answer, as in any other session.
    own = ada.peers[bob.device].sessions[0].ratchet.own_public
    bob.open(ada, ada.seal(bob, b"5"))
    ada.open(bob, bob.seal(ada, b"6"))
    assert ada.peers[bob.device].sessions[0].ratchet.own_public != own


@pytest.mark.parametrize("rounds", range(12))
def test_a_crossing_that_only_one_end_sees_settles_too(rounds: int) -> None:
    ada, bob = Device(f"ada{rounds}"), Device(f"bob{rounds}")
    delayed, to_ada = ada.seal(bob, b"late"), bob.seal(ada, b"2")
    ada.open(bob, to_ada)
    bob.open(ada, ada.seal(bob, b"3"))
    # By now Bob's own session was answered; Ada's first message comes only then.
    bob.open(ada, delayed)
    for _ in range(3):
        ada.open(bob, bob.seal(ada, b"4"))
        bob.open(ada, ada.seal(bob, b"5"))
    assert same_session(ada, bob)


def test_a_session_begun_on_purpose_wins_whatever_the_clocks_say() -> None:
    ada, bob = acquainted()
    ada.now -= 10**9
    ada.begin(bob)
    assert bob.open(ada, ada.seal(bob, b"again")) == b"again"
    ada.open(bob, bob.seal(ada, b"followed"))
    assert same_session(ada, bob)
    assert ada.peers[bob.device].sessions[0].made > bob.now


def test_a_session_begun_at_the_end_of_time_does_no_harm_beyond_itself() -> None:
    ada, bob = acquainted()
    ada.now = MADE_MAX
    ada.begin(bob)
    assert bob.open(ada, ada.seal(bob, b"from the end")) == b"from the end"
    bob.begin(ada)
    assert ada.open(bob, bob.seal(ada, b"and back")) == b"and back"
    assert bob.open(ada, ada.seal(bob, b"and on")) == b"and on"
    assert same_session(ada, bob)
    ada.now = MADE_MAX + 1
    ada.peers.clear()
    ada.begin(bob)
    assert bob.open(ada, ada.seal(bob, b"still here")) == b"still here"


def test_begun_at_once_with_both_first_messages_lost_it_still_settles() -> None:
    ada, bob = pair()
    ada.seal(bob, b"lost")
    bob.seal(ada, b"lost")
    to_bob, to_ada = ada.seal(bob, b"1"), bob.seal(ada, b"2")
    assert (bob.open(ada, to_bob), ada.open(bob, to_ada)) == (b"1", b"2")
    for _ in range(2):
        bob.open(ada, ada.seal(bob, b"3"))
        ada.open(bob, bob.seal(ada, b"4"))
    assert same_session(ada, bob)


def test_a_replaced_session_is_followed_and_what_was_under_way_still_opens() -> None:
    ada, bob = acquainted()
    under_way, old = bob.seal(ada, b"under way"), ada.seal(bob, b"old")
    ada.begin(bob)
    fresh = ada.seal(bob, b"again")
    assert bob.open(ada, fresh) == b"again"
    assert bob.open(ada, old) == b"old"
    assert ada.open(bob, under_way) == b"under way"
    # What came late in the old session must not draw Ada back into it: she left it for a reason.
    assert not ada.peers[bob.device].sessions[0].heard
    bob.open(ada, ada.seal(bob, b"1"))
    ada.open(bob, bob.seal(ada, b"2"))
    assert same_session(ada, bob)


def test_a_device_restored_from_an_old_state_is_refused_until_it_begins_a_new_session() -> None:
    ada, bob = acquainted()
    old = ada.states()
    bob.open(ada, ada.seal(bob, b"after the copy"))
    ada.open(bob, bob.seal(ada, b"an answer"))
    bob.open(ada, ada.seal(bob, b"and on"))
    ada.keys, ada.peers = old
    before = bob.states()
    with pytest.raises(KeySpent):
        bob.open(ada, ada.seal(bob, b"from the past"))
    assert bob.states() == before
    ada.begin(bob)
    assert bob.open(ada, ada.seal(bob, b"again")) == b"again"
    assert ada.open(bob, bob.seal(ada, b"welcome back")) == b"welcome back"


def test_sessions_with_a_device_are_bounded_and_begun_once_an_hour_or_twice_if_never_answered() -> None:
    ada, bob = pair()
    for _ in range(SESSIONS_MAX + 2):
        for _ in range(2):
            assert peers.may_restart(ada.peer(bob), ada.now)
            ada.begin(bob)
        assert not peers.may_restart(ada.peer(bob), ada.now + RESTART_MS - 1)
        ada.now += RESTART_MS + 1
    assert len(ada.peers[bob.device].sessions) == SESSIONS_MAX
    assert bob.open(ada, ada.seal(bob, b"hello")) == b"hello"


@pytest.mark.parametrize("stock", [0, SESSIONS_MAX + 2])
def test_of_too_many_sessions_the_oldest_is_dropped_and_what_is_under_way_in_the_others_opens(stock: int) -> None:
    ada, bob = Device("ada"), Device("bob", stock=stock)
    under_way: list[bytes] = []
    for _ in range(SESSIONS_MAX + 1):
        ada.begin(bob)
        bob.open(ada, ada.seal(bob, b"first"))
        under_way.append(ada.seal(bob, b"late"))
        ada.now += RESTART_MS
    before = bob.states()
    with pytest.raises(PrekeyGone):
        bob.open(ada, under_way[0])
    assert bob.states() == before
    assert [bob.open(ada, late) for late in under_way[1:]] == [b"late"] * SESSIONS_MAX


def test_a_session_that_was_answered_is_not_replaced_at_once() -> None:
    ada, bob = pair()
    ada.begin(bob)
    bob.open(ada, ada.seal(bob, b"hello"))
    assert peers.may_restart(ada.peer(bob), ada.now)
    ada.open(bob, bob.seal(ada, b"yes"))
    assert not peers.may_restart(ada.peer(bob), ada.now + RESTART_MS - 1)


# --- messages for later -----------------------------------------------------------------------


def sealed_once(by: Device, to: Device, text: bytes) -> bytes:
    known = Peer.of(to.keys.address, to.keys.identity.public)
    return peers.seal_once(by.keys, known, to.bundle(), text, by.chance)


def test_a_message_for_later_opens_once_and_begins_no_session() -> None:
    ada, bob = Device("ada"), Device("bob", stock=0)
    later = sealed_once(ada, bob, b"later")
    assert bob.open(ada, later) == b"later"
    assert not bob.peers[ada.device].ready
    with pytest.raises(PrekeyGone):
        bob.open(ada, later)


def test_a_message_for_later_changes_no_session_that_there_is() -> None:
    ada, bob = Device("ada"), Device("bob", stock=0)
    later = sealed_once(ada, bob, b"later")
    ada.begin(bob, bob.bundle())
    assert bob.open(ada, ada.seal(bob, b"now")) == b"now"
    before = bob.peers[ada.device]
    assert bob.open(ada, later) == b"later"
    assert bob.peers[ada.device] == before
    assert ada.open(bob, bob.seal(ada, b"answer")) == b"answer"


def test_a_session_that_is_kept_never_has_the_time_of_one_that_is_not() -> None:
    ada, bob = pair()
    ada.peers[bob.device] = peers.begin(
        ada.keys, Peer.of(bob.keys.address, bob.keys.identity.public), bob.bundle(), ada.chance, ONCE
    )
    assert ada.peers[bob.device].sessions[0].made > ONCE
    assert bob.open(ada, ada.seal(bob, b"hello")) == b"hello"
    assert bob.peers[ada.device].ready


def test_nothing_for_later_is_sealed_with_a_one_time_key() -> None:
    ada, bob = pair()
    with pytest.raises(NotLasting):
        sealed_once(ada, bob, b"later")


def test_nothing_for_later_is_sealed_for_another_device_than_the_listed_one() -> None:
    ada, bob, eve = Device("ada"), Device("bob", stock=0), Device("eve", stock=0)
    known = Peer.of(bob.keys.address, bob.keys.identity.public)
    with pytest.raises(WrongDevice):
        peers.seal_once(ada.keys, known, eve.bundle(), b"later", ada.chance)
    stranger = Peer.of(bob.keys.address, eve.keys.identity.public)
    with pytest.raises(IdentityChanged):
        peers.seal_once(ada.keys, stranger, bob.bundle(), b"later", ada.chance)
