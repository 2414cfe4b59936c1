from __future__ import annotations

from nightmail.model.records import Sent
from nightmail.wire.items import Devices, Look
from tests.client.script import ALICE, BOB, LAPTOP, PHONE, TABLET, Script


def looks(script: Script) -> list[Look]:
    return [item for item in script.take() if isinstance(item, Look)]


def test_a_slow_server_may_answer_a_question_twice_that_was_asked_twice() -> None:
    script = Script()
    script.connect()
    del script.lists[BOB]
    script.write()
    (first,) = looks(script)
    script.now += script.limits.answer_ms
    script.machine.tick(script.now)
    script.now += 2_000
    script.machine.tick(script.now)
    (second,) = looks(script)
    assert first.account == second.account == BOB
    for look in (first, second):
        script.say(Devices(look.ref, BOB, 1, {TABLET: 7}, b""))
    assert script.hang_up is None
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)


def test_a_list_of_somebody_else_is_not_believed() -> None:
    script = Script()
    script.connect()
    del script.lists[BOB]
    script.write()
    (look,) = looks(script)
    script.say(Devices(look.ref, ALICE, 1, {TABLET: 7}, b""))
    assert script.hang_up == "a device list of somebody else"


def test_a_list_that_was_asked_for_before_it_changed_is_asked_for_again() -> None:
    """The caller that links a device calls `forget`; an answer that was under way does not name the new one."""
    script = Script()
    script.connect()
    del script.lists[ALICE]
    script.write()
    (early,) = looks(script)
    script.machine.forget_own_devices()
    script.say(Devices(early.ref, ALICE, 1, {PHONE: 7}, b""))
    (late,) = looks(script)
    script.say(Devices(late.ref, ALICE, 2, {PHONE: 7, LAPTOP: 7}, b""))
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)
    assert [envelope.device for envelope in sent.own_envelopes] == [LAPTOP]
