"""Becoming a device, taking one's account over, and the lock against others who try."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from nightmail.api.times import rfc3339
from nightmail.model.ids import account_id
from nightmail.wire.closing import CloseCode
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import PATH, SUBPROTOCOL, VERSION, Hello, Welcome
from tests.outlets.hook import WRITTEN, Hook, answering
from tests.server.rig import Asker, Person, Reply, Times, Town, message, new_device, serving

PIN, WRONG = "ab" * 32, "cd" * 32
WITHIN_S = 1


def register(town: Asker, handle: str, token: bytes = b"new", **proof: Any) -> Reply:
    return town.ask("POST", "/v1/accounts", new_device(token, handle=handle, **proof))


def said(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.json.get("code", "")


def lock(town: Asker, person: Person, pin: str = PIN) -> None:
    assert town.ask("PUT", "/v1/lock", {"pin_token": pin}, auth=person).status == 204


# --- the lock ---------------------------------------------------------------------------------


def test_without_verification_the_pin_alone_opens_an_account_for_a_new_device(town: Town) -> None:
    ada, bob = town.register("ada"), town.register("bob")
    assert town.get("/v1/devices", ada).json["locked"] is False
    assert said(register(town, "ada", pin_token=PIN)) == (409, "handle_taken")
    lock(town, ada)
    assert town.get("/v1/devices", ada).json["locked"] is True
    town.say(bob.device, message(bob, ada))
    assert said(register(town, "ada")) == (409, "handle_taken"), "a stranger learns nothing of the lock"
    wrong = register(town, "ada", pin_token=WRONG)
    assert (said(wrong), wrong.json["tries"]) == ((403, "pin_wrong"), 9)
    made = register(town, "ada", pin_token=PIN)
    assert (made.status, made.json["device"], made.json["list_version"]) == (201, f"{ada.device + 1:x}", 2)
    assert register(town, "ada").json == made.json, "asked again"
    assert town.get("/v1/devices", ada).status == 401
    new = Person("ada", ada.device + 1, b"new")
    assert town.get("/v1/devices", new).json["locked"] is True
    state = town.get(f"/v1/messages/{message(bob, ada).id}", bob).json
    assert [(each["device"], each["state"], each["reason"]) for each in state["devices"]] == [
        (f"{ada.device:x}", "failed", "device_removed")
    ]
    assert town.ask("DELETE", "/v1/lock", auth=new).status == 204
    assert said(register(town, "ada", b"newer", pin_token=PIN)) == (409, "handle_taken")


def test_only_a_device_sets_the_lock(town: Town) -> None:
    assert said(town.ask("PUT", "/v1/lock", {"pin_token": PIN})) == (401, "unauthorized")
    carl = town.register("carl")
    for bad in ("1234", "AB" * 32, ""):
        assert said(town.ask("PUT", "/v1/lock", {"pin_token": bad}, auth=carl)) == (400, "malformed")


def test_wrong_pins_are_still_counted_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path, limits__pin_tries=3) as town:
        ada = town.register("ada")
        lock(town, ada)
        assert register(town, "ada", pin_token=WRONG).json["tries"] == 2
    with serving(tmp_path, limits__pin_tries=3) as town:
        assert register(town, "ada", pin_token=WRONG).json["tries"] == 1
        locked = register(town, "ada", pin_token=WRONG)
        assert (said(locked), locked.json["retry_ms"]) == ((423, "pin_locked"), 7 * 86_400_000)
    with serving(tmp_path, limits__pin_tries=3) as town:
        locked = register(town, "ada", pin_token=PIN)
        assert said(locked) == (423, "pin_locked")
        assert 6 * 86_400 < int(locked.headers["Retry-After"]) <= 7 * 86_400
        lock(town, ada)
        assert register(town, "ada", pin_token=PIN).status == 201, "the pepper was kept, too"


def test_nothing_of_a_pin_is_in_any_file_or_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), serving(tmp_path) as town:
        ada = town.register("ada")
        lock(town, ada)
        register(town, "ada", pin_token=PIN)
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        data = file.read_bytes()
        assert bytes.fromhex(PIN) not in data
        assert PIN.encode() not in data
    assert PIN not in caplog.text


def test_the_pepper_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    with serving(tmp_path):
        pass
    file = tmp_path / "accounts.secret"
    before = file.read_text()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert len(before.strip()) >= 32
    with serving(tmp_path):
        assert file.read_text() == before
    with serving(tmp_path / "given", accounts__secret="p" * 32):
        assert not (tmp_path / "given" / "accounts.secret").exists()


# --- verification -----------------------------------------------------------------------------


def verified(hook: Hook, **more: Any) -> dict[str, Any]:
    return {
        "accounts__verification": "webhook", "accounts__webhook_url": hook.url,
        "accounts__webhook_secret": WRITTEN, "accounts__webhook_private": True, **more,
    }  # fmt: skip


def test_a_code_that_the_operators_hook_brought_makes_and_takes_over_an_account(tmp_path: Path) -> None:
    with answering() as hook, serving(tmp_path, **verified(hook)) as town:
        phone = "+49 171 123-45-67"
        assert said(register(town, phone)) == (403, "verification_needed")
        sent = town.ask("POST", "/v1/verifications", {"handle": phone})
        (call,) = hook.calls
        assert call.is_signed
        assert (sent.status, call.json) == (
            202,
            {"handle": "+491711234567", "code": call.json["code"], **sent.json},
        )
        assert sent.json["expires_at_rfc3339"] == rfc3339(sent.json["expires_at"])
        code = call.json["code"]
        wrong = f"{(int(code) + 1) % 1_000_000:06}"
        assert said(register(town, phone, code=wrong)) == (403, "verification_wrong")
        made = register(town, phone, code=code)
        assert (made.status, made.json["account"]) == (201, f"{account_id('+491711234567'):x}")
        assert register(town, phone).json == made.json, "whoever lost the answer needs no code any more"

        ada = Person("+491711234567", int(made.json["device"], 16), b"new")
        taken = register(town, "+491711234567", b"newer", code=code)
        assert (taken.status, taken.json["list_version"]) == (201, 2)
        assert town.get("/v1/devices", ada).status == 401
        ada = Person("+491711234567", int(taken.json["device"], 16), b"newer")
        lock(town, ada)
        assert said(register(town, phone, b"thief", code=code)) == (403, "pin_needed")
        assert said(register(town, phone, b"thief", code=code, pin_token=WRONG)) == (403, "pin_wrong")
        assert said(register(town, phone, b"thief", pin_token=PIN)) == (403, "verification_needed")
        assert register(town, phone, b"owner", code=code, pin_token=PIN).status == 201


def test_a_hook_that_says_no_or_nothing_is_told_apart(tmp_path: Path) -> None:
    with answering(404, 500) as hook, serving(tmp_path, **verified(hook)) as town:
        assert said(town.ask("POST", "/v1/verifications", {"handle": "ada"})) == (422, "verification_refused")
        assert said(town.ask("POST", "/v1/verifications", {"handle": "bob"})) == (503, "not_ready")


def test_codes_are_asked_for_and_guessed_only_so_often(tmp_path: Path) -> None:
    limits = {"http__codes_per_hour": 1, "http__code_tries": 2}
    with answering() as hook, serving(tmp_path, **verified(hook, **limits)) as town:
        replies = [town.ask("POST", "/v1/verifications", {"handle": "ada"}) for _ in range(2)]
        assert [reply.status for reply in replies] == [202, 429]
        wrong = f"{(int(hook.calls[0].json['code']) + 1) % 1_000_000:06}"
        tried = [said(register(town, "ada", code=wrong)) for _ in range(3)]
        assert tried == [(403, "verification_wrong"), (403, "verification_wrong"), (429, "rate_limited")]


def test_a_server_that_verifies_nobody_has_no_codes_to_send(town: Town) -> None:
    assert said(town.ask("POST", "/v1/verifications", {"handle": "ada"})) == (404, "not_found")


def test_a_phone_number_is_one_account_however_it_is_written(town: Town) -> None:
    dora = town.register("+1 (555) 010-0199")
    assert town.get("/v1/accounts/+1-555-010-0199", dora).json["handle"] == "+15550100199"
    assert said(register(town, "+15550100199")) == (409, "handle_taken")
    for bad in ("+49 (0) 171 1234567", "+ada"):
        assert said(register(town, bad)) == (400, "malformed")


# --- devices ----------------------------------------------------------------------------------


def test_a_linked_device_finds_its_number_by_its_token_and_nobody_else_does(town: Town) -> None:
    erin = town.register("erin")
    new = {name: value for name, value in new_device(b"tablet").items() if name in {"registration", "token_digest"}}
    find = {**new, "handle": "erin"}
    assert said(town.ask("POST", "/v1/devices/find", find)) == (404, "not_found")
    linked = town.ask("POST", "/v1/devices", new_device(b"tablet"), auth=erin).json
    assert town.ask("POST", "/v1/devices/find", find).json == linked
    for other in ({"registration": 8}, {"token_digest": "0" * 64}, {"handle": "nobody"}):
        assert said(town.ask("POST", "/v1/devices/find", {**find, **other})) == (404, "not_found")


def test_asking_for_ones_number_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Times(monkeypatch)
    with serving(tmp_path, http__registrations_per_minute=2) as town:
        find = {"handle": "ada", "registration": 7, "token_digest": "0" * 64}
        assert [town.ask("POST", "/v1/devices/find", find).status for _ in range(3)] == [404, 404, 429]


def test_a_device_is_given_another_name(town: Town) -> None:
    fred, gina = town.register("fred"), town.register("gina")
    path = f"/v1/devices/{fred.device:x}"
    assert town.ask("PATCH", path, {"label": "old phone"}, auth=fred).status == 204
    assert [each["label"] for each in town.get("/v1/devices", fred).json["devices"]] == ["old phone"]
    assert said(town.ask("PATCH", path, {"label": "mine"}, auth=gina)) == (403, "not_allowed")
    assert said(town.ask("PATCH", path, {"label": "x" * 65}, auth=fred)) == (400, "malformed")
    assert said(town.ask("PATCH", "/v1/devices/xyz", {"label": ""}, auth=fred)) == (400, "malformed")
    nobodys = f"/v1/devices/{fred.device + 8:x}"
    assert said(town.ask("PATCH", nobodys, {"label": ""}, auth=fred)) == (404, "unknown_device")


# --- live connections -------------------------------------------------------------------------


@contextmanager
def connected(town: Town, person: Person) -> Generator[ClientConnection]:
    with connect(f"ws://127.0.0.1:{town.port}{PATH}", subprotocols=[Subprotocol(SUBPROTOCOL)]) as line:
        line.send(encode([Hello(VERSION, person.device, person.token, 0, 0, 0)]))
        frame = line.recv(timeout=WITHIN_S)
        assert isinstance(frame, bytes)
        assert isinstance(decode_from_server(frame)[0], Welcome)
        yield line


def closed_with(line: ClientConnection) -> int | None:
    """The close code, which must come within a second."""
    while True:
        try:
            line.recv(timeout=WITHIN_S)
        except ConnectionClosed as closed:
            return closed.rcvd and closed.rcvd.code


def is_open(line: ClientConnection) -> bool:
    try:
        while True:
            line.recv(timeout=0)
    except TimeoutError:
        return True
    except ConnectionClosed:
        return False


def test_a_revoked_device_is_cut_off_within_a_second(town: Town) -> None:
    hans = town.register("hans")
    made = town.ask("POST", "/v1/devices", new_device(b"the tablet's token"), auth=hans).json
    tablet = Person("hans", int(made["device"], 16), b"the tablet's token")
    with connected(town, tablet) as line, connected(town, hans) as own:
        assert town.ask("DELETE", f"/v1/devices/{tablet.device:x}", auth=hans).status == 204
        assert closed_with(line) == CloseCode.REMOVED
        assert is_open(own)


def test_a_takeover_cuts_every_former_device_off_within_a_second(town: Town) -> None:
    iris = town.register("iris")
    made = town.ask("POST", "/v1/devices", new_device(b"the tablet's token"), auth=iris).json
    tablet = Person("iris", int(made["device"], 16), b"the tablet's token")
    lock(town, iris)
    with connected(town, tablet) as line, connected(town, iris) as other:
        assert register(town, "iris", pin_token=PIN).status == 201
        assert [closed_with(line), closed_with(other)] == [CloseCode.REMOVED, CloseCode.REMOVED]


def test_a_handle_that_looks_like_a_taken_one_is_refused(town: Town) -> None:
    town.register("grace")
    for like in ("gr\u0430ce", "gra\u0441e"):
        refused = register(town, like)
        assert (refused.status, refused.json["code"]) == (409, "handle_confusable")
        assert refused.json["detail"] == f"{like!r} looks like a handle that is taken"
    for same in ("Grace", "GRACE", "\uff47race"):
        assert register(town, same).json["code"] == "handle_taken"


def test_a_refused_lookalike_leaves_nothing_behind(town: Town) -> None:
    town.register("hopper")
    register(town, "h\u043epper")
    assert town.run(lambda: town.node.heart.loop.state.accounts.rows.get(account_id("h\u043epper"))) is None


def test_the_handle_of_a_closed_account_is_not_given_to_a_stranger_at_once(town: Town) -> None:
    ida = town.register("ida")
    assert town.ask("DELETE", "/v1/accounts/me", auth=ida).status == 204
    assert register(town, "ida").json["code"] == "handle_taken"
    assert register(town, "\u0456da").json["code"] == "handle_confusable"


def test_a_stranger_who_is_refused_a_kept_handle_does_not_hold_its_look_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = Times(monkeypatch)
    with serving(tmp_path, limits__handle_kept_ms=1_000) as town:
        ida = town.register("ida")
        town.ask("DELETE", "/v1/accounts/me", auth=ida)
        times.go_on(999)
        assert said(register(town, "ida")) == (409, "handle_taken")
        assert said(register(town, "\u0456da")) == (409, "handle_confusable")
        times.go_on(1)
        assert register(town, "\u0456da").status == 201
        assert said(register(town, "ida")) == (409, "handle_confusable")


# --- ids ----------------------------------------------------------------------------------------

TWINS = (("user6988202", "user21267976"), ("user3451691", "user21988835"), ("user13629347", "user27045262"))
"""Pairs of handles whose hashes agree in every bit that an account's id has."""


