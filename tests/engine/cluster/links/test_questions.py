from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nightmail.engine.cluster.links.questions import ASKED, RemoteOwner, put
from nightmail.engine.cluster.ports import OwnerQuestions
from nightmail.model.group_questions import ChainAsked
from nightmail.model.refusals.groups import UnknownGroup
from nightmail.model.rows import Account, Entry, Gap, GroupEntry
from nightmail.model.words import Kind, Lane, Reason


class Answering:
    """An owner that answers each question with what it was told to."""

    def __init__(self, *found: Any) -> None:
        self.found, self.asked = found, list[tuple[str, dict[str, Any]]]()

    def __getattr__(self, name: str) -> Any:
        def answer(**given: Any) -> None:
            then = given.pop("then", None)
            self.asked.append((name, given))
            if then:
                then(*self.found)

        return answer


def over_a_link(owner: Any) -> RemoteOwner:
    return RemoteOwner(lambda name, data, reply: put(owner, name, data, reply or (lambda _: None)))


def test_every_question_of_an_owner_goes_over_a_link() -> None:
    assert set(ASKED) == {name for name in dir(OwnerQuestions) if not name.startswith("_")}
    assert len(ASKED) > 10


def test_what_is_offered_comes_as_runs_and_gaps() -> None:
    of_a_pair = Entry(1, 2, 3, "id", b"tag", Kind.TEXT, None, 5, 0, b"sealed")
    of_a_group = GroupEntry(1, 4, 3, "id", b"tag", Kind.TEXT, None, 5, 0, b"sealed", 6, 7, Lane.HIGH)
    runs = [Gap(1, 3, Reason.EXPIRED), (4, (of_a_pair, of_a_group))]
    owner, heard = Answering(runs, True), list[Any]()
    over_a_link(owner).offer(77, Lane.HIGH, 0, 10, 1_000, lambda *found: heard.append(found))
    assert heard == [(runs, True)]
    assert owner.asked == [("offer", {"device": 77, "lane": Lane.HIGH, "after": 0, "limit": 10, "limit_bytes": 1_000})]


def test_a_row_that_is_shown_is_a_copy() -> None:
    account = Account(handle="ada")
    heard = list[Any]()
    over_a_link(Answering(account)).account(5, heard.append)
    assert heard == [account]
    assert heard[0] is not account


def test_groups_are_asked_and_answered_by_the_name_of_their_type() -> None:
    owner, heard = Answering(UnknownGroup(8)), list[Any]()
    question = ChainAsked(*range(1, len(ChainAsked.__struct_fields__) + 1))
    over_a_link(owner).about_group(question, heard.append)
    assert (heard, owner.asked) == ([UnknownGroup(8)], [("about_group", {"question": question})])


def test_what_nobody_answers_is_told_all_the_same() -> None:
    owner = Answering()
    over_a_link(owner).note_connection(7, here=True)
    assert owner.asked == [("note_connection", {"device": 7, "here": True})]


def test_bytes_that_are_no_question_reach_no_owner() -> None:
    owner: Any = Answering()
    with pytest.raises(KeyError):
        put(owner, "__class__", b"", lambda _: None)
    with pytest.raises(msgspec.DecodeError):
        put(owner, "account", b"\xff", lambda _: None)
    assert owner.asked == []
