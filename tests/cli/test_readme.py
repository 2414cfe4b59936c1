"""What the README tells people to try works as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.hand import Hand

README = (Path(__file__).parent.parent.parent / "README.md").read_text()
DEFAULT = "http://127.0.0.1:8640"


def test_ten_lines_of_python_send_and_receive(hand: Hand) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 12
    for name in ("carol", "dave"):
        code = code.replace(f'"{name}', f'"{hand.name(name)}')
    code = code.replace(DEFAULT, hand.server.url)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Hello, Dave.\n", "")


def test_the_commands_that_are_shown_can_be_typed(hand: Hand) -> None:
    shown = re.findall(r"^    nightmail (.*)$", README, re.MULTILINE)[:4]
    assert [line.split()[0] for line in shown] == ["register", "register", "send", "listen"]
    typed = [shlex.split(re.sub(r"\b(ada|bob)\b", lambda match: hand.name(match[0]), line)) for line in shown]
    assert [hand.types(*words).exit_code for words in typed[:3]] == [0, 0, 0]
    assert "Hello, Bob." in hand.types(*typed[3], "--until-empty").stdout
