"""docs/protocol.md against the code: what it shows is what goes over the wire, and nothing is missing from it."""

from __future__ import annotations

import hashlib
import re
from enum import IntEnum
from typing import Any, NamedTuple, get_args

import pytest
from msgspec import Struct

from nightmail.client.messages import conversation_id
from nightmail.engine.presence import PresenceSettings
from nightmail.gateway.budgets import LOW_COST
from nightmail.gateway.group_limits import GroupLimits
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.presence_limits import PresenceLimits
from nightmail.model import (
    answers,
    forms,
    group_rows,
    ids,
    limits,
    records,
    refusals,
    roster,
    rows,
    schedule_rows,
    words,
)
from nightmail.wire import closing, items
from nightmail.wire.frames import decode_from_device, decode_from_server, decode_hello, encode
from nightmail.wire.items import FromDevice, FromServer, Hello, Item, SaidByDevices
from tests.wire.protocol_page import PAGE, table

NAMES: dict[str, Any] = {
    name: value
    for module in (answers, records, refusals, rows, group_rows, schedule_rows, roster, words, items)
    for name, value in vars(module).items()
    if isinstance(value, type)
}
DECODE = {"from-device": decode_from_device, "from-server": decode_from_server}
EXAMPLE = re.compile(r"```hex (from-device|from-server)\n(.*?)```\n\n```python\n(.*?)```\n", re.DOTALL)


class Example(NamedTuple):
    direction: str
    data: bytes
    items: list[Item]


def examples() -> list[Example]:
    found: list[Example] = []
    for direction, dump, shown in EXAMPLE.findall(PAGE):
        data = bytes.fromhex("".join(line.partition("#")[0] for line in dump.splitlines()))
        found.append(Example(direction, data, eval(shown, {"__builtins__": {"bytes": bytes}}, NAMES)))
    return found


EXAMPLES = examples()


def number_of(kind: type[Struct]) -> int:
    number = kind.__struct_config__.tag
    assert isinstance(number, int)
    return number


def described(kinds: tuple[type[Struct], ...]) -> list[tuple[str, str, str]]:
    return [(str(number_of(k)), k.__name__, ", ".join(k.__struct_fields__)) for k in sorted(kinds, key=number_of)]


def everything_in(value: object) -> set[type]:
    """The types of everything that a value holds."""
    if isinstance(value, Struct):
        inside = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, (list, tuple)):
        inside = list(value)
    else:
        return set()
    return {type(value)}.union(*map(everything_in, inside))


# --- the dumps --------------------------------------------------------------------------------


def test_every_dump_on_the_page_is_looked_at() -> None:
    assert len(EXAMPLES) == PAGE.count("```hex") > 0


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: "-".join(type(item).__name__ for item in example.items)
)
def test_a_dump_is_what_the_page_says_it_is(example: Example) -> None:
    assert DECODE[example.direction](example.data) == example.items
    assert encode(example.items) == example.data  # type: ignore[arg-type]


def test_the_hello_is_one_for_the_first_frame() -> None:
    hello = next(example for example in EXAMPLES if isinstance(example.items[0], Hello))
    assert [decode_hello(hello.data)] == hello.items


def test_every_item_every_record_and_every_answer_is_shown_in_a_dump() -> None:
    shown = {kind for example in EXAMPLES for kind in everything_in(example.items)}
    wanted = {*get_args(FromDevice), *get_args(FromServer), *get_args(SaidByDevices), *get_args(answers.Answer)}
    assert wanted - shown == set()
    assert shown & set(get_args(refusals.AnyRefusal))


# --- the tables -------------------------------------------------------------------------------


def test_every_item_is_on_the_page() -> None:
    assert table("From device to server") == described(get_args(FromDevice))
    assert table("From server to device") == described(get_args(FromServer))


def test_every_record_a_device_may_say_is_on_the_page() -> None:
    assert [row[:3] for row in table("Records")] == described(get_args(SaidByDevices))


def test_every_field_of_every_item_and_record_is_explained() -> None:
    for kind in (*get_args(FromDevice), *get_args(FromServer), *get_args(SaidByDevices)):
        heading = next(
            line for line in PAGE.splitlines() if line.startswith("### ") and re.search(rf"\b{kind.__name__}\b", line)
        )
        section = re.split(r"\n##+ ", PAGE.partition(f"{heading}\n")[2])[0].partition("```")[0]
        if kind.__name__ == "Voided":
            continue  # its fields are those of Sent, and it says so
        assert [name for name in kind.__struct_fields__ if f"`{name}`" not in section] == [], kind.__name__


