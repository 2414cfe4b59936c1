"""Sessions with other devices, and the claims that begin them."""

from __future__ import annotations

from nightmail.client.limits import ClientLimits
from nightmail.model.ids import SERVER
from nightmail.model.records import Unlinked
from tests.client.sealed_town import a_town


def test_a_session_that_cannot_be_replaced_because_the_device_is_gone_is_left_as_it_is() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    town.wait(ClientLimits().restart_ms + 1)
    sessions = alice.machine.sealer.sessions
    sessions.renew(bob.me.device)
    bob.cut()
    town.say(SERVER, Unlinked(bob.me.device))
    woken: list[str] = []
    devices = {bob.me.device: bob.me.registration}
    assert not sessions.ready(devices, "who", lambda: woken.append("good"), lambda: woken.append("not now"))
    alice.look()
    town.settle()
    assert (woken, alice.store.claims()) == (["good"], {})
