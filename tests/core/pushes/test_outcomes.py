from __future__ import annotations

from nightmail.core.letters import pages as letter_pages
from nightmail.core.letters.seen import OriginalMessage, letter_seen, needs_letter
from nightmail.core.retries import CALLS_OUT, delay_ms
from nightmail.model.answers import Done
from nightmail.model.ids import SERVER
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.records import Acked, Discarded, PushOutcome, Record, Replayed, Unlinked
from nightmail.model.rows import Kept
from nightmail.model.words import Lane
from tests.core.push_world import PushWorld
from tests.core.world import Person

OK, AGAIN, NO = PushOutcome.DELIVERED, PushOutcome.FAILED, PushOutcome.REFUSED


def a_wake(world: PushWorld) -> tuple[Person, Person]:
    ada, bob = world.join("ada"), world.join("bob")
    world.set_token(bob[1])
    world.send(ada[1], bob)
    return ada, bob


def counts(world: PushWorld, person: Person) -> dict[str, int]:
    node = world.of(person.account)
    node.load(letter_pages.needs_counts)
    return letter_pages.counts(node.state)


def settle(world: PushWorld, bob: Person, body: Replayed | Discarded) -> None:
    """An operator says it to the shard of the letter."""
    world.effects = []
    world.fold(world.of(bob.account), Record(SERVER, 0, body))


def test_a_push_that_fails_is_tried_three_more_times_and_then_is_a_dead_letter(world: PushWorld) -> None:
    _, bob = a_wake(world)
    delays: list[int] = []
    for attempt in range(4):
        seen = world.push(bob[1])
        assert (seen.attempt, seen.is_due) == (attempt, True)
        assert world.end(seen, AGAIN, "http_503") == Done()
        if attempt < 3:
            delay = delay_ms(CALLS_OUT, f"{bob[1]:x} {seen.woke_at}", attempt + 1)
            assert delay is not None
            delays.append(delay)
            world.wait(delay - 50)
            assert world.woken() == []
            world.wait(100)
            assert world.woken() == [bob[1]]
    assert [delay // 1_000 for delay in delays] == [1, 2, 4]
    assert (counts(world, bob), world.shard(bob).dead) == ({"push http_503": 1}, 1)


def test_a_wake_that_is_given_up_is_pushed_again_when_its_repeat_is_due(world: PushWorld) -> None:
    _, bob = a_wake(world)
    world.end(world.push(bob[1]), NO, "http_400")
    world.wait(15 * 60_000 - 100)
    assert world.woken() == []
    world.wait(200)
    assert world.woken() == [bob[1]]
    assert world.texts(bob[1]) == ["hello"], "the letter concerns the wake only"


def test_one_device_has_one_letter_however_often_it_is_given_up(world: PushWorld) -> None:
    _, bob = a_wake(world)
    world.end(world.push(bob[1]), NO, "http_400")
    world.wait(15 * 60_000 + 100)
    world.end(world.push(bob[1]), NO, "http_403")
    assert counts(world, bob) == {"push http_400": 1}


def test_a_later_push_that_succeeds_settles_the_letter(world: PushWorld) -> None:
    _, bob = a_wake(world)
    world.end(world.push(bob[1]), NO, "http_400")
    target = world.target(bob[1])
    assert target is not None
    world.wait(15 * 60_000 + 100)
    world.end(world.push(bob[1]), OK)
    letter = world.of(bob.account).row(Kept.DEAD_LETTER, target.letter)
    assert (letter.status, world.shard(bob).dead) == (LetterStatus.DELIVERED, 0)


def test_an_operator_sees_whom_a_letter_was_to_wake_and_replays_it(world: PushWorld) -> None:
    _, bob = a_wake(world)
    world.end(world.push(bob[1]), NO, "http_400")
    target = world.target(bob[1])
    assert target is not None
    node = world.of(bob.account)
    node.load(lambda state: needs_letter(state, target.letter))
    seen = letter_seen(node.state, target.letter)
    assert seen is not None
    assert (seen.original, seen.is_replayable) == (OriginalMessage(recipient=bob.account), True)
    settle(world, bob, Replayed(target.letter))
    assert (world.woken(), world.push(bob[1]).is_due, world.shard(bob).dead) == ([bob[1]], True, 0)


def test_a_discarded_letter_wakes_nobody(world: PushWorld) -> None:
    _, bob = a_wake(world)
    world.end(world.push(bob[1]), NO, "http_400")
    target = world.target(bob[1])
    assert target is not None
    settle(world, bob, Discarded(target.letter))
    assert (world.woken(), world.push(bob[1]).is_due, world.shard(bob).dead) == ([], False, 0)


def test_what_a_provider_asks_for_is_waited_for(world: PushWorld) -> None:
    _, bob = a_wake(world)
    world.end(world.push(bob[1]), AGAIN, "http_429", retry_after_ms=90_000)
    world.wait(89_000)
    assert world.woken() == []
    world.wait(1_100)
    assert world.woken() == [bob[1]]


def test_no_provider_is_waited_for_longer_than_an_hour(world: PushWorld) -> None:
    _, bob = a_wake(world)
    world.end(world.push(bob[1]), AGAIN, "http_429", retry_after_ms=1 << 50)
    world.wait(3_600_100)
    assert world.woken() == [bob[1]]


def test_an_outcome_counts_once_and_only_for_its_wake(world: PushWorld) -> None:
    ada, bob = a_wake(world)
    first = world.push(bob[1])
    world.end(first, OK)
    counted = world.target(bob[1])
    world.end(first, OK)
    world.end(first, NO, "http_400")
    assert world.target(bob[1]) == counted
    world.do(bob[1], Acked(Lane.NORMAL, 1))
    world.send(ada[1], bob, 2)
    world.end(first, NO, "http_400")
    assert (world.target(bob[1]), counts(world, bob)) == (counted, {})
    assert world.push(bob[1]).is_due


def test_an_outcome_for_a_device_that_is_no_more_is_taken_and_does_nothing(world: PushWorld) -> None:
    _, bob = a_wake(world)
    seen = world.push(bob[1])
    world.do(SERVER, Unlinked(bob[1]))
    assert world.end(seen, NO, "http_400") == Done()
    assert counts(world, bob) == {}
