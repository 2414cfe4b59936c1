"""`nightmail group` and `nightmail seen-by`, and what the other commands do with groups."""

from __future__ import annotations

from tests.cli.hand import NOBODY, Hand, one_sentence

LISTENS = 20
"""More than anybody needs to learn who is in a group."""


def a_group(hand: Hand, name: str = "Friends") -> tuple[str, str, str]:
    """Ada made a group with Bob and Cleo, and they know it."""
    ada, bob, cleo = (hand.registers(handle) for handle in ("ada", "bob", "cleo"))
    hand.gets("group", "create", name, bob, cleo, "-p", ada)
    for person in (bob, cleo):
        for _ in range(LISTENS):  # The server is asked for handles meanwhile, and the mailbox may be empty before.
            hand.gets("listen", "-p", person, "--until-empty")
            if {each["handle"] for each in hand.gets("group", "members", name, "-p", person)} == {ada, bob, cleo}:
                break
    return ada, bob, cleo


def refused(hand: Hand, *words: str) -> tuple[int, str]:
    result = hand.types(*words)
    return result.exit_code, one_sentence(result)


def test_people_make_a_group_and_talk_in_it(hand: Hand) -> None:
    ada, bob, cleo = a_group(hand)
    (listed,) = hand.gets("group", "list", "-p", bob, "--server", NOBODY)
    assert (listed["name"], listed["standing"], listed["role"]) == ("Friends", "joined", "member")
    assert [(each["handle"], each["role"]) for each in hand.gets("group", "members", "friends", "-p", cleo)] == [
        (ada, "admin"), (bob, "member"), (cleo, "member"),
    ]  # fmt: skip
    (sent,) = hand.gets("send", "Friends", "Lunch at noon?", "--mention", bob, "-p", ada)
    assert (sent["group"], sent["name"], sent["state"]) == (listed["group"], "Friends", "sent")
    heard = [each for each in hand.gets("listen", "-p", bob, "--until-empty") if each["type"] == "message"]
    assert [(each["text"], each["by"], each["group"], len(each["mentions"])) for each in heard] == [
        ("Lunch at noon?", ada, listed["group"], 1)
    ]
    assert f"{ada} in Friends: Lunch at noon?" in hand.types("listen", "-p", cleo, "--until-empty").stdout
    seen = hand.types("seen-by", sent["message_id"], "--names", "-p", ada).stdout
    assert seen.startswith("Read by 2 of 2 members.\n")
    assert (bob in seen, cleo in seen) == (True, True)
    assert f"{ada}: Lunch at noon?" in hand.types("history", "group:Friends", "-p", cleo).stdout
    (found,) = hand.gets("search", "lunch", "--with", "Friends", "-p", cleo)
    assert found["message_id"] == sent["message_id"]


def test_members_come_go_and_change_roles_and_everybody_is_told(hand: Hand) -> None:
    ada, bob, cleo = a_group(hand)
    assert refused(hand, "group", "leave", "Friends", "-p", ada)[1].startswith("The group would be left without")
    hand.gets("group", "promote", "Friends", bob, "-p", ada)
    (after,) = hand.gets("group", "remove", "Friends", cleo, "-p", bob)
    assert [each["handle"] for each in after["members"]] == [ada, bob]
    hand.gets("group", "rename", "Friends", "Old friends", "-p", bob)
    (left,) = hand.gets("group", "leave", "Old friends", "-p", ada)
    assert left["standing"] == "left"
    told = hand.types("listen", "-p", bob, "--until-empty").stdout
    assert f"Old friends: {ada} left\n" in told
    told = hand.types("listen", "-p", cleo, "--until-empty").stdout
    assert f"Friends: {ada} made {bob} an admin\n" in told
    assert f"Friends: {bob} removed you\n" in told
    code, why = refused(hand, "send", "group:Friends", "Wait!", "-p", cleo)
    assert (code, why) == (12, "You are not a member of this group, or this device does not know its members yet.")


