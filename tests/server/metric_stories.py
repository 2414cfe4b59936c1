"""What moves each metric, as stories on a real node, over real sockets."""

from __future__ import annotations

import errno
import http.client
import os
import resource
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from nightmail.core.receipts import Verdicts
from nightmail.core.step import FOLDS
from nightmail.engine.ports import EngineError
from nightmail.engine.sqlite.presence_file import PresenceFile
from nightmail.model.effects import Call
from nightmail.model.records import (
    Acked,
    Blocked,
    Claimed,
    Known,
    Linked,
    Published,
    PushSet,
    Sent,
    Unlinked,
)
from nightmail.model.words import Lane, Platform, PushPlatform
from nightmail.outlets.link import SOCKET_NAME
from nightmail.server.heart import clock
from nightmail.server.observe import LogWatcher
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import (
    PATH,
    VERSION,
    Foreground,
    GroupLog,
    GroupLook,
    Hello,
    LogFetch,
    Peek,
    Ping,
    Typing,
    Watch,
)
from tests.outlets.hook import answering
from tests.server.group_story import GROUP, make_group, write_to_group
from tests.server.media_stories import (
    end_a_blob,
    fail_to_look_for_bytes,
    leave_bytes_behind,
    look_for_bytes,
    upload_slowly,
)
from tests.server.rig import WAIT_S, Person, message
from tests.server.stage import SCRAPES_MAX, Stage, ask, received, scraped, wait_for_end

Story = Callable[[Stage], None]


class Told(NamedTuple):
    """A story, and the metrics that it moves."""

    story: Story
    metrics: tuple[str, ...]
    settings: dict[str, Any] = {}  # noqa: RUF012 (never written)


# --- stories ------------------------------------------------------------------------------------


def write_and_read(on: Stage) -> None:
    bob = on.stays(on.bob)
    with on.online(on.ada) as ada:
        ask(ada, message(on.ada, on.bob, 1))
        ask(ada, message(on.ada, on.bob, 1))
    bob.recv(WAIT_S)
    ask(bob, Acked(Lane.NORMAL, 1))


def leave_something(on: Stage) -> None:
    on.town.say(on.ada.device, message(on.ada, on.bob, 1))


def write_what_cannot_be_read(on: Stage) -> None:
    leave_something(on)
    on.town.say(on.bob.device, Acked(Lane.NORMAL, 1, (1,)))


def write_to_somebody_who_blocks(on: Stage) -> None:
    on.town.say(on.bob.device, Blocked(on.bob.account, on.ada.account, True))
    leave_something(on)


def lose_something(on: Stage) -> None:
    """A device goes, and nobody hears what became of its mail."""
    leave_something(on)
    on.patch.setattr(Verdicts, "tell", lambda *_: None)
    on.town.say(on.bob.device, Unlinked(on.bob.device))


def take_a_checkpoint(on: Stage) -> None:
    leave_something(on)
    on.town.run(lambda: on.town.node.heart.loop.save(at_once=True))


def publish_few_keys(on: Stage) -> None:
    key = b"\1" * 32
    on.town.say(on.bob.device, Published(7, key, b"\0\0\0\1" + key, b"\0\0\0\1" + key, (b"\0\0\0\1" + key,), ()))


def fall_over_a_record(on: Stage) -> None:
    def mistake(*_: object) -> None:
        raise ValueError("planted")

    for fold in FOLDS.values():
        on.patch.setitem(fold, Sent, (fold[Sent][0], mistake))  # pyright: ignore[reportArgumentType]
    leave_something(on)


def fail_to_write(on: Stage) -> None:
    """The disk is full: a batch fails, the next one takes the spare segment, and no other can be made."""
    pwrite = os.pwrite

    def full(*_: object) -> int:
        on.patch.setattr(os, "pwrite", pwrite)
        raise OSError(errno.ENOSPC, "planted")

    on.patch.setattr(os, "pwrite", full)
    on.patch.setattr(os, "posix_fallocate", full)
    leave_something(on)
    leave_something(on)


def fail_to_save(on: Stage) -> None:
    """Told as the saver tells it after its last retry, which takes seconds."""
    on.town.run(lambda: LogWatcher(on.town.node.figures, clock).on_trouble("planted"))


def put_the_clock_ahead(on: Stage) -> None:
    on.patch.setattr("time.time_ns", lambda: int(datetime.now(UTC).timestamp() + 120) * 1_000_000_000)


def press(on: Stage) -> None:
    on.town.run(lambda: on.town.node.gateway.press(lag_ms=51, commit_ms=0))


def stay_connected(on: Stage) -> None:
    on.stays(on.ada)


