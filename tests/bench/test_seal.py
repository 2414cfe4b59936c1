"""The cost of a send on a client is measured at all: its stand-in of a server says what clients ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.group_sending import GroupSender
from bench.seal import Senders, add_group


@pytest.mark.parametrize("members", [2, 5])
def test_the_first_message_to_a_group_is_sent(members: int, tmp_path: Path) -> None:
    senders: Senders = {}
    assert add_group(tmp_path, members, senders) > 0
    ((name, sender),) = senders.items()
    assert name == f"send to {members} members"
    assert isinstance(sender, GroupSender)
    assert (sender.claims, sender.envelopes > 0) == (members - 1, True), "everybody has the chain"