def test_the_second_handle_with_an_id_gets_another_and_both_are_found(town: Town) -> None:
    one, other = (town.register(handle) for handle in TWINS[0])
    assert account_id(one.handle) == account_id(other.handle)
    assert (one.account, other.account) == (account_id(one.handle), account_id(other.handle, 1))
    for person in (one, other):
        seen = town.get(f"/v1/accounts/{person.handle}", one)
        assert (seen.json["handle"], seen.json["account"]) == (person.handle, f"{person.account:x}")
        again = town.ask("POST", "/v1/accounts", new_device(person.token, handle=person.handle))
        assert again.json["device"] == f"{person.device:x}"


def test_an_id_stays_with_its_first_handle_also_after_closing(town: Town) -> None:
    first, second = TWINS[1]
    one = town.register(first)
    assert town.ask("DELETE", "/v1/accounts/me", auth=one).status == 204
    assert town.register(second).account == account_id(second, 1)


def test_two_handles_with_one_id_that_register_at_the_same_time_get_two(town: Town) -> None:
    with ThreadPoolExecutor(2) as pool:
        people = list(pool.map(town.register, TWINS[2]))
    one, other = TWINS[2]
    assert {person.account for person in people} in (
        {account_id(one), account_id(other, 1)},
        {account_id(other), account_id(one, 1)},
    )
