"""The chat in a real terminal: a process, a pty, keys; and nothing said outside of its window."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys

import pytest

from tests.cli.hand import Hand, one_sentence

TITLE = re.compile(rb"\x1b\][012];([^\x07\x1b]*)")


class Terminal:
    def __init__(self, *words: str) -> None:
        self._master, slave = pty.openpty()
        environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        command = [sys.executable, "-m", "nightmail", *words]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environ)
        os.close(slave)
        self.seen = b""

    def until(self, words: bytes) -> None:
        while words not in self.seen:
            assert self._read(), self.seen[-2_000:]

    def types(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def ends(self) -> int:
        while self._read():
            pass
        os.close(self._master)
        return self.process.wait(timeout=120)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 120)
        try:
            said = os.read(self._master, 1 << 16) if ready else b""
        except OSError:  # how a pty says that nobody holds the other end any more
            return False
        self.seen += said
        return bool(said)


def test_a_message_is_typed_sent_and_the_window_leaves_no_trace_of_it(hand: Hand) -> None:
    ada, bob = hand.registers("ada"), hand.registers("bob")
    terminal = Terminal("chat", bob, "--profile", ada)
    terminal.until(b"Write a message")
    terminal.types(b"Hello from a terminal\r")
    terminal.until("✓".encode())
    terminal.types(b"\x11")
    assert terminal.ends() == 0
    assert all(b"Hello" not in title and bob.encode() not in title for title in TITLE.findall(terminal.seen))
    # Back on the ordinary screen, nothing of the conversation is left.
    assert b"Hello" not in terminal.seen.rpartition(b"\x1b[?1049l")[2]
    texts = [each["text"] for each in hand.gets("listen", "-p", bob, "--until-empty") if each["type"] == "message"]
    assert texts == ["Hello from a terminal"]


def test_without_a_terminal_or_without_textual_it_says_what_to_do(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    hand.registers("ada")
    piped = hand.types("chat")
    assert (piped.exit_code, "needs a terminal" in one_sentence(piped)) == (2, True)
    monkeypatch.setattr("nightmail.cli.commands.chat.find_spec", lambda _: None)
    bare = hand.types("chat")
    assert (bare.exit_code, "nightmail[tui]" in one_sentence(bare)) == (2, True)
