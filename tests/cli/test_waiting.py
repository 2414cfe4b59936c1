"""How long a command waits."""

from __future__ import annotations

import socket

import pytest

from tests.cli.hand import Hand, one_sentence


@pytest.mark.parametrize(
    "words",
    [
        ("block", "bob"),
        ("devices", "list"),
        ("devices", "rename", "1", "phone"),
        ("lock", "remove"),
        ("register", "HANDLE", "--profile", "./new"),
        ("trace", "1:1700000000000:00001:abcd", "--token-file", "token"),
    ],
)
def test_a_server_that_never_answers_is_waited_for_no_longer_than_timeout_says(
    hand: Hand, words: tuple[str, ...]
) -> None:
    ada = hand.registers("ada")
    (hand.folder / "token").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        words = tuple(hand.name("new") if word == "HANDLE" else word for word in words)
        environ = {} if words[0] in {"register", "trace"} else {"NIGHTMAIL_PROFILE": ada}
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        result = hand.types(*words, "--timeout", "0.2", "--server", address, **environ)
    assert (result.exit_code, "within 0.2 seconds" in one_sentence(result)) == (18, True)