def ask_slowly(on: Stage) -> None:
    connection = socket.create_connection(("127.0.0.1", on.town.port))
    on.until_read.callback(connection.close)
    connection.sendall(
        b"POST /v1/accounts HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    )


def ask_over_http(on: Stage) -> None:
    assert on.town.get("/healthz").status == http.client.OK


def ask_often(on: Stage) -> None:
    while on.town.get("/healthz").status == http.client.OK:
        pass


def use_the_machine(on: Stage) -> None:
    on.until_read.callback(bytearray(b"\1" * (64 << 20)).clear)
    on.until_read.enter_context((on.town.node.heart.folder / "other").open("wb")).write(bytes(8 << 20))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    on.until_read.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))


def connect_twice(on: Stage) -> None:
    on.stays(on.ada)
    on.stays(on.ada)


def claim_twice(on: Stage) -> None:
    with on.online(on.ada) as ada:
        ask(ada, Claimed(on.bob.device, 1), Claimed(on.bob.device, 2))


def link_twice(on: Stage) -> None:
    with on.online(on.ada) as ada:
        ask(ada, *(Linked(on.ada.account, 7, bytes([n]) * 32, "tablet", Platform.CLI) for n in (1, 2)))


def send_two(on: Stage) -> None:
    with on.online(on.ada) as ada:
        ask(ada, message(on.ada, on.bob, 1), message(on.ada, on.bob, 2))


def send_twice(on: Stage) -> None:
    with on.online(on.ada) as ada:
        ask(ada, *[message(on.ada, on.bob)] * 2)


def send_garbage(on: Stage) -> None:
    with on.online(on.ada) as ada:
        ada.send(b"\xff")
        wait_for_end(ada)


def send_much(on: Stage) -> None:
    with on.online(on.ada) as ada:
        ada.send(encode([Ping(1), Ping(2)]))
        wait_for_end(ada)


def guess_a_token(on: Stage) -> None:
    with on.opened() as opened:
        opened.send(encode([Hello(VERSION, on.ada.device, b"a guess", 0, 0, 0)]))
        wait_for_end(opened)


def knock_twice(on: Stage) -> None:
    with on.opened():
        # On a slow machine the second one may be due already.
        while on.town.get(PATH).status != http.client.SERVICE_UNAVAILABLE:
            pass


def stand_there_twice(on: Stage) -> None:
    with on.opened() as first, on.opened():
        wait_for_end(first)


def acknowledge_nothing(on: Stage) -> None:
    on.stays(on.bob)
    leave_something(on)


def see_each_other_and_type(on: Stage) -> None:
    for person, other in ((on.ada, on.bob), (on.bob, on.ada)):
        on.town.say(person.device, Known(person.account, other.account, True))
    bob, ada = on.stays(on.bob), on.stays(on.ada)
    bob.send(encode([Foreground(True), Watch(1, (on.ada.account,))]))
    bob.recv(WAIT_S)
    ada.send(encode([Foreground(True), Typing(on.bob.account), Typing(on.bob.account)]))
    bob.recv(WAIT_S)


def ask_for_many_people(on: Stage) -> None:
    on.stays(on.ada).send(encode([Peek(ref, tuple(range(1, 101))) for ref in (1, 2)]))


def fail_to_store_last_seen(on: Stage) -> None:
    def fails(*_: object) -> None:
        raise EngineError("planted")

    on.patch.setattr(PresenceFile, "put_last_seen", fails)
    on.stays(on.ada).send(encode([Foreground(True)]))


def call(on: Stage, serial: int, url: str, attempt: int = 1) -> None:
    """Have a webhook called, as the fold would."""
    calls, body = on.town.node.calls, b"{}"
    assert calls is not None
    asked = Call(on.ada.account, serial, attempt, f"id-{serial}", url, "application/json", body)
    on.town.run(lambda: calls.on_call(asked))


def call_somebody_who_refuses(on: Stage) -> None:
    hook = on.until_read.enter_context(answering(404))
    call(on, 1, hook.url, attempt=2)


def call_somebody_who_hangs(on: Stage) -> None:
    silent = on.until_read.enter_context(socket.create_server(("127.0.0.1", 0)))
    for serial in (1, 2, 3):
        call(on, serial, f"http://127.0.0.1:{silent.getsockname()[1]}/")


def connect_an_outlet(on: Stage) -> None:
    line = on.until_read.enter_context(socket.socket(socket.AF_UNIX))
    line.connect(str(on.town.node.heart.folder / SOCKET_NAME))


