from __future__ import annotations

from nightmail.engine.cluster.followed_log import FollowedLog
from nightmail.engine.cluster.ports import PLACE_UNKNOWN
from nightmail.engine.ports import Stored
from tests.engine.cluster.rig import HeldSharedLog

SHARD = 1


class Rig:
    def __init__(self, after: int = 0) -> None:
        self.shared = HeldSharedLog()
        self.events: list[str] = []
        self._after = after

    def follow(self) -> FollowedLog:
        return FollowedLog(
            self.shared, SHARD, self._after, lambda: self.events.append("batch"), lambda: self.events.append("trimmed")
        )

    def put(self, *records: bytes) -> None:
        self.shared.put(SHARD, 7, records)


def batches(log: FollowedLog, after: int) -> list[Stored]:
    return list(log.replay(after))


A, BC, D = Stored(1, 7, (b"a",)), Stored(2, 7, (b"b", b"c")), Stored(4, 7, (b"d",))


def with_batches() -> tuple[Rig, FollowedLog]:
    rig = Rig()
    rig.put(b"a")
    log = rig.follow()
    rig.put(b"b", b"c")
    rig.put(b"d")
    return rig, log


def test_what_others_append_is_read_and_replayed_from_memory() -> None:
    rig, log = with_batches()
    assert (log.last, rig.events, batches(log, 0)) == (4, ["batch"] * 3, [A, BC, D])
    assert [batches(log, after) for after in (1, 2, 3, 4)] == [[BC, D], [BC, D], [D], []]


def test_a_replay_shows_what_was_read_when_it_began() -> None:
    rig, log = with_batches()
    replay = log.replay(1)
    rig.put(b"e")
    log.trim(3, 0)
    assert list(replay) == [BC, D]


def test_a_batch_that_is_read_twice_counts_once() -> None:
    rig, log = with_batches()
    log.take(BC)
    assert (batches(log, 0), rig.events) == ([A, BC, D], ["batch"] * 3)


def test_trimming_lets_go_of_the_window_and_of_the_shared_log() -> None:
    rig, log = with_batches()
    log.trim(3, 0)
    assert (rig.shared.trimmed[SHARD], batches(log, 3)) == (3, [D])


def test_what_was_not_read_yet_is_not_trimmed_under_the_reader() -> None:
    rig, log = with_batches()
    rig.shared.pauses = True
    rig.put(b"e")
    log.trim(5, 0)  # It folded its own append, and saved it, before it came back from the log.
    assert rig.shared.trimmed[SHARD] == 4
    rig.shared.pauses = False
    rig.shared.read()
    assert (log.last, rig.events[3:]) == (5, ["batch"])


def test_after_the_log_was_trimmed_away_following_begins_again_where_the_replay_does() -> None:
    rig, log = with_batches()
    rig.shared.pauses = True
    for record in (b"e", b"f", b"g"):
        rig.put(record)
    rig.shared.pauses, rig.shared.trimmed[SHARD] = False, 6
    rig.shared.read()
    assert (rig.events[3:], log.last) == (["trimmed"], 4)
    assert (batches(log, 6), log.last) == ([Stored(7, 7, (b"g",))], 7)
    rig.put(b"h")
    assert log.last == 8


def test_a_replay_beyond_what_was_read_jumps_there() -> None:
    rig, log = with_batches()
    rig.shared.pauses = True
    rig.put(b"e")
    assert (batches(log, 5), log.last) == ([], 5)
    rig.put(b"f")
    rig.shared.pauses = False
    rig.shared.read()
    assert batches(log, 5) == [Stored(6, 7, (b"f",))]


def test_a_closed_log_hears_nothing_and_trims_nothing() -> None:
    rig, log = with_batches()
    rig.shared.holds = True
    answers: list[int | None] = []
    log.append(7, [b"e"], answers.append)
    log.close()
    rig.shared.succeed()
    log.take(Stored(5, 7, (b"e",)))
    log.trimmed_away()
    log.trim(4, 0)
    assert (answers, log.last, rig.events, rig.shared.trimmed[SHARD]) == ([], 4, ["batch"] * 3, 0)


def test_an_append_without_a_place_is_unknown_until_it_is_read() -> None:
    rig, log = with_batches()
    rig.shared.holds = True
    answers: list[int | None] = []
    log.append(7, [b"e"], answers.append)
    *_, done = rig.shared.held.pop()
    done(PLACE_UNKNOWN)
    rig.put(b"e")
    assert (answers, batches(log, 4)) == ([None], [Stored(5, 7, (b"e",))])


def test_batches_that_cover_more_numbers_than_they_have_records_follow_each_other() -> None:
    rig = Rig()
    log = rig.follow()
    one, two = Stored(1, 7, (b"a", b"b"), 100), Stored(101, 7, (b"c",), 100)
    log.take(one)
    log.take(two)
    assert (log.last, batches(log, 0), batches(log, 100)) == (200, [one, two], [two])
