"""Presence and typing in the client's machine; the test plays the server."""

from __future__ import annotations

import pytest

from nightmail.client.errors import Misused, NoPresence, PresenceRefused
from nightmail.client.events import PresenceChanged, Sight, TypingChanged
from nightmail.client.link.framing import size_of
from nightmail.client.link.presence import ASKED_AT_ONCE, PresenceView
from nightmail.client.messages import unnamed
from nightmail.model.forms import ACCOUNT_MAX
from nightmail.model.refusals import Malformed, RateLimited, Unavailable
from nightmail.model.words import Audience, PresenceState
from nightmail.wire.frames import encode
from nightmail.wire.items import (
    REF_MAX,
    VERSION,
    AboutPresence,
    Answered,
    Foreground,
    FromDevice,
    Peek,
    PersonSeen,
    Seen,
    ShownTo,
    ShowTo,
    Types,
    Typing,
    Watch,
    Welcome,
)
from tests.client.script import BOB, START, Script, an_entry, entries

CAROL = BOB + 2
GROUP = BOB + 1
ONLINE, HIDDEN = Sight(PresenceState.ONLINE, 0), Sight(PresenceState.UNAVAILABLE, 0)
AWAY = Sight(PresenceState.OFFLINE, START - 5_000)
NAME = unnamed(BOB)


class Talk(Script):
    """A server that takes items about presence, or one that does not."""

    def greet(self, items: int = 2) -> None:
        self._greeting = True
        self.machine.connected(self.now)
        self.take()
        self.say(Welcome(VERSION, self.now, "here", 30_000, 256, 65_536, 1 << 20, 2, items))

    @property
    def view(self) -> PresenceView:
        return self.machine.presence(self.now)

    def says(self) -> list[FromDevice]:
        """What it says about presence."""
        said, self._said = [*self._said, *self.take()], []
        return [item for item in said if isinstance(item, AboutPresence)]

    def tell(self, ref: int, *people: tuple[int, Sight]) -> None:
        self.say(Seen(ref, tuple(PersonSeen(account, sight.state, sight.last_seen) for account, sight in people)))
        self.turn()


def talk(items: int = 2) -> Talk:
    made = Talk()
    made.greet(items)
    made.take()
    return made


def ref_of(item: FromDevice) -> int:
    assert isinstance(item, Watch | Peek | ShowTo)
    return item.ref


# --- what the app wants is said, and said again ---------------------------------------------------


def test_what_the_app_wants_is_said_on_every_connection() -> None:
    phone = Talk()
    phone.view.set_foreground(True)
    phone.view.watch([BOB, BOB])
    for _ in range(2):
        phone.greet()
        said = phone.says()
        assert said == [Foreground(True), Watch(ref_of(said[1]), (BOB,))]
        phone.lose()


def test_each_change_is_said_once() -> None:
    phone = talk()
    for on in (False, True, True, False):
        phone.view.set_foreground(on)
    phone.view.watch([BOB])
    phone.view.watch([BOB])
    phone.view.watch([])
    said = phone.says()
    assert said == [Foreground(True), Foreground(False), Watch(ref_of(said[2]), (BOB,)), Watch(ref_of(said[3]), ())]


def test_a_server_that_takes_nothing_of_it_is_told_nothing_of_it() -> None:
    phone, found = talk(items=1), list[object]()
    phone.view.set_foreground(True)
    phone.view.watch([BOB])
    phone.view.typing(BOB)
    phone.view.peek([BOB], found.append)
    phone.view.show_to(None, found.append)
    assert (phone.says(), found[0], type(found[1])) == ([], {BOB: HIDDEN}, NoPresence)


def test_a_machine_that_is_replaced_goes_on_wanting_what_the_app_wants() -> None:
    phone, found = talk(), list[object]()
    phone.view.set_foreground(True)
    phone.view.watch([BOB])
    phone.view.peek([CAROL], found.append)
    phone.take()
    phone.machine.roll_back()
    phone.machine = phone.machine.restarted()
    phone.greet()
    said = phone.says()
    assert said == [Foreground(True), Watch(ref_of(said[1]), (BOB,)), Peek(ref_of(said[2]), (CAROL,))]


@pytest.mark.parametrize(("refusal", "wait_ms"), [(RateLimited(4_000), 4_000), (Unavailable(), 1_000)])
def test_a_list_that_was_refused_for_now_is_said_again_in_time(
    refusal: RateLimited | Unavailable, wait_ms: int
) -> None:
    phone = talk()
    phone.view.watch([BOB])
    (first,) = phone.says()
    phone.say(Answered(ref_of(first), refusal))
    phone.wait(wait_ms - 1)
    early = phone.says()
    phone.wait(1)
    (again,) = phone.says()
    assert (early, again) == ([], Watch(ref_of(again), (BOB,)))


