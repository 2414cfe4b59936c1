"""What the README tells people to try works as it stands there."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from nightmail.client.group_errors import UnknownPerson
from nightmail.testing import RegisteredDevice
from tests.cli.hand import Hand

README = (Path(__file__).parent.parent.parent / "README.md").read_text()
DEFAULT = "http://127.0.0.1:8640"


def test_ten_lines_of_python_send_and_receive(hand: Hand) -> None:
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    assert len([line for line in code.splitlines() if line]) <= 12
    for name in ("carol", "dave"):
        code = code.replace(f'"{name}', f'"{hand.name(name)}')
    code = code.replace(DEFAULT, hand.server.url)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Hello, Dave.\n", "")


def test_the_commands_that_are_shown_can_be_typed(hand: Hand) -> None:
    shown = re.findall(r"^    nightmail (.*)$", README, re.MULTILINE)[:4]
    assert [line.split()[0] for line in shown] == ["register", "register", "send", "listen"]
    typed = [shlex.split(re.sub(r"\b(ada|bob)\b", lambda match: hand.name(match[0]), line)) for line in shown]
    assert [hand.types(*words).exit_code for words in typed[:3]] == [0, 0, 0]
    assert "Hello, Bob." in hand.types(*typed[3], "--until-empty").stdout


def test_the_group_that_is_shown_can_be_made(hand: Hand) -> None:
    shown = re.findall(r"^    nightmail (.*)$", README, re.MULTILINE)[:8]
    assert [line.split()[0] for line in shown[4:]] == ["register", "group", "send", "listen"]
    typed = [shlex.split(re.sub(r"\b(ada|bob|cleo)\b", lambda match: hand.name(match[0]), line)) for line in shown]
    assert [hand.types(*typed[at]).exit_code for at in (0, 1, 4, 5, 6)] == [0, 0, 0, 0, 0]
    assert "in Friends: Lunch at noon?" in hand.types(*typed[7], "--until-empty").stdout


def test_the_bot_answers_in_a_group(hand: Hand) -> None:
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len([line for line in code.splitlines() if line]) <= 10
    code = code.replace('"echo', f'"{hand.name("echo")}').replace(DEFAULT, hand.server.url)
    ada = hand.server.register(hand.name("ada"))
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as bot:
        try:
            assert asyncio.run(_answer(ada, hand.name("echo"))) == f"{ada.handle} said: Hello, robot."
        finally:
            bot.kill()


async def _answer(ada: RegisteredDevice, echo: str) -> str:
    async with asyncio.timeout(300), ada.client() as client:
        group = None
        while group is None:
            # The bot registers when it starts.
            with suppress(UnknownPerson):
                group = await client.create_group("Robots", [echo])
        await client.send(group, "Hello, robot.")
        return (await anext(client.messages())).text
