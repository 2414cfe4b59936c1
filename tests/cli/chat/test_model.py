"""What a chat shows, as values."""

from __future__ import annotations

from nightmail.cli.chat.lines import Notice
from nightmail.cli.chat.model import ConnectionState, ConversationSummary, Model, Status
from nightmail.client.events import Connected, Disconnected, Ended, QueueEmpty, Retrying, SentAck, WaitingForNetwork


def test_the_status_follows_the_connection() -> None:
    status = Status()
    assert (status.state, status.words) == (ConnectionState.CONNECTING, "connecting")
    status = status.after(Connected("node", 1))
    assert status.words == "online"
    assert status.after(QueueEmpty()) is status
    status = status.after(Disconnected("gone", 1006)).after(Retrying("ws://x", 4_000))
    assert status.words == "offline, trying again in 4 s"
    status = status.after(WaitingForNetwork("c", ("a", "b"))).after(WaitingForNetwork("c", ("b",)))
    assert status.words.endswith("2 waiting for the network")
    status = status.after(Connected("node", 2)).after(SentAck("a", "c", 3)).after(SentAck("b", "c", 3))
    assert status.words == "online"
    assert status.after(Ended(4001, "another took its place")).words == "ended: another took its place"


def test_the_status_says_why_there_is_no_connection() -> None:
    status = Status().after(Retrying("wss://x", 4_000, "its certificate is not trusted"))
    assert status.words == "offline: its certificate is not trusted, trying again in 4 s"
    assert status.after(Connected("n", 1)).words == "online"


def test_conversations_stand_newest_first_then_by_name() -> None:
    model = Model()
    model.show(
        [
            ConversationSummary(1, "zoe"),
            ConversationSummary(2, "Adam"),
            ConversationSummary(3, "bob", at=5, unread=2),
            ConversationSummary(4, "carol", at=9, unread=1),
        ]
    )
    assert [summary.name for summary in model.conversations] == ["carol", "bob", "Adam", "zoe"]
    assert model.unread == 3


def test_what_was_begun_comes_back_and_an_answer_is_left_off_when_one_turns_away() -> None:
    model = Model()
    assert model.open_conversation_with(1, "nowhere") == ""
    model.replying_to = "m"
    assert model.open_conversation_with(2, "half a sen") == ""
    assert model.replying_to == ""
    assert model.open_conversation_with(1, "") == "half a sen"
    assert model.open_conversation_with(2, "") == ""


def test_notices_belong_to_their_conversation() -> None:
    model = Model()
    model.note(1, Notice(5, "security code changed", grave=True))
    assert model.notices() == ()
    model.open_conversation_with(1, "")
    assert model.notices() == [Notice(5, "security code changed", grave=True)]