def test_a_list_that_was_refused_for_good_is_not_said_again() -> None:
    phone = talk()
    phone.view.watch([BOB])
    (first,) = phone.says()
    phone.say(Answered(ref_of(first), Malformed("at most 0 accounts at once")))
    phone.wait(60_000)
    assert phone.says() == []


def test_too_many_at_once_are_refused_here() -> None:
    phone = talk()
    with pytest.raises(Misused):
        phone.view.watch(range(1, 34))
    with pytest.raises(Misused):
        phone.view.peek(range(1, 102), lambda _: None)


# --- what is told ---------------------------------------------------------------------------------


def test_a_watched_person_is_shown_as_the_server_tells_and_each_change_is_told_once() -> None:
    phone = talk()
    phone.view.watch([BOB])
    (watch,) = phone.says()
    phone.tell(ref_of(watch), (BOB, AWAY))
    phone.tell(0, (BOB, ONLINE))
    phone.tell(0, (BOB, ONLINE), (CAROL, ONLINE))
    assert phone.told(PresenceChanged) == [PresenceChanged(BOB, NAME, AWAY), PresenceChanged(BOB, NAME, ONLINE)]
    assert (phone.view.sight(BOB), phone.view.sight(CAROL)) == (ONLINE, None)


def test_a_lost_connection_takes_away_what_was_told() -> None:
    phone = talk()
    phone.view.watch([BOB])
    (watch,) = phone.says()
    phone.tell(ref_of(watch), (BOB, ONLINE))
    phone.lose()
    assert phone.view.sight(BOB) is None


def test_an_answer_is_used_for_half_a_minute_and_then_asked_for_again() -> None:
    phone, found = talk(), list[object]()
    phone.view.peek([BOB], found.append)
    (asked,) = phone.says()
    phone.tell(ref_of(asked), (BOB, AWAY))
    phone.wait(29_999)
    phone.view.peek([BOB], found.append)
    unasked = phone.says()
    phone.wait(1)
    phone.view.peek([BOB], found.append)
    (again,) = phone.says()
    assert (found, unasked, again) == ([{BOB: AWAY}, {BOB: AWAY}], [], Peek(ref_of(again), (BOB,)))


def test_a_question_without_a_connection_is_asked_on_the_next_one_and_answered_once() -> None:
    phone, found = Talk(), list[object]()
    phone.view.peek([BOB], found.append)
    phone.greet()
    phone.says()
    phone.lose()
    phone.greet()
    (asked,) = phone.says()
    phone.tell(ref_of(asked), (BOB, ONLINE))
    assert found == [{BOB: ONLINE}]


def test_what_nobody_waits_for_any_more_is_not_asked_and_takes_no_memory() -> None:
    phone, found = Talk(), list[object]()
    for account in range(1, 1_000):
        phone.view.peek([account], found.append, lambda: False)
        phone.view.show_to(Audience.NOBODY, found.append, lambda: False)
    assert len(phone.view._waiting) == 1  # pyright: ignore[reportPrivateUsage]
    phone.view.peek([BOB], found.append)
    phone.greet()
    (asked,) = phone.says()
    phone.tell(ref_of(asked), (BOB, ONLINE))
    assert (asked, found) == (Peek(ref_of(asked), (BOB,)), [{BOB: ONLINE}])


def test_questions_are_asked_a_few_at_a_time_and_all_are_answered() -> None:
    phone, found = Talk(), list[object]()
    accounts = range(1, 101)
    for account in accounts:
        phone.view.peek([account], found.append)
    phone.greet()
    most = 0
    while asked := phone.says():
        most = max(most, len(asked))
        for item in asked:
            assert isinstance(item, Peek)
            phone.tell(item.ref, (item.accounts[0], ONLINE))
    assert (most, found) == (ASKED_AT_ONCE, [{account: ONLINE} for account in accounts])


def test_a_question_that_got_another_answer_is_asked_again() -> None:
    phone, found = talk(), list[object]()
    phone.view.peek([BOB], found.append)
    (asked,) = phone.says()
    phone.say(Seen(ref_of(asked), (PersonSeen(CAROL, PresenceState.ONLINE, 0),)))
    assert phone.hang_up
    phone.lose()
    phone.greet()
    (again,) = phone.says()
    phone.tell(ref_of(again), (BOB, ONLINE))
    assert found == [{BOB: ONLINE}]