def woken_by(on: Stage, who: Person, url: str) -> None:
    with on.online(who) as opened:
        ask(opened, PushSet(PushPlatform.UNIFIEDPUSH, url))


def wake_somebody(on: Stage) -> None:
    hook = on.until_read.enter_context(answering(200))
    woken_by(on, on.bob, hook.url)
    with on.online(on.ada) as ada:
        ask(ada, message(on.ada, on.bob, 1))
    pushes = on.town.node.pushes
    assert pushes is not None
    for _ in range(SCRAPES_MAX):
        if pushes.waker.outcomes:
            break
        scraped(on.town)
    on.stays(on.bob)


def push_to_an_address_that_is_gone(on: Stage) -> None:
    hook = on.until_read.enter_context(answering(410))
    woken_by(on, on.bob, hook.url)
    with on.online(on.ada) as ada:
        ask(ada, message(on.ada, on.bob, 1))


def push_to_somebody_who_hangs(on: Stage) -> None:
    silent = on.until_read.enter_context(socket.create_server(("127.0.0.1", 0)))
    woken_by(on, on.bob, f"http://127.0.0.1:{silent.getsockname()[1]}/")
    with on.online(on.ada) as ada:
        ask(ada, message(on.ada, on.bob, 1))


def wake_two_in_the_grace_time(on: Stage) -> None:
    for who, other in ((on.ada, on.bob), (on.bob, on.ada)):
        woken_by(on, who, "https://push.example/")
        with on.online(other) as opened:
            ask(opened, message(other, who, 1))


def talk_in_a_large_group(on: Stage) -> None:
    make_group(on.town, on.ada, on.bob)
    for who in (on.bob, on.ada):
        opened = on.stays(who)
        opened.send(encode([LogFetch(1, GROUP, 0, True)]))
        while not any(isinstance(item, GroupLog) for item in decode_from_server(received(opened))):
            pass
    write_to_group(on.town, on.ada)


def ask_about_many_groups(on: Stage) -> None:
    on.stays(on.ada).send(encode([GroupLook(ref, GROUP, 0) for ref in range(1, 100)]))


WAKES = {"push__unifiedpush": True, "push__grace_ms": 1, "schedule__private_networks": "127.0.0.1"}

