"""Presence and typing: what this device says about its person, and what it was told of others.

Knows:   whether the app is in the foreground, whom it watches, and what was told on the present connection.
Touches: nothing durable. A lost connection takes away what was told; what the app wants is said again on the next one.
Never:   says anything of it to a server that does not take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from nightmail.client.errors import Misbehaved, Misused, NoPresence, PresenceRefused
from nightmail.client.events import PresenceChanged, Sight, TypingChanged
from nightmail.client.machine.context import Context
from nightmail.client.messages import Message
from nightmail.model.answers import Said
from nightmail.model.group_chain import is_group
from nightmail.model.ids import account_of
from nightmail.model.refusals import NotYet, RateLimited, Refusal
from nightmail.model.words import Audience, PresenceState
from nightmail.wire.items import (
    PRESENCE_ITEMS,
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
)

WATCHED = 32
"""Accounts that can be watched: as many as a server allows by default."""
PEEKED = 100
"""Accounts in one question; likewise."""
TYPING_SHOWN_MS = 5_000
TYPING_EVERY_MS = 3_000
CACHED_MS = 30_000
"""How long an answer may be used again, in ms."""
REMEMBERED = 1_000
"""Accounts of which an answer, or that they are typing, is remembered."""
ASKED_AT_ONCE = 16
"""Questions that may be unanswered at a time. A server ends a connection on which thousands are asked at once."""
WATCH_AGAIN_MS = 1_000
"""The shortest wait, in ms, before a list that was refused is said again."""

NO_GROUP = 0

UNAVAILABLE = Sight(PresenceState.UNAVAILABLE, 0)


def _always() -> bool:
    return True


class Question(NamedTuple):
    """Asked again on the next connection until it is answered."""

    item: Callable[[int], FromDevice]
    """Made with its ref."""
    answered: Callable[[Seen | ShownTo | PresenceRefused], None]
    not_taken: Callable[[], None]
    """The server tells nothing of presence."""
    is_awaited: Callable[[], bool]
    """False if the caller has given up: then it is not asked."""


class Told(Struct, frozen=True):
    sight: Sight
    at: int


class PresenceView:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._is_in_foreground = False
        self._watched: tuple[int, ...] = ()
        self._told: dict[int, Told] = {}
        """Account → what was told last; oldest first."""
        self._typing: dict[tuple[int, int], int] = {}
        """(Account that is typing, group or 0) → until when that is shown; in this order."""
        self._typed: dict[int, int] = {}
        """Account or group → when it was last told that this person is typing."""
        self._waiting: list[Question] = []
        """Not asked yet, for want of a connection, or because too many are unanswered."""
        self._asked: dict[int, Question] = {}
        self._watches: dict[int, tuple[int, ...]] = {}
        """Ref → what was said to be watched, until it is answered."""
        self._watch_at: int | None = None
        """When to say again what is watched, because it was refused."""

    @property
    def _is_taken(self) -> bool:
        return self._context.online and self._context.server_items >= PRESENCE_ITEMS

    # --- what the app wants ---------------------------------------------------------------------

    def set_foreground(self, on: bool) -> None:
        if on != self._is_in_foreground:
            self._is_in_foreground = on
            if self._is_taken:
                self._context.items.append(Foreground(on))

    def watch(self, accounts: Iterable[int]) -> None:
        """Watch these accounts, and no others. Raises Misused."""
        wanted = tuple(dict.fromkeys(accounts))
        if len(wanted) > WATCHED:
            raise Misused(f"at most {WATCHED} conversations can be watched at once")
        if wanted == self._watched:
            return
        for account in set(self._watched) - set(wanted):
            self._told.pop(account, None)
        self._watched = wanted
        self._say_watched()

    def sight(self, account: int) -> Sight | None:
        """What is known now; None: nothing, or it is too old."""
        told = self._told.get(account)
        if told is None or (account not in self._watched and self._context.now - told.at >= CACHED_MS):
            return None
        return told.sight

    def is_typing(self, account: int) -> bool:
        """To this account; `typing_in` tells it of groups."""
        return (account, NO_GROUP) in self._typing

    def typing_in(self, group: int) -> list[int]:
        """The accounts that are typing in this group; who began last comes last."""
        return [account for account, where in self._typing if where == group]

    def peek(
        self, accounts: Sequence[int], found: Callable[[dict[int, Sight] | PresenceRefused], None],
        is_awaited: Callable[[], bool] = _always,
    ) -> None:  # fmt: skip
        """Tell what is known of these accounts; those of which nothing is known are asked for, at most 100."""
        known = {account: sight for account in accounts if (sight := self.sight(account)) is not None}
        missing = tuple(dict.fromkeys(account for account in accounts if account not in known))
        if len(missing) > PEEKED:
            raise Misused(f"at most {PEEKED} people can be asked for at once")
        if not missing:
            found(known)
            return

        def answered(said: Seen | ShownTo | PresenceRefused) -> None:
            found(said if isinstance(said, PresenceRefused) else {**known, **self._take_answer(missing, said)})

        def not_taken() -> None:
            found({**known, **dict.fromkeys(missing, UNAVAILABLE)})

        self._ask(Question(partial(_peek, missing), answered, not_taken, is_awaited))

    def show_to(
        self, audience: Audience | None, found: Callable[[Audience | PresenceRefused], None],
        is_awaited: Callable[[], bool] = _always,
    ) -> None:  # fmt: skip
        """Choose who may see this account's presence; None only asks. Tells who may."""

        def answered(said: Seen | ShownTo | PresenceRefused) -> None:
            if isinstance(said, Seen):
                raise Misbehaved("another answer than was asked for")
            found(said if isinstance(said, PresenceRefused) else said.audience)

        def not_taken() -> None:
            found(NoPresence("this server does not tell who is online or was last seen when"))

        self._ask(Question(partial(_show_to, audience), answered, not_taken, is_awaited))

    def typing(self, to: int) -> None:
        """The person is typing, to an account or in a group. Said now and then, however often this is called; never
        said later."""
        now = self._context.now
        said = self._typed.get(to)
        if not self._is_taken or (said is not None and now - said < TYPING_EVERY_MS):
            return
        self._typed = {account: at for account, at in self._typed.items() if now - at < TYPING_EVERY_MS}
        self._typed[to] = now
        self._context.items.append(Typing(to))

    # --- the connection -------------------------------------------------------------------------

    def connected(self) -> None:
        if self._is_taken and self._is_in_foreground:
            self._context.items.append(Foreground(True))
        if self._watched:
            self._say_watched()
        self._ask_waiting()

    def lost(self) -> None:
        self._waiting = [*self._asked.values(), *self._waiting]
        self._asked.clear()
        self._watches.clear()
        self._told.clear()
        self._typed.clear()
        self._watch_at = None
        self._end_typing(list(self._typing))

    def resume(self, former: PresenceView) -> None:
        """Go on for a machine that broke: the app still wants what it wanted."""
        self._is_in_foreground, self._watched = former._is_in_foreground, former._watched
        self._waiting = [*former._asked.values(), *former._waiting]

    def _ask(self, question: Question) -> None:
        self._waiting = [*(waiting for waiting in self._waiting if waiting.is_awaited()), question]
        self._ask_waiting()

    @property
    def _unanswered(self) -> int:
        return sum(question.is_awaited() for question in self._asked.values())

    def _ask_waiting(self) -> None:
        while self._context.online and self._waiting and self._unanswered < ASKED_AT_ONCE:
            question = self._waiting.pop(0)
            if not question.is_awaited():
                continue
            if self._is_taken:
                self._ask_now(question)
            else:
                question.not_taken()

    def _ask_now(self, question: Question) -> None:
        ref = self._context.ask_item(question.item, lambda said: self._refused(ref, said))
        self._asked[ref] = question

    def _refused(self, ref: int, said: Said) -> None:
        if not isinstance(said, Refusal):
            raise Misbehaved("an answer to a question about presence that is none")
        question = self._asked.pop(ref)
        if isinstance(said, NotYet):
            question.not_taken()
        else:
            question.answered(PresenceRefused(said.sentence))
        self._ask_waiting()

    def _say_watched(self) -> None:
        self._watch_at = None
        if self._is_taken:
            ref = self._context.ask_item(partial(_watch, self._watched), lambda said: self._watch_refused(ref, said))
            self._watches[ref] = self._watched

    def _watch_refused(self, ref: int, said: Said) -> None:
        del self._watches[ref]
        if isinstance(said, Refusal) and said.retry:
            wait_ms = said.retry_ms if isinstance(said, RateLimited) else 0
            self._watch_at = self._context.now + max(WATCH_AGAIN_MS, wait_ms)

    # --- what the server says -------------------------------------------------------------------

    def take_seen(self, item: Seen) -> None:
        if (watched := self._watches.pop(item.ref, None)) is not None:
            self._context.forget_ref(item.ref)
            self._take_answer(watched, item)
            return
        if item.ref:
            self._answered(item.ref, item)
            return
        for person in item.people:
            # An account may change while the list that no longer names it is on its way.
            if person.account in self._watched:
                self._note(person)

    def take_shown_to(self, item: ShownTo) -> None:
        self._answered(item.ref, item)

    def _answered(self, ref: int, item: Seen | ShownTo) -> None:
        if (question := self._asked.get(ref)) is None:
            raise Misbehaved("an answer about presence that nobody asked for")
        # If this raises, because it is another answer than was asked for, the next connection asks again.
        question.answered(item)
        del self._asked[ref]
        self._context.forget_ref(ref)
        self._ask_waiting()

    def _take_answer(self, accounts: Sequence[int], said: Seen | ShownTo) -> dict[int, Sight]:
        if isinstance(said, ShownTo) or tuple(person.account for person in said.people) != tuple(accounts):
            raise Misbehaved("another answer than was asked for")
        return {person.account: self._note(person) for person in said.people}

    def _note(self, person: PersonSeen) -> Sight:
        account, sight = person.account, Sight(person.state, person.last_seen)
        before = self._told.pop(account, None)
        self._told[account] = Told(sight, self._context.now)
        if len(self._told) > REMEMBERED:
            del self._told[next(iter(self._told))]
        if account in self._watched and (before is None or before.sight != sight):
            self._context.tell(PresenceChanged(account, self._context.handle(account), sight))
        return sight

    def take_types(self, item: Types) -> None:
        who = item.by, item.group
        is_new = self._typing.pop(who, None) is None
        self._typing[who] = self._context.now + TYPING_SHOWN_MS
        if is_new:
            self._tell_typing(*who, is_typing=True)
        if len(self._typing) > REMEMBERED:
            self._end_typing([next(iter(self._typing))])

    def message_stored(self, message: Message) -> None:
        """What they were typing is here."""
        who = account_of(message.by), message.peer if is_group(message.peer) else NO_GROUP
        if not message.own and who in self._typing:
            self._end_typing([who])

    def _end_typing(self, ended: Iterable[tuple[int, int]]) -> None:
        for who in ended:
            del self._typing[who]
            self._tell_typing(*who, is_typing=False)

    def _tell_typing(self, account: int, group: int, *, is_typing: bool) -> None:
        self._context.tell(TypingChanged(account, self._context.handle(account), is_typing, group or None))

    # --- time -----------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        until = next(iter(self._typing.values()), None)
        return min((due for due in (until, self._watch_at) if due is not None), default=None)

    def tick(self) -> None:
        now = self._context.now
        self._end_typing([who for who, until in self._typing.items() if until <= now])
        if self._watch_at is not None and self._watch_at <= now:
            self._say_watched()


def _peek(accounts: tuple[int, ...], ref: int) -> FromDevice:
    return Peek(ref, accounts)


def _watch(accounts: tuple[int, ...], ref: int) -> FromDevice:
    return Watch(ref, accounts)


def _show_to(audience: Audience | None, ref: int) -> FromDevice:
    return ShowTo(ref, audience)