def test_a_choice_is_told_when_the_server_has_it_and_a_refusal_is_told_too() -> None:
    phone, found = talk(), list[object]()
    phone.view.show_to(Audience.NOBODY, found.append)
    phone.view.show_to(None, found.append)
    first, second = phone.says()
    assert (first, second) == (ShowTo(ref_of(first), Audience.NOBODY), ShowTo(ref_of(second), None))
    phone.say(ShownTo(ref_of(first), Audience.NOBODY), Answered(ref_of(second), RateLimited(7)))
    assert found[0] is Audience.NOBODY
    assert isinstance(found[1], PresenceRefused)


@pytest.mark.parametrize(
    "item",
    [
        Seen(77, ()),
        ShownTo(77, Audience.NOBODY),
        Seen(0, (PersonSeen(ACCOUNT_MAX + 1, PresenceState.ONLINE, 0),)),
        Seen(0, (PersonSeen(BOB, PresenceState.ONLINE, -1),)),
        Types(-1),
        Types(BOB, -2),
        Types(BOB, CAROL),
    ],
    ids=str,
)
def test_what_no_server_says_ends_the_connection(item: Seen | ShownTo | Types) -> None:
    phone = talk()
    phone.say(item)
    assert phone.hang_up


def test_an_answer_about_somebody_else_ends_the_connection() -> None:
    phone = talk()
    phone.view.watch([BOB])
    (watch,) = phone.says()
    phone.say(Seen(ref_of(watch), (PersonSeen(CAROL, PresenceState.ONLINE, 0),)))
    assert phone.hang_up


# --- typing ---------------------------------------------------------------------------------------


def test_typing_is_said_every_three_seconds_for_each_conversation_however_often_a_key_is_pressed() -> None:
    phone = talk()
    said: list[FromDevice] = []
    for _ in range(61):
        phone.view.typing(BOB)
        phone.view.typing(CAROL)
        said += phone.says()
        phone.wait(100)
    assert said == [Typing(BOB), Typing(CAROL)] * 3


def test_typing_is_never_said_later() -> None:
    phone = Talk()
    phone.view.typing(BOB)
    phone.greet()
    assert phone.says() == []


def test_who_types_is_shown_until_five_seconds_after_the_last_sign() -> None:
    phone = talk()
    phone.say(Types(BOB))
    phone.wait(3_000)
    phone.say(Types(BOB))
    phone.wait(4_999)
    still = phone.view.is_typing(BOB)
    phone.wait(1)
    assert (still, phone.view.is_typing(BOB)) == (True, False)
    assert phone.told(TypingChanged) == [TypingChanged(BOB, NAME, True), TypingChanged(BOB, NAME, False)]


def test_who_has_sent_the_message_is_typing_no_more() -> None:
    phone = talk()
    phone.say(Types(BOB), entries(1, an_entry(1)))
    phone.turn()
    assert phone.told(TypingChanged) == [TypingChanged(BOB, NAME, True), TypingChanged(BOB, NAME, False)]


def test_who_types_in_a_group_is_shown_there_and_not_as_writing_to_this_account() -> None:
    phone = talk()
    phone.say(Types(BOB, GROUP), Types(CAROL, GROUP), Types(CAROL))
    assert (phone.view.typing_in(GROUP), phone.view.is_typing(BOB), phone.view.is_typing(CAROL)) == (
        [BOB, CAROL], False, True,
    )  # fmt: skip
    phone.wait(5_000)
    told = [(event.account, event.group, event.typing) for event in phone.told(TypingChanged)]
    assert told == [
        (BOB, GROUP, True), (CAROL, GROUP, True), (CAROL, None, True),
        (BOB, GROUP, False), (CAROL, GROUP, False), (CAROL, None, False),
    ]  # fmt: skip


def test_a_server_that_names_ever_more_people_who_type_fills_no_memory() -> None:
    phone = talk()
    for first in range(0, 5_000, 100):
        phone.say(*(Types(account) for account in range(first, first + 100)))
    phone.turn()
    told = phone.told(TypingChanged)
    assert sum(1 if event.typing else -1 for event in told) == 1_000


# --- size -----------------------------------------------------------------------------------------


def test_a_long_list_of_accounts_is_counted_in_full() -> None:
    for item in (Peek(REF_MAX, (ACCOUNT_MAX,) * 100), Watch(REF_MAX, (ACCOUNT_MAX,) * 32)):
        assert len(encode([item])) <= size_of(item)
