"""`nightmail config`."""

from __future__ import annotations

import tomllib

from nightmail.server.config import SETTINGS
from tests.cli.hand import Hand, one_sentence


def test_what_is_shown_is_a_settings_file_with_every_setting(hand: Hand) -> None:
    shown = hand.types("config", "show").stdout
    sections = tomllib.loads(shown)
    assert {f"{section}.{key}" for section, keys in sections.items() for key in keys} == SETTINGS.keys()
    (hand.folder / "all.toml").write_text(shown)
    assert hand.gets("config", "check", "--config", "all.toml") == [{"ok": True, "changed": len(SETTINGS)}]


def test_each_value_says_where_it_came_from(hand: Hand) -> None:
    (hand.folder / "a.toml").write_text("[server]\nport = 9000\n")
    shown = hand.types("config", "show", "--origin", "-c", "a.toml", NIGHTMAIL_SERVER__HOST="0.0.0.0").stdout
    assert "port = 9000  # a.toml" in shown
    assert 'host = "0.0.0.0"  # NIGHTMAIL_SERVER__HOST' in shown
    assert 'folder = "./nightmail-data"  # default' in shown
    (port,) = [
        each for each in hand.gets("config", "show", "--origin", "-c", "a.toml") if each["name"] == "server.port"
    ]
    assert (port["value"], port["origin"]) == ("9000", "a.toml")


def test_secrets_are_not_shown(hand: Hand) -> None:
    shown = hand.types("config", "show", NIGHTMAIL_OPERATOR__TOKEN="0123456789abcdef").stdout
    assert "token = ***" in shown
    assert "0123456789abcdef" not in shown


def test_a_wrong_setting_is_told_in_a_sentence(hand: Hand) -> None:
    (hand.folder / "a.toml").write_text("[server]\nprot = 1\n")
    result = hand.types("config", "check", "-c", "a.toml")
    assert result.exit_code == 2
    assert "did you mean server.port?" in one_sentence(result)
    assert hand.types("config", "check", "-c", "nowhere.toml").exit_code == 2
    assert "differ from their defaults" in hand.types("config", "check").stdout


def test_the_file_and_the_folder_are_named(hand: Hand) -> None:
    folder = str(hand.folder / "nightmail-data")
    assert hand.gets("config", "path") == [{"file": None, "folder": folder}]
    (hand.folder / "a.toml").write_text("")
    found = hand.types("config", "path", NIGHTMAIL_CONFIG=str(hand.folder / "a.toml")).stdout
    assert str(hand.folder / "a.toml") in found
