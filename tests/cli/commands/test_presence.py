"""`nightmail presence` and `nightmail privacy`, against a real server."""

from __future__ import annotations

from tests.cli.hand import Hand, a_conversation


def test_presence_is_shown_to_contacts_unless_one_of_both_hides(hand: Hand) -> None:
    ada, bob = a_conversation(hand)
    carol = hand.registers("carol")
    away = {"presence": "offline", "last_seen": None, "last_seen_ms": 0}
    hidden = {**away, "presence": "unavailable"}

    def seen(by: str, *people: str) -> list[dict[str, object]]:
        keys = ("presence", "last_seen", "last_seen_ms")
        return [{key: found[key] for key in keys} for found in hand.gets("presence", *people, "-p", by)]

    assert seen(bob, ada, carol, hand.name("nobody")) == [away, hidden, hidden]
    assert hand.types("presence", ada, "-p", bob).stdout == f"{ada}: offline\n"
    assert hand.gets("privacy", "last-seen", "-p", ada) == [{"last_seen": "contacts"}]
    assert hand.gets("privacy", "last-seen", "nobody", "-p", ada) == [{"last_seen": "nobody"}]
    assert (seen(bob, ada), seen(ada, bob)) == ([hidden], [hidden])
    assert hand.types("presence", bob, "-p", ada).stdout == f"{bob}: last seen: unavailable\n"
    hand.gets("privacy", "last-seen", "everyone", "-p", ada)
    assert hand.types("privacy", "last-seen", "-p", ada).stdout == "Online and last seen are shown to everyone.\n"
    assert seen(carol, ada) == [away]