def test_every_answer_is_on_the_page() -> None:
    assert [row[:3] for row in table("Answers")] == described(get_args(answers.Answer))


def test_every_refusal_is_on_the_page() -> None:
    assert [row[:4] for row in table("Refusals")] == [
        (f"0x{number_of(kind):02x}", kind.__name__, "yes" if kind.retry else "no", ", ".join(kind.__struct_fields__))
        for kind in sorted(get_args(refusals.AnyRefusal), key=number_of)
    ]


def test_every_word_is_on_the_page() -> None:
    kinds: tuple[type[IntEnum], ...] = (
        words.Lane, words.Kind, words.MessageState, words.Reason, words.Audience, words.PresenceState, words.Platform,
    )  # fmt: skip
    assert [row[:3] for row in table("Enumerations")] == [
        (kind.__name__, str(int(word)), word.name) for kind in kinds for word in kind
    ]


def test_every_close_code_is_on_the_page_and_has_a_sentence() -> None:
    assert [row[:3] for row in table("Close codes")] == [
        (str(int(code)), code.name, "yes" if code.final else "no") for code in closing.CloseCode
    ]
    assert set(closing.SENTENCES) == set(closing.CloseCode)


def test_every_limit_on_the_page_is_the_default() -> None:
    gateway, form, fold, presence = GatewayLimits(), limits.FormLimits(), limits.FoldLimits(), PresenceLimits()
    groups = GroupLimits()
    assert {row[0]: row[1] for row in table("Limits")} == {
        "Request head, and frames before Welcome": f"{gateway.hello_bytes:,} bytes",
        "From connecting to Hello": f"{gateway.hello_ms // 1_000} s",
        "Frame": f"{gateway.frame_bytes:,} bytes",
        "Ciphertext of one envelope": f"{form.body_bytes:,} bytes",
        "Envelopes, on each side": f"{form.envelopes}",
        "Numbers that wait for their answer, per stream and lane": f"{fold.ring_acks}",
        "Handed out and unacknowledged": f"{gateway.credit_entries} numbers or {gateway.credit_bytes:,} bytes",
        "Entries in one frame": f"{gateway.batch_entries}, and about {gateway.batch_bytes:,} bytes of ciphertext",
        "Undelivered entries per device": f"{fold.mailbox_entries:,}, and {fold.mailbox_bytes:,} bytes of ciphertext",
        "Of them by one account": (
            f"{fold.mailbox_entries // fold.share_parts:,}, and {fold.mailbox_bytes // fold.share_parts:,} bytes"
        ),
        "Of them by one account that is not [known](#unlinked-closed-blocked-known-receiptsset)": (
            f"{fold.stranger_entries}, and {fold.stranger_bytes:,} bytes"
        ),
        "A mailbox takes nothing from accounts that are not known": (
            f"from {fold.mailbox_entries // fold.stranger_parts:,} entries "
            f"or {fold.mailbox_bytes // fold.stranger_parts:,} bytes on"
        ),
        "Undelivered entries live": f"{fold.ttl_ms // limits.DAY_MS} days",
        "Messages, and numbers given up, of one account": (
            f"{gateway.sends_per_s} per second, {gateway.sends_burst} at once"
        ),
        "Other items, and frames without items, of one device": (
            f"{gateway.items_per_s:,} per second, {gateway.items_burst:,} at once"
        ),
        "Bytes read from one account": f"{gateway.bytes_per_s:,} per second, {gateway.bytes_burst:,} at once",
        "Lookups of device lists by one account": f"{gateway.looks_per_s} per second, {gateway.looks_burst} at once",
        "Connections from one address": (
            f"{gateway.address_connects_per_s} per second, {gateway.address_connects_burst} at once"
        ),
        "One-time keys held for a device": f"{fold.stock_one_time} X25519, {fold.stock_kem} KEM",
        "Claims for one device by one account": f"{fold.claims_per_minute} per minute",
        "Claims for all devices by one account": (
            f"{gateway.claims_per_minute} per minute; "
            f"{gateway.young_claims_per_minute} in the first day after registering"
        ),
        "Claims for all devices from one address": f"{gateway.address_claims_per_minute} per minute",
        "Claims for one device from one address": (
            f"{gateway.address_device_claims_per_minute} per minute; "
            f"{gateway.address_device_claims_per_minute // LOW_COST} while few of its keys are left"
        ),
        "Claims for devices of fellow members by one account": f"{gateway.fellow_claims_per_minute:,} per minute",
        "Claims for devices of fellow members from one address": (
            f"{gateway.address_fellow_claims_per_minute:,} per minute"
        ),
        "Questions about groups by one account": f"{groups.asks_per_s} per second, {groups.asks_burst:,} at once",
        "Questions about groups that wait, of one connection": f"{groups.waiting}",
        "Groups attended by one connection": f"{groups.attended:,}",
        "Growth of a very large group's log told to those who attend it": f"one in {groups.tell_ms} ms",
        "Devices linked to one account at once": f"{fold.devices}",
        "Devices that one account links": f"{gateway.links_per_minute} per minute",
        "Accounts watched by one connection": f"{presence.watched}",
        "Accounts asked for at once": f"{presence.asked}",
        "Accounts whose presence one account asks for": (
            f"{presence.asks_per_s} per second, {presence.asks_burst} at once"
        ),
        "Signs of typing of one account in one conversation": f"one in {presence.typing_ms // 1_000} s",
        "Members of a group in which typing is told": f"{presence.typing_members}",
        "Changes of one account told to those who watch it": f"one in {presence.tell_ms // 1_000} s",
        "Online without a heartbeat": f"{PresenceSettings().lifetime_ms // 1_000} s",
    }