TOLD = {
    told.story.__name__: told
    for told in (
        Told(
            write_and_read,
            (
                "nightmail_messages_accepted_total", "nightmail_messages_repeated_total",
                "nightmail_entries_filed_total", "nightmail_entries_delivered_total", "nightmail_delivery_seconds",
                "nightmail_records_total", "nightmail_commit_seconds", "nightmail_loop_lag_seconds",
                "nightmail_gateway_bytes_in_total", "nightmail_gateway_bytes_out_total",
                "nightmail_gateway_closed_total", "nightmail_gateway_connected_total",
                "nightmail_gateway_drained_total", "nightmail_gateway_frames_in_total",
                "nightmail_gateway_frames_out_total", "nightmail_gateway_submitted_total", "nightmail_clock_seconds",
                "process_cpu_seconds_total",
            ),
        ),
        Told(
            leave_something,
            (
                "nightmail_entries_owed", "nightmail_entries_waiting", "nightmail_account_depth",
                "nightmail_mailbox_depth", "nightmail_mailbox_fill_ratio", "nightmail_devices_nearly_full",
                "nightmail_unsaved_rows", "nightmail_unsaved_bytes",
                "nightmail_unsaved_records", "nightmail_rows_in_memory",
            ),
            {"limits__mailbox_entries": 1},
        ),
        Told(write_what_cannot_be_read, ("nightmail_entries_failed_total",)),
        Told(write_to_somebody_who_blocks, ("nightmail_messages_blocked_total", "nightmail_entries_withheld_total")),
        Told(lose_something, ("nightmail_entries_lost",)),
        Told(send_twice, ("nightmail_messages_repeated_from_log_total",)),
        Told(
            take_a_checkpoint,
            (
                "nightmail_checkpoints_total", "nightmail_checkpoint_rows_total",
                "nightmail_checkpoint_entries_total", "nightmail_checkpoint_duration_seconds",
                "nightmail_checkpoint_age_seconds", "nightmail_rows_bytes",
            ),
        ),
        Told(publish_few_keys, ("nightmail_devices_low_prekeys", "nightmail_devices_exhausted_prekeys")),
        Told(
            fall_over_a_record,
            (
                "nightmail_records_poisoned_total", "nightmail_dead_letters", "nightmail_dead_letters_by_error",
                "nightmail_entries_buried",
            ),
        ),
        Told(
            call_somebody_who_refuses,
            ("nightmail_webhook_calls_total", "nightmail_webhook_retries_total", "nightmail_webhook_errors_total"),
            {"schedule__private_networks": "127.0.0.1"},
        ),
        Told(
            call_somebody_who_hangs,
            (
                "nightmail_webhook_calls_busy", "nightmail_webhook_calls_waiting",
                "nightmail_webhook_calls_put_off_total",
            ),
            {"schedule__private_networks": "127.0.0.1", "outlet__waiting_calls": 2},
        ),
        Told(
            wake_somebody,
            ("nightmail_pushes_total", "nightmail_devices_woken_total", "nightmail_messages_woken_total"),
            WAKES,
        ),
        Told(push_to_an_address_that_is_gone, ("nightmail_push_errors_total",), WAKES),
        Told(push_to_somebody_who_hangs, ("nightmail_pushes_busy",), WAKES),
        Told(
            wake_two_in_the_grace_time,
            ("nightmail_pushes_waiting", "nightmail_pushes_put_off_total"),
            {**WAKES, "push__grace_ms": 600_000, "push__waiting": 1},
        ),
        Told(upload_slowly, ("nightmail_blob_streams",)),
        Told(end_a_blob, ("nightmail_blobs_removed_total",)),
        Told(leave_bytes_behind, ("nightmail_blobs_swept_total",), {"media__sweep_ms": 1}),
        Told(look_for_bytes, ("nightmail_blobs_lost_total",)),
        Told(fail_to_look_for_bytes, ("nightmail_blob_failures_total",)),
        Told(connect_an_outlet, ("nightmail_outlets",), {"outlet__runs_in": "processes"}),
        Told(fail_to_write, ("nightmail_commits_failed_total", "nightmail_disk_tight", "nightmail_ready")),
        Told(fail_to_save, ("nightmail_storage_troubles_total",)),
        Told(put_the_clock_ahead, ("nightmail_clock_leaps_total", "nightmail_clock_ahead_seconds")),
        Told(
            see_each_other_and_type,
            (
                "nightmail_accounts_online", "nightmail_accounts_watched", "nightmail_gateway_presence_told_total",
                "nightmail_gateway_typing_passed_total", "nightmail_gateway_typing_limited_total",
            ),
        ),
        Told(ask_for_many_people, ("nightmail_gateway_presence_limited_total",), {"presence__asks_burst": 100}),
        Told(fail_to_store_last_seen, ("nightmail_presence_saves_failed_total",), {"presence__save_ms": 1}),
        Told(
            talk_in_a_large_group,
            (
                "nightmail_group_messages_total", "nightmail_groups_attended", "nightmail_gateway_groups_asked_total",
                "nightmail_gateway_group_entries_pushed_total", "nightmail_gateway_group_heads_told_total",
            ),
            {"limits__group_write_members": 1},
        ),
        Told(ask_about_many_groups, ("nightmail_gateway_groups_limited_total",)),
        Told(press, ("nightmail_pressed",)),
        Told(stay_connected, ("nightmail_connections", "nightmail_devices_online", "process_open_fds")),
        Told(ask_slowly, ("nightmail_http_connections",)),
        Told(ask_over_http, ("nightmail_http_requests_total",)),
        Told(
            use_the_machine, ("process_resident_memory_bytes", "process_max_fds", "nightmail_disk_free_bytes")
        ),
        Told(connect_twice, ("nightmail_gateway_displaced_total",)),
        Told(claim_twice, ("nightmail_gateway_claims_limited_total",), {"gateway__claims_per_minute": 1}),
        Told(link_twice, ("nightmail_gateway_links_limited_total",), {"gateway__links_per_minute": 1}),
        Told(send_two, ("nightmail_gateway_rate_limited_total",), {"gateway__sends_burst": 1}),
        Told(send_garbage, ("nightmail_gateway_malformed_total",)),
        Told(send_much, ("nightmail_gateway_too_fast_total",), {"gateway__items_burst": 1}),
        Told(guess_a_token, ("nightmail_gateway_unauthorized_total",)),
        Told(
            knock_twice,
            ("nightmail_gateway_not_admitted_total",),
            {"gateway__connects_burst": 1, "gateway__connects_per_s": 1},
        ),
        Told(
            ask_often, ("nightmail_gateway_requests_limited_total",),
            {"gateway__address_requests_burst": 3, "gateway__address_requests_per_s": 1},
        ),
        Told(stand_there_twice, ("nightmail_gateway_strangers_dropped_total",), {"gateway__strangers": 1}),
        Told(acknowledge_nothing, ("nightmail_gateway_repeated_total", "nightmail_gateway_suspected_total")),
    )
}  # fmt: skip
