from __future__ import annotations

from nightmail.model.records import Sent
from nightmail.wire.items import Devices, Look
from tests.client.script import ALICE, BOB, TABLET, Script


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
    assert script.machine.hangup is None
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)


def test_a_list_of_somebody_else_is_not_believed() -> None:
    script = Script()
    script.connect()
    del script.lists[BOB]
    script.write()
    (look,) = looks(script)
    script.say(Devices(look.ref, ALICE, 1, {TABLET: 7}, b""))
    assert script.machine.hangup == "a device list of somebody else"