def test_settings_and_timers_are_shown_and_changed(hand: Hand) -> None:
    ada, bob, _ = a_group(hand)
    words = ("--writers", "admins", "--receipts", "none", "--timer", "1h")
    (after,) = hand.gets("group", "settings", "Friends", *words, "-p", ada)
    assert after["settings"] == {"writers": "admins", "changers": "admins", "receipts": "none", "timer_ms": 3_600_000}
    hand.gets("listen", "-p", bob, "--until-empty")
    assert hand.types("group", "settings", "Friends", "-p", bob, "--server", NOBODY).stdout.splitlines() == [
        "Only admins may write.",
        "Only admins may add people and change timer and receipts.",
        "Authors learn nothing about who has a message.",
        "Messages disappear 1 hour after they were read.",
    ]
    assert hand.gets("timer", "Friends", "-p", bob)[0]["timer_ms"] == 3_600_000
    assert hand.types("timer", "Friends", "off", "-p", ada).stdout == "Messages in Friends do not disappear.\n"
    assert refused(hand, "send", "group:Friends", "May I?", "-p", bob) == (
        13, "The message failed (not_group_admin): only admins may write in this group.",
    )  # fmt: skip


def test_what_cannot_be_done_is_told_in_a_sentence_and_changes_nothing(hand: Hand) -> None:
    ada, bob, cleo = a_group(hand)
    before = hand.gets("group", "list", "-p", ada)
    stranger = hand.name("nobody")
    assert refused(hand, "group", "add", "Friends", stranger, "-p", ada) == (
        12, f"There is no account {stranger}, or it has no device yet. Nothing was changed; check the spelling.",
    )  # fmt: skip
    assert refused(hand, "group", "create", "More", stranger, "-p", ada)[0] == 12
    assert refused(hand, "group", "create", "More", bob, bob, "-p", ada) == (2, f"'{bob}' is named twice.")
    assert refused(hand, "group", "create", "More", *map(str, range(10_000)), "-p", ada) == (
        2, "A group has at most 5000 members, and 10000 were named.",
    )  # fmt: skip
    assert refused(hand, "group", "add", "Friends", stranger, "-p", bob)[0] == 12
    assert refused(hand, "group", "remove", "Friends", cleo, "-p", bob) == (
        12, "Only an admin of the group may do this. See who is: nightmail group members.",
    )  # fmt: skip
    assert refused(hand, "group", "add", "Strangers", bob, "-p", ada) == (
        2, "There is no group 'Strangers' here. List your groups: nightmail group list.",
    )  # fmt: skip
    assert refused(hand, "group", "demote", "Friends", ada, "-p", ada)[1].startswith("The group would be left without")
    assert refused(hand, "group", "settings", "Friends", "--timer", "29s", "-p", ada) == (
        2, "A message disappears after 30 seconds to 7 days, or never.",
    )  # fmt: skip
    assert refused(hand, "group", "leave", "Friends", "-p", bob, "--server", NOBODY)[0] == 11
    assert refused(hand, "send", bob, "Psst", "--mention", cleo, "-p", ada)[0] == 2
    assert hand.gets("group", "list", "-p", ada) == before


def test_a_name_that_can_mean_several_is_refused(hand: Hand) -> None:
    ada, bob, cleo = a_group(hand, name="Chess")
    (first,) = hand.gets("group", "list", "-p", ada)
    hand.gets("send", "chess", "Hello", "-p", bob)
    hand.gets("contacts", "name", cleo, "chess", "-p", bob)
    code, why = refused(hand, "send", "chess", "Hello", "-p", bob)
    assert (code, f"or group:{first['group']}" in why) == (2, True)
    (second,) = hand.gets("group", "create", "Chess", cleo, "-p", ada)
    code, why = refused(hand, "send", "group:Chess", "Hello", "-p", ada)
    assert (code, first["group"] in why, second["group"] in why) == (2, True, True)
    (sent,) = hand.gets("send", f"group:{second['group']}", "Hello", "-p", ada)
    assert sent["group"] == second["group"]


def test_what_is_written_offline_is_sent_by_the_next_command(hand: Hand) -> None:
    ada, bob, _ = a_group(hand)
    assert hand.types("send", "Friends", "Later", "-p", ada, "--server", NOBODY).exit_code == 14
    assert "sent" in {each["type"] for each in hand.gets("listen", "-p", ada, "--until-empty")}
    assert f"{ada} in Friends: Later" in hand.types("listen", "-p", bob, "--until-empty").stdout


def test_who_has_never_written_to_a_group_writes_by_its_name_without_a_server(hand: Hand) -> None:
    ada, bob, _ = a_group(hand)
    assert hand.types("send", "Friends", "First words", "-p", bob, "--server", NOBODY).exit_code == 14
    assert "sent" in {each["type"] for each in hand.gets("listen", "-p", bob, "--until-empty")}
    assert f"{bob} in Friends: First words" in hand.types("listen", "-p", ada, "--until-empty").stdout
