"""Transcripts: a story in plain sentences, told to the fold and compared line by line.

One sentence per line; `#` starts a remark. A line that starts with `→` is the answer to the one
above it. A yes may go unmentioned, a no may not.

    alice has 2 devices                         mailboxes hold 3 entries
    alice.1 sends bob "hi" n=1                  … high · … lasting 30 s · … sealed for bob.1 · … copied for alice.2
    alice.1 sends bob "hi" n=2 again of 1 …     a re-seal of message 1
    alice.1 repeats                             the last send, byte for byte
    alice.1 gives up bob n=2
    bob.1 finds normal "hi", gap 2-3 expired    all that waits in that lane (or: nothing)
    bob.1 acks normal 3                         … but not 1, 2
    bob.1 reads alice.1 normal 1-2
    alice.1 hears delivered 1-2 on bob.1        all receipts since it last heard (or: nothing)
    bob.1 publishes keys 2-6, KEM keys 2-4      → stocked 5 and 3
    alice.1 claims keys of bob.1, request 7     → keys 2 and KEM 2 (or: no key and the last resort 1)
    bob.1 hears that its keys are low           that record said so
    bob links a device · bob.1 removes bob.2 · bob.1 closes · bob returns · … verified · … with PIN 1234
    bob.1 locks with PIN 1234 · bob.1 unlocks
    bob.1 blocks alice · bob.1 unblocks alice · bob.1 hides reading
    31 days pass                                s, minutes, days
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from nightmail.model import refusals
from nightmail.model.answers import (
    Accepted,
    Bundle,
    Done,
    GroupAccepted,
    GroupHead,
    Joined,
    Said,
    SchedulesFound,
    ScheduleTaken,
    Settled,
    Stocked,
)
from nightmail.model.effects import Low
from nightmail.model.forms import LAST_RESORT, kem_id, key_id
from nightmail.model.ids import SERVER, account_id, account_of, index_of
from nightmail.model.records import (
    Acked,
    Blocked,
    Claimed,
    Closed,
    PinSet,
    Read,
    ReceiptsAcked,
    ReceiptsSet,
    Registered,
    Sent,
    Span,
    Unlinked,
    Voided,
)
from nightmail.model.rows import PendingReceipt
from nightmail.model.spans import pairs
from nightmail.model.words import Lane, Platform, Reason
from tests.core.world import Person, World, name_of, published, sealed

UNITS = {"s": 1_000, "second": 1_000, "minute": 60_000, "day": 86_400_000}
SENTENCES: list[tuple[re.Pattern[str], Callable[..., Any]]] = []


def sentence(pattern: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    for sign, meaning in (("DEVICE", r"(\w+\.\d+)"), ("WHO", r"(\w+)"), ("N", r"(\d+)"), ("LANE", "(normal|high)")):
        pattern = re.sub(rf"\b{sign}\b", lambda _, meaning=meaning: meaning, pattern)

    def kept(told: Callable[..., Any]) -> Callable[..., Any]:
        SENTENCES.append((re.compile(pattern), told))
        return told

    return kept


def same(got: str, told: str) -> None:
    assert got == told, f"it was: {got}"


class Story:
    def __init__(self, world: World) -> None:
        self.world = world
        self.people: dict[str, Person] = {}
        self.sent: dict[int, Sent] = {}
        self.heard: dict[int, int] = {}
        self.first: dict[str, Accepted] = {}
        """What was said to each message when it was accepted."""
        self.answer = ""
        self.answered = True
        """Whether the last answer needs no mention any more."""

    def tell(self, text: str) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            line = line.partition("#")[0].strip()
            if not line:
                continue
            try:
                self._line(line)
            except AssertionError as error:
                raise AssertionError(f"line {number}: {line}\n{error}") from error
        assert self.answered, f"nobody mentions the last answer: {self.answer}"

    def _line(self, line: str) -> None:
        if line.startswith("→"):
            same(self.answer, line.removeprefix("→").strip())
            self.answered = True
            return
        assert self.answered, f"nobody mentions the answer before: {self.answer}"
        for pattern, told in SENTENCES:
            if match := pattern.fullmatch(line):
                told(self, *match.groups())
                return
        raise AssertionError("this sentence means nothing")

    def do(self, by: int, body: Any) -> Said | None:
        said = self.world.do(by, body)
        self.answer = self.say(said)
        self.answered = isinstance(said, Accepted | Done | Joined | None)
        if isinstance(said, Accepted):
            self.first.setdefault(said.id, said)
        return said

    def device(self, name: str) -> int:
        person, _, index = name.partition(".")
        return self.people[person][int(index)]

    def name(self, device: int) -> str:
        (handle,) = (each.handle for each in self.people.values() if each.account == account_of(device))
        return f"{handle}.{index_of(device)}"

    def say(self, said: Said | None) -> str:
        """An answer in words."""
        match said:
            case Accepted() if self.first.get(said.id) == said:
                return "the same answer"
            case Accepted(tag=b""):
                return "given up"
            case Accepted() | Settled() | Done() | GroupAccepted() | GroupHead():
                return type(said).__name__.lower()
            case Stocked():
                return f"stocked {said.one_time} and {said.one_time_kem}"
            case Bundle():
                kem = f"{'the last resort' if said.kem[0] == LAST_RESORT else 'KEM'} {kem_id(said.kem)}"
                return f"{f'key {key_id(said.one_time)}' if said.one_time else 'no key'} and {kem}"
            case Joined():
                return f"joined as {self.name(said.device)}"
            case ScheduleTaken():
                return f"scheduled as {said.serial}"
            case SchedulesFound():
                return ", ".join(f"{each.serial} is {each.state.name.lower()}" for each in said.schedules)
            case refusals.StaleDevices(_, missing, extra, rekeyed):
                found = {"missing": missing, "extra": extra, "with new keys": rekeyed}
                parts = [f"{what} {', '.join(map(self.name, which))}" for what, which in found.items() if which]
                return f"stale list: {'; '.join(parts)}"
            case None:
                return "nothing"
            case _:
                return said.sentence

    def receipt(self, change: PendingReceipt) -> str:
        spans = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in pairs(change.numbers))
        lane = " high" if change.key[2] == Lane.HIGH else ""
        why = f": {change.reason.name.lower().replace('_', ' ')}" if change.reason != Reason.NONE else ""
        return f"{change.state.name.lower()}{lane} {spans} on {self.name(change.key[3])}{why}"


# --- people -----------------------------------------------------------------------------------


@sentence("WHO has N devices?")
def _(story: Story, handle: str, count: str) -> None:
    story.people[handle] = story.world.join(handle, int(count))


@sentence("mailboxes hold N entries")
def _(story: Story, entries: str) -> None:
    story.world.limit(mailbox_entries=int(entries))


@sentence("WHO links a device")
def _(story: Story, handle: str) -> None:
    story.world.link(story.people[handle])


@sentence(r"WHO returns( verified)?(?: with PIN N)?")
def _(story: Story, handle: str, verified: str | None, pin: str | None) -> None:
    person = story.people[handle]
    index = len(person.devices) + 1
    token = f"token {index}".encode()
    new = Registered(
        account_id(handle), handle, 100 + index, token, "phone", Platform.CLI, bool(verified), (pin or "").encode()
    )
    joined = story.do(SERVER, new)
    if isinstance(joined, Joined):
        person.devices[index_of(joined.device)] = joined.device
        story.answer = story.say(joined)


@sentence(r"DEVICE (?:locks with PIN N|unlocks)")
def _(story: Story, by: str, pin: str | None) -> None:
    device = story.device(by)
    story.do(device, PinSet(account_of(device), b"salt" if pin else b"", (pin or "").encode()))


@sentence(r"DEVICE (removes|closes|blocks|unblocks|hides reading)(?: (.+))?")
def _(story: Story, by: str, verb: str, whom: str | None) -> None:
    device = story.device(by)
    own = account_of(device)
    match verb:
        case "removes":
            story.do(device, Unlinked(story.device(whom or by)))
        case "closes":
            story.do(device, Closed(own))
        case "hides reading":
            story.do(device, ReceiptsSet(own, False))
        case _:
            story.do(device, Blocked(own, story.people[whom or ""].account, verb == "blocks"))


@sentence("N (s|second|minute|day)s? pass(?:es)?")
def _(story: Story, count: str, unit: str) -> None:
    story.world.wait(int(count) * UNITS[unit])


# --- keys -------------------------------------------------------------------------------------


@sentence("DEVICE publishes keys N-N, KEM keys N-N(?: as (.+))?")
def _(story: Story, by: str, low: str, high: str, low_kem: str, high_kem: str, identity: str | None) -> None:
    ids, kem_ids = range(int(low), int(high) + 1), range(int(low_kem), int(high_kem) + 1)
    device = story.device(by)
    story.do(device, published(device, ids, kem_ids, identity=identity or "itself"))


@sentence("DEVICE claims keys of DEVICE, request N")
def _(story: Story, by: str, of: str, request: str) -> None:
    story.do(story.device(by), Claimed(story.device(of), int(request)))


@sentence("DEVICE hears that its keys are low")
def _(story: Story, who: str) -> None:
    assert Low(story.device(who)) in story.world.effects, story.world.effects


# --- messages ---------------------------------------------------------------------------------


@sentence(
    r'DEVICE sends WHO "(.*)" n=N( high)?(?: lasting N s)?(?: again of N)?(?: sealed for (.+?))?(?: copied for (.+))?'
)
def _(story: Story, by: str, to: str, text: str, n: str, *special: str | None) -> None:
    high, life, of, sealed_for, copied_for = special
    device = story.device(by)
    lane = Lane.HIGH if high else Lane.NORMAL
    rest: dict[str, Any] = {}
    if of:
        rest |= {"of": name_of(device, int(of), lane), "own_envelopes": ()}
    if sealed_for:
        rest["envelopes"] = tuple(sealed(story.device(each), text) for each in sealed_for.split(", "))
    if copied_for:
        rest["own_envelopes"] = tuple(sealed(story.device(each), text) for each in copied_for.split(", "))
    body = story.world.sent(
        device, story.people[to], int(n), text=text, lane=lane, life_ms=int(life or 0) * 1_000, **rest
    )  # fmt: skip
    story.sent[device] = body
    story.do(device, body)


@sentence("DEVICE repeats")
def _(story: Story, by: str) -> None:
    story.do(story.device(by), story.sent[story.device(by)])


@sentence("DEVICE gives up WHO n=N")
def _(story: Story, by: str, to: str, n: str) -> None:
    device = story.device(by)
    story.do(device, Voided(story.people[to].account, Lane.NORMAL, int(n), 1, name_of(device, int(n))))


@sentence("DEVICE finds LANE (.+)")
def _(story: Story, who: str, lane: str, what: str) -> None:
    found = story.world.texts(story.device(who), Lane[lane.upper()])
    said = [each if each.startswith("gap ") else f'"{each}"' for each in found]
    same(", ".join(said) or "nothing", what)


@sentence("DEVICE acks LANE N(?: but not (.+))?")
def _(story: Story, by: str, lane: str, upto: str, unreadable: str | None) -> None:
    failed = tuple(map(int, unreadable.split(", "))) if unreadable else ()
    story.do(story.device(by), Acked(Lane[lane.upper()], int(upto), failed))


@sentence("DEVICE reads DEVICE LANE N(?:-N)?")
def _(story: Story, by: str, whose: str, lane: str, low: str, high: str | None) -> None:
    peer = story.device(whose)
    span = Span(peer, Lane[lane.upper()], int(low), int(high or low))
    story.do(story.device(by), Read(account_of(peer), (span,)))


@sentence("DEVICE hears (.+)")
def _(story: Story, who: str, what: str) -> None:
    device = story.device(who)
    new = story.world.receipts(device, after=story.heard.get(device, 0))
    same("; ".join(map(story.receipt, new)) or "nothing", what)
    if new:
        story.heard[device] = new[-1].seq
        story.do(device, ReceiptsAcked(new[-1].seq))
