"""Accounts, devices, blocks: over real HTTP, on a real node."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from nightmail.api.times import rfc3339
from nightmail.model.answers import Accepted, Joined
from nightmail.model.ids import SERVER, account_id
from nightmail.model.records import Acked, Read, Registered, Span
from nightmail.model.words import Lane, Platform
from tests.server.rig import Person, Times, Town, message, new_device, serving


def link(town: Town, person: Person, token: bytes) -> Person:
    reply = town.ask("POST", "/v1/devices", new_device(token), auth=person)
    assert reply.status == 201
    return Person(person.handle, int(reply.json["device"], 16), token)


def test_an_account_is_registered_and_can_be_looked_up(town: Town) -> None:
    ada = town.register("ada")
    account = account_id("ada")
    assert ada.account == account
    seen = town.get("/v1/accounts/ada", ada)
    assert (seen.status, seen.json) == (
        200,
        {
            "account": f"{account:x}",
            "handle": "ada",
            "list_version": 1,
            "devices": {f"{ada.device:x}": 7},
            "signed": "",
        },
    )


def test_an_account_has_so_many_devices_at_once_and_is_told_so(tmp_path: Path) -> None:
    with serving(tmp_path, limits__devices=2) as town:
        ada = town.register("ada")
        tablet = link(town, ada, b"tablet")
        reply = town.ask("POST", "/v1/devices", new_device(b"laptop"), auth=ada)
        assert (reply.status, reply.json["code"], reply.json["limit"]) == (422, "too_many_linked", 2)
        assert town.ask("DELETE", f"/v1/devices/{tablet.device:x}", auth=ada).status == 204
        link(town, ada, b"laptop")


def test_an_account_links_so_many_devices_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Times(monkeypatch)
    with serving(tmp_path, http__links_per_minute=1) as town:
        ada, ben = town.register("ada"), town.register("ben")
        link(town, ada, b"tablet")
        reply = town.ask("POST", "/v1/devices", new_device(b"laptop"), auth=ada)
        assert (reply.status, reply.json["code"]) == (429, "rate_limited")
        link(town, ben, b"laptop")


def test_registering_again_with_the_same_token_is_the_same_device(town: Town) -> None:
    assert town.register("again") == town.register("again")


def test_a_handle_that_is_taken_is_refused(town: Town) -> None:
    town.register("bob")
    reply = town.ask("POST", "/v1/accounts", new_device(b"another token", handle="bob"))
    assert reply.status == 409
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert reply.json == {
        "type": "urn:nightmail:problem:handle_taken",
        "title": "Handle taken",
        "status": 409,
        "detail": "'bob' is taken",
        "code": "handle_taken",
        "handle": "bob",
        "refusal": 0x30,
    }


def test_a_handle_may_have_any_letters_but_no_hidden_ones(town: Town) -> None:
    zoe = town.register("Zoë.2nd")
    for written in ("zo%C3%AB.2nd", "ZO%C3%8B.2ND", "zoe%CC%88.2nd"):
        assert town.get(f"/v1/accounts/{written}", zoe).json["handle"] == "zoë.2nd"
    for bad in (" ada", "a\u200bda", "zoë/the2nd", "..", "me", "", "x" * 65):
        reply = town.ask("POST", "/v1/accounts", new_device(b"token", handle=bad))
        assert (reply.status, reply.json["code"]) == (400, "malformed")


@pytest.mark.parametrize("handle", ["Ada Lovelace", "Babbage", "zoë/the 2nd"])
def test_a_handle_from_before_the_rules_is_found_as_it_is_written(town: Town, handle: str) -> None:
    token = b"x" * 32
    digest = hashlib.sha256(token).digest()
    said = town.say(SERVER, Registered(account_id(handle), handle, 7, digest, "phone", Platform.CLI))
    assert isinstance(said, Joined)
    before = Person(handle, said.device, token)
    assert town.get(f"/v1/accounts/{quote(handle)}", before).json["handle"] == handle
    again = town.ask("POST", "/v1/accounts", new_device(token, handle=handle))
    assert (again.status, again.json["device"]) == (201, f"{said.device:x}")
    asked = {"handle": handle, "registration": 7, "token_digest": digest.hex()}
    found = town.ask("POST", "/v1/devices/find", asked)
    assert (found.status, found.json["device"]) == (200, f"{said.device:x}")
    assert town.ask("PUT", f"/v1/blocks/{quote(handle)}", auth=before).status == 204


def test_a_device_is_linked_listed_and_revoked(town: Town) -> None:
    phone = town.register("carol")
    tablet = link(town, phone, b"the tablet's token")
    signed = base64.b64encode(b"signed list").decode()
    new = {"version": 2, "devices": [f"{phone.device:x}", f"{tablet.device:x}"], "signed": signed}
    assert town.ask("PUT", "/v1/devices", new, auth=phone).json == {"list_version": 2}
    seen = town.get("/v1/devices", tablet).json
    assert seen["signed"] == signed
    assert [(each["device"], each["listed"]) for each in seen["devices"]] == [
        (f"{phone.device:x}", True),
        (f"{tablet.device:x}", True),
    ]
    assert town.ask("DELETE", f"/v1/devices/{tablet.device:x}", auth=phone).status == 204
    assert town.get("/v1/devices", tablet).status == 401
    assert town.ask("DELETE", f"/v1/devices/{tablet.device:x}", auth=phone).status == 204, "asked again"


def test_an_account_sees_when_its_devices_were_last_connected(town: Town) -> None:
    phone = town.register("paula")
    tablet = link(town, phone, b"the tablet's token")
    presence = town.node.heart.presence
    assert presence is not None
    town.run(lambda: presence.saw(tablet.device, 0))
    never, seen = town.get("/v1/devices", phone).json["devices"]
    assert (never["last_seen"], never["last_seen_rfc3339"]) == (None, None)
    assert seen["last_seen_rfc3339"] == rfc3339(seen["last_seen"])


def test_without_presence_it_is_not_known_when_devices_were_connected(tmp_path: Path) -> None:
    with serving(tmp_path, presence__enabled=False) as town:
        (seen,) = town.get("/v1/devices", town.register("ada")).json["devices"]
        assert (seen["last_seen"], seen["last_seen_rfc3339"]) == (None, None)


def test_a_list_that_is_not_the_next_one_conflicts(town: Town) -> None:
    dora = town.register("dora")
    new = {"version": 9, "devices": [f"{dora.device:x}"], "signed": ""}
    reply = town.ask("PUT", "/v1/devices", new, auth=dora)
    assert (reply.status, reply.json["code"], reply.json["version"]) == (409, "list_conflict", 1)


def test_a_device_has_one_spelling(town: Town) -> None:
    dino = town.register("dino")
    text = f"{dino.device:x}"
    for other in (f"0{text}", text.upper(), f"0x{text}", f"+{text}", f"{text[0]}_{text[1:]}", f"{text}%0A", "-1", "x"):
        for reply in (
            town.ask("DELETE", f"/v1/devices/{other}", auth=dino),
            town.ask("PATCH", f"/v1/devices/{other}", {"label": "desk"}, auth=dino),
            town.ask("PUT", "/v1/devices", {"version": 2, "devices": [unquote(other)], "signed": ""}, auth=dino),
        ):
            assert (reply.status, reply.json["code"]) == (400, "malformed"), other
    assert town.get("/v1/devices", dino).json["devices"][0]["device"] == text


def test_nobody_revokes_the_device_of_another_account(town: Town) -> None:
    eve, frank = town.register("eve"), town.register("frank")
    reply = town.ask("DELETE", f"/v1/devices/{frank.device:x}", auth=eve)
    assert (reply.status, reply.json["code"]) == (403, "not_allowed")
    assert town.get("/v1/devices", frank).status == 200


def test_an_account_that_ends_is_gone(town: Town) -> None:
    gone, other = town.register("gone"), town.register("other")
    assert town.ask("DELETE", "/v1/accounts/me", auth=gone).status == 204
    assert town.get("/v1/devices", gone).status == 401
    assert town.get("/v1/accounts/gone", other).status == 404


def test_settings_are_kept(town: Town) -> None:
    quiet = town.register("quiet")
    assert town.ask("PUT", "/v1/settings", {"read_receipts": False}, auth=quiet).status == 204
    assert town.get("/v1/devices", quiet).json["read_receipts"] is False


# --- what became of a message -----------------------------------------------------------------


def test_a_sender_sees_its_message_sent_then_delivered(town: Town) -> None:
    grace, heidi = town.register("grace"), town.register("heidi")
    sent = message(grace, heidi)
    accepted = town.say(grace.device, sent)
    assert isinstance(accepted, Accepted)
    before = town.get(f"/v1/messages/{sent.id}", grace).json
    assert before == {
        "message_id": sent.id,
        "state": "sent",
        "accepted_at": accepted.at,
        "accepted_at_rfc3339": rfc3339(accepted.at),
        "devices": [
            {"device": f"{heidi.device:x}", "state": "sent", "at": accepted.at, "at_rfc3339": rfc3339(accepted.at)}
        ],
    }
    town.say(heidi.device, Acked(Lane.NORMAL, 1))
    after = town.get(f"/v1/messages/{sent.id}", grace).json
    assert (after["state"], after["devices"][0]["state"]) == ("delivered", "delivered")


@pytest.mark.parametrize("private", ["reader", "sender", ""])
def test_who_keeps_reading_private_does_so_over_http_in_both_directions(town: Town, private: str) -> None:
    sender, reader = town.register(f"a{private}"), town.register(f"b{private}")
    sent = message(sender, reader)
    town.say(sender.device, sent)
    town.say(reader.device, Acked(Lane.NORMAL, 1))
    if private:
        who = reader if private == "reader" else sender
        assert town.ask("PUT", "/v1/settings", {"read_receipts": False}, auth=who).status == 204
    town.say(reader.device, Read(sender.account, (Span(sender.device, Lane.NORMAL, 1, 1),)))
    seen = town.get(f"/v1/messages/{sent.id}", sender).json
    state = "delivered" if private else "read"
    assert (seen["state"], [each["state"] for each in seen["devices"]]) == (state, [state])


def test_only_the_sending_account_may_ask_for_a_message(town: Town) -> None:
    ivan, judy = town.register("ivan"), town.register("judy")
    sent = message(ivan, judy)
    town.say(ivan.device, sent)
    assert town.get(f"/v1/messages/{sent.id}", judy).json["code"] == "forbidden"
    assert town.get(f"/v1/messages/{ivan.device:x}:1:00001:none", ivan).json["code"] == "not_found"
    assert town.get("/v1/messages/nonsense", ivan).json["code"] == "malformed"


def test_a_blocked_sender_learns_nothing_and_the_operator_sees_it(town: Town) -> None:
    mallory, niaj = town.register("mallory"), town.register("niaj")
    assert town.ask("PUT", "/v1/blocks/mallory", auth=niaj).status == 204
    sent = message(mallory, niaj)
    town.say(mallory.device, sent)
    seen = town.get(f"/v1/messages/{sent.id}", mallory).json
    device = {"device": f"{niaj.device:x}", "state": "sent"}

    def waiting(message_id: str, at: int) -> dict[str, Any]:
        text = rfc3339(at)
        return {
            "message_id": message_id, "state": "sent", "accepted_at": at, "accepted_at_rfc3339": text,
            "devices": [{**device, "at": at, "at_rfc3339": text}],
        }  # fmt: skip

    assert seen == waiting(sent.id, seen["accepted_at"])
    trudy = town.register("trudy")
    other = message(trudy, niaj)
    town.say(trudy.device, other)
    waits = town.get(f"/v1/messages/{other.id}", trudy).json
    assert waits == waiting(other.id, waits["accepted_at"])
    traced = town.get(f"/v1/trace/{sent.id}", town.operator).json
    assert [event["what"] for event in traced["events"]] == ["blocked"]
    assert town.ask("DELETE", "/v1/blocks/mallory", auth=niaj).status == 204
    again = message(mallory, niaj, n=2)
    town.say(mallory.device, again)
    assert [each["state"] for each in town.get(f"/v1/messages/{again.id}", mallory).json["devices"]] == ["sent"]


def test_what_was_read_before_or_after_a_block_is_not_told_after_it(town: Town) -> None:
    mallory, niaj = town.register("mallory"), town.register("niaj")
    sent, late = message(mallory, niaj), message(mallory, niaj, n=2)
    town.say(mallory.device, sent)
    town.say(niaj.device, Acked(Lane.NORMAL, 1))
    town.say(mallory.device, late)
    assert town.ask("PUT", "/v1/blocks/mallory", auth=niaj).status == 204
    town.say(niaj.device, Read(mallory.account, (Span(mallory.device, Lane.NORMAL, 1, 1),)))
    states = [town.get(f"/v1/messages/{each.id}", mallory).json["state"] for each in (sent, late)]
    assert states == ["delivered", "sent"]
    traced = town.get(f"/v1/trace/{late.id}", town.operator).json
    assert [event["what"] for event in traced["events"]][-2:] == ["blocked", "deleted"]


def test_the_operator_traces_any_message_and_nobody_else_does(town: Town) -> None:
    olivia, peggy = town.register("olivia"), town.register("peggy")
    sent = message(olivia, peggy)
    town.say(olivia.device, sent)
    town.say(peggy.device, Acked(Lane.NORMAL, 1))
    traced = town.get(f"/v1/trace/{sent.id}", town.operator)
    assert [event["what"] for event in traced.json["events"]] == ["accepted", "queued:1", "delivered", "deleted"]
    assert traced.json["states"] == {f"{peggy.device:x}": "delivered"}
    for stranger in (None, olivia, "Bearer operator.wrong", town.operator + "x"):
        assert town.get(f"/v1/trace/{sent.id}", stranger).status == 401


def test_handles_are_not_found_by_trying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Times(monkeypatch)
    with serving(tmp_path, http__unknown_per_minute=3) as town:
        ada, bob = town.register("ada"), town.register("bob")
        tried = [town.get(f"/v1/accounts/guess-{n}", auth=ada).status for n in range(5)]
        # Another account of the same address cannot go on; nor is a handle that exists told apart from then on.
        tried += [town.get(f"/v1/accounts/{handle}", auth=bob).status for handle in ("guess-9", "ada")]
        assert tried == [404, 404, 404, 429, 429, 429, 429]


def test_an_account_looks_up_so_many_in_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Times(monkeypatch)
    with serving(tmp_path, http__lookups_per_minute=2) as town:
        ada, bob = town.register("ada"), town.register("bob")
        assert [town.get("/v1/accounts/bob", auth=ada).status for _ in range(3)] == [200, 200, 429]
        assert town.get("/v1/accounts/ada", auth=bob).status == 200
