"""`nightmail register`."""

from __future__ import annotations

from nightmail.cli.profiles import base, folder_for, handle_of, named, short_name
from nightmail.testing import running_server
from tests.cli.hand import NOBODY, Hand, one_sentence


def test_an_account_gets_a_profile_that_remembers_its_server(hand: Hand) -> None:
    ada = hand.name("ada")
    (made,) = hand.gets("register", ada)
    assert made.keys() == {"handle", "account", "device", "profile", "servers"}
    assert (made["handle"], made["profile"], made["servers"]) == (ada, str(base() / ada), [hand.server.url])
    assert (base() / ada / "servers").read_text() == f"{hand.server.url}\n"
    said = hand.types("register", hand.name("bob")).stdout
    assert f"listen --profile {hand.name('bob')}" in said


def test_registering_again_is_the_same_device(hand: Hand) -> None:
    first = hand.gets("register", hand.name("ada"))
    assert hand.gets("register", hand.name("ada")) == first


def test_a_taken_handle_is_refused_in_a_sentence_and_leaves_nothing_behind(hand: Hand) -> None:
    ada = hand.registers("ada")
    again = hand.types("register", ada, "--profile", str(hand.folder / "other"))
    assert again.exit_code == 12
    assert "taken. Choose another one" in one_sentence(again)
    assert not (hand.folder / "other").exists()


def test_without_a_server_it_says_so_and_the_next_attempt_goes_on_where_it_was(hand: Hand) -> None:
    ada = hand.name("ada")
    alone = hand.types("register", ada, "--server", NOBODY)
    assert alone.exit_code == 11
    assert one_sentence(alone).startswith(f"{NOBODY} cannot be reached: nothing listens there. Start one")
    assert hand.gets("register", ada)[0]["handle"] == ada


def test_a_profile_belongs_to_one_handle(hand: Hand) -> None:
    hand.gets("register", hand.name("ada"), "--profile", "./mine")
    other = hand.types("register", hand.name("bob"), "--profile", "./mine")
    assert other.exit_code == 2
    assert "belongs to" in one_sentence(other)


def test_an_address_that_is_none_is_a_mistake_of_usage(hand: Hand) -> None:
    result = hand.types("register", hand.name("ada"), "--server", "ftp://x")
    assert result.exit_code == 2
    assert one_sentence(result).startswith("Not a server's address: ftp://x; write it like https://host:port.")
    assert not folder_for(hand.name("ada")).exists()


def test_a_profile_that_exists_stays_with_its_server(hand: Hand) -> None:
    ada = hand.registers("ada")
    with running_server() as other:
        result = hand.types("register", ada, "--server", other.url)
        assert (result.exit_code, "another server" in one_sentence(result)) == (12, True)
    assert (folder_for(ada) / "servers").read_text() == f"{hand.server.url}\n"
    gone = hand.types("register", ada, "--server", NOBODY)
    assert gone.exit_code == 11
    assert (folder_for(ada) / "servers").read_text() == f"{hand.server.url}\n"


def test_an_empty_handle_is_refused_and_writes_nothing(hand: Hand) -> None:
    for words in (("register", ""), ("link", "")):
        result = hand.types(*words)
        assert (result.exit_code, "cannot be empty" in one_sentence(result)) == (2, True)
    assert not base().exists()


def test_the_suggested_profile_works_whatever_the_handle_is(hand: Hand) -> None:
    for handle in ("a/b", "..", "%2F"):
        folder = folder_for(handle)
        assert named(short_name(folder)) == folder


def test_a_profile_that_cannot_be_read_is_told_in_a_sentence(hand: Hand) -> None:
    for words in (("register", hand.name("ada"), "--profile", "x" * 300), ("listen", "--profile", "x" * 300)):
        result = hand.types(*words)
        assert (result.exit_code, "File name too long" in one_sentence(result)) == (5, True)


def test_bytes_that_are_no_text_are_a_mistake_of_usage(hand: Hand) -> None:
    result = hand.types("register", "x\udcff")
    assert (result.exit_code, "not UTF-8" in one_sentence(result)) == (2, True)


def test_a_handle_cannot_lead_out_of_the_folder_of_profiles() -> None:
    for handle in ("../x", "..", ".", "a/b", "a%2Fb", "%", "ä ö", "a\0b"):
        folder = folder_for(handle)
        assert folder.parent == base()
        assert folder.name not in {"", ".", ".."}
        assert handle_of(folder) == handle
