"""The log on files: what was answered is found again, whatever the disk does."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightmail.engine.filelog import FileLog
from nightmail.engine.filelog.files import OsFiles
from nightmail.engine.filelog.segment import SECTOR, name_of
from nightmail.engine.ports import Damaged, Log, Stored, Unwritable
from nightmail.engine.worker import Worker
from tests.engine.filelog.memoryfiles import MemoryFiles, PowerCut, everything, nothing
from tests.engine.filelog.rig import (
    HOUR,
    IDENTITY,
    SEGMENT,
    Steps,
    X,
    append,
    at_once,
    entropy,
    fail_sync,
    fail_write,
    found,
    heal,
    opened,
)

# --- the plain case ---------------------------------------------------------------------------


def test_a_new_log_is_empty() -> None:
    log = opened(MemoryFiles())
    assert (log.last, log.tight, found(log)) == (0, False, [])


def test_batches_are_replayed_as_they_were_appended() -> None:
    log = opened(MemoryFiles())
    assert append(log, b"a", b"b", at=5) == 1
    assert append(log, b"", at=6) == 3
    assert log.last == 3
    assert list(log.replay(0)) == [Stored(1, 5, [b"a", b"b"]), Stored(3, 6, [b""])]
    assert list(log.replay(1)) == [Stored(1, 5, [b"a", b"b"]), Stored(3, 6, [b""])]
    assert list(log.replay(2)) == [Stored(3, 6, [b""])]
    assert list(log.replay(3)) == []


def test_what_was_answered_survives_a_power_cut() -> None:
    files = MemoryFiles()
    log = opened(files)
    for n in range(20):
        append(log, b"%d" % n * 200)
    again = opened(files.after_power_cut(nothing))
    assert again.last == 20
    assert found(again) == [b"%d" % n * 200 for n in range(20)]


def test_a_reopened_log_goes_on_in_the_same_segment() -> None:
    files = MemoryFiles()
    append(opened(files), b"a")
    files = files.after_power_cut()
    assert append(opened(files), b"b") == 2
    assert files.names() == [name_of(1), name_of(2)]
    assert found(opened(files.after_power_cut())) == [b"a", b"b"]


def test_the_largest_batch_fits_and_fills_a_segment() -> None:
    files = MemoryFiles()
    log = opened(files)
    records = [b"r" * (log.batch_bytes_max - 4)] * 3
    assert [append(log, record) for record in records] == [1, 2, 3]
    assert found(opened(files.after_power_cut())) == records


def test_one_append_is_under_way_at_a_time() -> None:
    log = opened(MemoryFiles(), execute=Steps())
    log.append(1, [b"a"], lambda _: None)
    with pytest.raises(AssertionError):
        log.append(1, [b"b"], lambda _: None)


def test_nothing_is_answered_before_it_is_durable() -> None:
    files, steps, answers = MemoryFiles(), Steps(), list[int | None]()
    log = opened(files, execute=steps)
    log.append(1, [b"a"], answers.append)
    assert (answers, log.last) == ([], 0)
    steps.run()
    assert (answers, log.last) == ([1], 1)


def test_the_next_append_may_come_with_the_answer() -> None:
    log, answers = opened(MemoryFiles()), list[int | None]()

    def and_again(first: int | None) -> None:
        answers.append(first)
        if len(answers) < 9:
            log.append(1, [X], and_again)

    log.append(1, [X], and_again)
    assert answers == list(range(1, 10))


def test_a_closed_log_leaves_no_file_open() -> None:
    files = MemoryFiles()
    log = opened(files)
    for _ in range(5):
        append(log, X)
    assert len(list(log.replay(0))) == 5
    log.close()
    assert files.open_files == []


# --- writes that fail -------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [fail_write, fail_sync])
@pytest.mark.parametrize("keeps", [nothing, everything])
@pytest.mark.parametrize("written", [0, 20, 64, 300, 600])
def test_an_append_after_a_failed_one_is_never_confused_with_it(
    fault: Callable[[MemoryFiles], None], keeps: Callable[[str, int], bool], written: int
) -> None:
    files = MemoryFiles()
    files.written_of_a_failed_write = written
    log = opened(files)
    assert append(log, b"a") == 1
    fault(files)
    assert append(log, b"lost" * 200, b"lost too") is None
    heal(files)
    assert log.last == 1
    assert append(log, b"b") == 2
    assert found(log) == [b"a", b"b"]
    assert found(opened(files.after_power_cut(keeps))) == [b"a", b"b"]


@pytest.mark.parametrize("keeps", [nothing, everything])
def test_a_batch_of_unknown_outcome_is_found_for_good_or_not_at_all(keeps: Callable[[str, int], bool]) -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, b"a")
    fail_sync(files)
    assert append(log, b"?") is None
    files = files.after_power_cut(keeps)
    log = opened(files)
    expected = [b"a", b"?"] if keeps is everything else [b"a"]
    assert found(log) == expected
    append(log, b"b")
    assert found(opened(files.after_power_cut(nothing))) == [*expected, b"b"]


def test_what_was_read_from_memory_only_is_made_durable_before_it_is_served() -> None:
    """The process dies after a failed sync; the system still shows the bytes and calls them clean."""
    files = MemoryFiles()
    log = opened(files)
    append(log, b"a")
    fail_sync(files)
    append(log, b"?")
    files = files.after_kill()
    assert found(opened(files)) == [b"a", b"?"]
    assert found(opened(files.after_power_cut(nothing))) == [b"a", b"?"]


def test_a_spare_whose_header_was_in_memory_only_is_made_durable_before_it_is_used() -> None:
    files, steps = MemoryFiles(), Steps()
    append(opened(files), X)
    files = MemoryFiles({name_of(1): files.durable[name_of(1)]})
    log = opened(files, execute=steps)
    fail_sync(files)
    steps.run()
    assert log.tight
    files = files.after_kill()
    log = opened(files)
    assert [append(log, X) for _ in range(3)] == [2, 3, 4]
    assert found(opened(files.after_power_cut(nothing))) == [X] * 4


def test_a_log_whose_end_cannot_be_made_durable_is_not_served() -> None:
    files = MemoryFiles()
    append(opened(files), b"a")
    files = files.after_power_cut()
    fail_sync(files)
    with pytest.raises(Unwritable):
        opened(files)
    assert files.open_files == []


@pytest.mark.parametrize("outcomes", list(itertools.product((nothing, everything), repeat=3)))
def test_several_failures_in_a_row_leave_one_truth(outcomes: Sequence[Callable[[str, int], bool]]) -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, b"a")
    for _ in outcomes:
        files.syncs_fail = True
        assert append(log, b"lost" * 50) is None
        files.syncs_fail = False
        log.trim(0, 0)
    fates = dict(zip((name_of(1), name_of(2), name_of(3)), outcomes, strict=True))
    cut = files.after_power_cut(lambda name, sector: fates.get(name, nothing)(name, sector))
    once = found(opened(cut))
    assert once in ([b"a"], [b"a", b"lost" * 50])
    assert found(opened(cut.after_power_cut())) == once
    assert append(log, b"b") == 2
    assert found(opened(files.after_power_cut(everything))) == [b"a", b"b"]


def test_a_roll_that_fails_burns_only_the_spare() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, X)
    append(log, X)
    files.syncs_fail = True
    assert append(log, b"lost" * 300) is None
    files.syncs_fail = False
    assert append(log, b"b") == 3
    assert found(opened(files.after_power_cut(everything))) == [X, X, b"b"]


WEATHER = [
    *[(False, False, False, False)] * 3,
    (True, False, False, False),
    (False, True, False, False),
    (False, False, True, False),
    (False, True, True, True),
]
"""Do writes, syncs, creations and removals fail?"""


@given(st.data())
@settings(deadline=None)
def test_under_any_faults_and_power_cuts_what_was_answered_is_kept_in_order(data: st.DataObject) -> None:
    files, pointer, numbers = MemoryFiles(), 0, itertools.count()
    log = opened(files)
    kept: list[bytes] = []
    maybe: list[list[bytes]] = []
    for _ in range(data.draw(st.integers(1, 20))):
        files.writes_fail, files.syncs_fail, files.full, files.removals_fail = data.draw(st.sampled_from(WEATHER))
        files.written_of_a_failed_write = data.draw(st.integers(0, 3000))
        match data.draw(st.sampled_from(["append"] * 4 + ["trim", "cut"])):
            case "append":
                size = data.draw(st.sampled_from([1, 60, 500, 1500]))
                records = [(b"%d," % next(numbers) * size)[: 2 * size]]
                if append(log, *records, at=data.draw(st.sampled_from([1, HOUR + 1]))) is None:
                    maybe.append(records)
                else:
                    kept += records
                    maybe = []
            case "trim":
                pointer = data.draw(st.integers(pointer, log.last))
                log.trim(pointer, now=data.draw(st.sampled_from([1, HOUR * 3])))
            case _:
                dirty = files.unsettled()
                reached = set(data.draw(st.lists(st.sampled_from(dirty)))) if dirty else set[tuple[str, int]]()
                files = files.after_power_cut(lambda name, sector, reached=reached: (name, sector) in reached)
                log = opened(files, after=pointer)
                more = found(log, pointer)[-(log.last - pointer) :] if log.last > pointer else []
                assert log.last >= len(kept)
                extra = log.last - len(kept)
                if extra:
                    assert more[-extra:] in maybe
                    kept += more[-extra:]
                maybe = []
        assert log.last == len(kept)
        if log.last > pointer:
            assert found(log, pointer)[-(log.last - pointer) :] == kept[pointer:]


def a_life(files: MemoryFiles, answered: list[bytes], trimmed: list[int]) -> None:
    """Appends, rolls, failures and trims. `answered` and `trimmed` are what the world was told."""
    log = opened(files, after=trimmed[-1])
    for n, size in enumerate((10, 1500, 1500, 700, 1500)):
        record = b"%d" % (log.last + n) * size
        files.syncs_fail = n == 1
        if append(log, record, at=n * HOUR // 3) is not None:
            answered.append(record)
        files.syncs_fail = False
        if n % 2:
            trimmed.append(log.last)
            log.trim(log.last, now=n * HOUR)


@pytest.mark.parametrize(
    "keeps", [nothing, everything, lambda _, sector: sector % 2 == 0, lambda _, sector: sector % 2]
)
def test_a_power_cut_at_any_moment_loses_nothing_that_was_answered(keeps: Callable[[str, int], bool]) -> None:
    for moment in itertools.count(1):
        files, answered, trimmed = MemoryFiles(), list[bytes](), [0]
        files.moments_left = moment
        try:
            a_life(files, answered, trimmed)
        except PowerCut:
            pass
        else:
            break
        killed = files.after_kill()
        served = found(opened(killed, after=trimmed[-1]), trimmed[-1])
        assert served[: len(answered) - trimmed[-1]] == answered[trimmed[-1] :]
        assert found(opened(killed.after_power_cut(keeps), after=trimmed[-1]), trimmed[-1]) == served
        for again in range(1, 8):
            cut = files.after_power_cut(keeps)
            cut.moments_left = again
            with suppress(PowerCut):
                opened(cut, after=trimmed[-1])
            cut = cut.after_power_cut(keeps)
            log = opened(cut, after=trimmed[-1])
            assert len(answered) <= log.last <= len(answered) + 1
            above = found(log, trimmed[-1])
            assert above[: len(answered) - trimmed[-1]] == answered[trimmed[-1] :]
            assert append(log, b"next") == log.last
            assert found(opened(cut.after_power_cut(), after=trimmed[-1]), trimmed[-1]) == [*above, b"next"]


# --- disk full --------------------------------------------------------------------------------


def test_a_full_disk_makes_the_log_tight_while_appends_go_on() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, X)
    append(log, X)
    files.full = True
    assert append(log, X) == 3
    assert log.tight
    assert append(log, b"ack") == 4
    assert append(log, X) == 5
    assert append(log, X) is None
    assert append(log, b"ack") == 6
    heal(files)
    log.trim(0, 0)
    assert not log.tight
    assert append(log, X) == 7
    assert found(opened(files.after_power_cut())) == [X, X, X, b"ack", X, b"ack", X]


@pytest.mark.parametrize(
    ("number", "is_full", "why"),
    [
        (errno.ENOSPC, True, "the disk is full (ENOSPC)"),
        (errno.EDQUOT, True, "the disk quota is used up (EDQUOT)"),
        (errno.EIO, False, "the disk failed (EIO)"),
        (errno.EMFILE, False, "this process has no file descriptors left (EMFILE)"),
        (errno.EROFS, False, "the file system can only be read (EROFS)"),
    ],
)
def test_why_there_is_no_spare_is_said_as_it_is(number: int, is_full: bool, why: str) -> None:
    files = MemoryFiles()
    log = opened(files)
    files.full, files.shortage = True, number
    for _ in range(3):
        append(log, X)
    assert (log.tight, log.is_full, log.why_tight) == (True, is_full, why)


def test_a_failed_write_on_a_full_disk_is_got_over_when_there_is_room_again() -> None:
    files = MemoryFiles()
    log = opened(files)
    append(log, X)
    files.full = files.syncs_fail = True
    assert [append(log, b"lost") for _ in range(4)] == [None] * 4
    assert log.tight
    heal(files)
    assert append(log, b"b") == 2
    assert not log.tight
    assert found(opened(files.after_power_cut(everything))) == [X, b"b"]


def test_an_append_waits_for_the_spare_that_is_being_made() -> None:
    files, steps, answers = MemoryFiles(), Steps(), list[int | None]()
    log = opened(files, execute=steps)
    log.append(1, [X, X], answers.append)
    steps.jobs.pop()()
    steps.run()
    log.append(1, [X, X], answers.append)
    steps.jobs.popleft()()
    steps.jobs.popleft()()
    log.append(1, [X, X], answers.append)
    assert answers == [1, 3]
    assert not log.tight
    steps.run()
    assert answers == [1, 3, 5]


def test_a_log_that_cannot_begin_says_so() -> None:
    files = MemoryFiles()
    files.full = True
    with pytest.raises(Unwritable, match=r"the disk is full \(ENOSPC\)$"):
        opened(files)


def test_a_spare_left_half_made_is_made_again() -> None:
    files = MemoryFiles()
    append(opened(files), b"a")
    for size in (0, 100, SECTOR, SEGMENT):
        left = MemoryFiles({name_of(1): files.durable[name_of(1)], name_of(2): bytes(size)})
        log = opened(left)
        assert [append(log, X) for _ in range(3)] == [2, 3, 4]
        assert found(opened(left.after_power_cut())) == [b"a", X, X, X]


def test_a_segment_size_may_change_between_runs() -> None:
    files = MemoryFiles()
    append(opened(files), b"a")
    log = FileLog(files, IDENTITY, after=0, post=at_once, execute=at_once, entropy=entropy(), segment_bytes=2 * SEGMENT)
    large = b"y" * (log.batch_bytes_max - 4)
    assert append(log, large) == 2
    assert found(opened(files.after_power_cut())) == [b"a", large]


# --- a real disk, a real thread ---------------------------------------------------------------


class Loop:
    """What a loop does for a port: run on its own thread what others post."""

    def __init__(self) -> None:
        self.posted: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def append(self, log: Log, *records: bytes) -> int | None:
        answers: list[int | None] = []
        log.append(1, records, answers.append)
        while not answers:
            self.posted.get(timeout=60)()
        return answers[0]


def test_a_real_disk_keeps_it_all(tmp_path: Path) -> None:
    files, kept, last = OsFiles(tmp_path), list[bytes](), 0
    for run in range(4):
        loop = Loop()
        writer = Worker(loop.posted.put)
        log = FileLog(files, IDENTITY, after=0, post=loop.posted.put, execute=writer, segment_bytes=SEGMENT)
        assert (log.last, found(log)) == (last, kept)
        for n in range(7):
            batch = [b"%d.%d" % (run, n) * 300, b""]
            assert loop.append(log, *batch) == last + 1
            kept += batch
            last += 2
        log.close()
        writer.close()


def test_a_flipped_bit_on_a_real_disk_is_refused(tmp_path: Path) -> None:
    append(opened(OsFiles(tmp_path)), b"a" * 100)
    path = tmp_path / name_of(1)
    data = bytearray(path.read_bytes())
    data[600] ^= 1
    path.write_bytes(data)
    with pytest.raises(Damaged, match=r"log-00000001\.seg is damaged at byte 512: all its offsets are unreadable"):
        opened(OsFiles(tmp_path))
    assert path.read_bytes() == data


def test_a_mistake_in_a_job_is_raised_where_the_loop_sees_it() -> None:
    loop = Loop()
    writer = Worker(loop.posted.put)
    writer(lambda: {}["a mistake"])
    writer.close()
    with pytest.raises(KeyError):
        loop.posted.get(timeout=60)()
