"""`nightmail clock`."""

from __future__ import annotations

from nightmail.cli.json_shapes import time_fields
from tests.cli.hand import Hand, one_sentence


def test_an_operator_is_shown_the_time_of_a_server(hand: Hand) -> None:
    folder = str(hand.server.folder)
    (seen,) = hand.gets("clock", "show", "--data", folder)
    shown = {"state": "believed", **time_fields("clock", seen["clock_ms"]), **time_fields("time", seen["clock_ms"])}
    assert seen == shown
    assert "goes by the machine's clock" in hand.types("clock", "show", "--data", folder).stdout


def test_time_that_is_right_is_not_set_back(hand: Hand) -> None:
    refused = hand.types("clock", "set-back", "--data", str(hand.server.folder))
    assert refused.exit_code == 12
    assert "not far ahead of the machine's clock" in one_sentence(refused)