def test_every_link_on_the_page_leads_somewhere() -> None:
    anchors = {re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
               for line in PAGE.splitlines() if line.startswith("#")}  # fmt: skip
    assert {link for link in re.findall(r"\]\(#([^)]+)\)", PAGE) if link not in anchors} == set()


# --- the ids ----------------------------------------------------------------------------------


def test_the_ids_on_the_page_follow_from_the_handles_as_it_says() -> None:
    digest = hashlib.blake2b(b"ada", digest_size=8, person=b"account".ljust(16, b"\0")).digest()
    assert int.from_bytes(digest, "big") >> 15 | 1 == ids.account_id("ada")
    ada, ben = ids.account_id("ada"), ids.account_id("ben")
    device = ids.device_id(ada, 1)
    for said in (digest.hex(), f"`{ada:#x}` = {ada}", f"`{ben:#x}` = {ben}", f"`{device:#x}` = {device}"):
        assert said in PAGE


def test_every_id_on_the_page_has_as_many_bits_as_the_server_takes() -> None:
    named = ids.ACCOUNT_BITS + ids.DEVICE_BITS
    assert {row[0]: row[1] for row in table("Ids")} == {
        "account": f"{ids.ACCOUNT_BITS}; the lowest is always 1",
        "device": f"{named}: the account's {ids.ACCOUNT_BITS}, then {ids.DEVICE_BITS} of the index",
        "registration": f"{forms.NUMBER_BITS}",
        "n, seq, at, seen, version, list_version, request": f"{forms.NUMBER_BITS}",
        "ref": f"{items.REF_MAX.bit_length()}",
        "content tag": f"{8 * forms.TAG_BYTES}",
    }
    assert forms.DEVICE_MAX.bit_length() == named


def test_the_conversation_on_the_page_is_one_whose_order_as_text_is_another() -> None:
    ada, bob = ids.account_id("ada"), ids.account_id("bob")
    assert f"`{conversation_id(ada, bob)}` for `bob`" in PAGE
    assert (bob < ada, f"{bob:x}" < f"{ada:x}") == (True, False)


def test_the_message_id_on_the_page_is_one() -> None:
    (text,) = re.findall(r"^    ([0-9a-f]+:[0-9]+:[0-9]+:[0-9a-z]+)$", PAGE, re.MULTILINE)
    assert str(ids.MessageId.parse(text)) == text
    assert ids.MessageId.parse(text).device == ids.device_id(ids.account_id("ada"), 1)


def test_the_digest_on_the_page_is_that_of_the_token() -> None:
    assert hashlib.sha256(bytes(range(32))).hexdigest() in PAGE


def test_where_to_connect_is_on_the_page() -> None:
    for said in (f"GET {items.PATH} ", f"Sec-WebSocket-Protocol: {items.SUBPROTOCOL}", f"0 to {items.REF_MAX:,}"):
        assert said in PAGE
