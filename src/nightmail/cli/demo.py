"""`nightmail demo`: three devices in one picture; one goes offline, the server is killed, the ticks arrive.

Knows:   the story, and how to see at the end whether it is true.
Touches: a real server process and real clients, on a temporary folder.
Never:   paints a tick: everything on the stage is read from the clients.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from nightmail.client import Receipt
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import Tick
from nightmail.testing import RunningServer, running_server

from .failing import Exit, Failure
from .moving import Film
from .own_server import run
from .saying import console, say_json
from .stage import Seat, Stage, rows

FRAME_S = 0.1
BEAT_S = 1.4
"""The time it takes to read a line."""
LONGEST_S = 60.0
"""Nothing in the story takes this long unless something is broken."""
EAGER = ClientLimits(backoff_ms_min=100, backoff_ms_max=300)


@click.command("demo", short_help="Watch three devices and a server that is killed.")
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.svg", help="Also draw it.")
@click.option("--beat", type=click.FloatRange(min=0), default=BEAT_S, metavar="SECONDS", help="Time to read a line.")
@click.option("--json", "as_json", is_flag=True, help="Only what came of it, as one JSON object.")
def command(record: Path | None, beat: float, as_json: bool) -> None:
    """Watch Ada's phone, Bob's phone and Bob's laptop, and a server that is killed in the middle; about 20 seconds.

    The server is a process of its own, the devices are ordinary clients, and the ticks are theirs.
    """
    page = console()
    film = Film() if record else None
    try:
        told = run(_play(page, film, beat, as_json))
    except TimeoutError:
        raise Failure(
            Exit.BROKEN, "The story did not come to its end: something that was sent did not arrive."
        ) from None
    if record and film:
        record.write_text(film.svg("Three devices and a server that is killed: every message arrives once."))
    if as_json:
        say_json(told)
    sys.exit(Exit.DONE if told["kept"] else Exit.BROKEN)


async def _play(page: Console, film: Film | None, beat: float, quiet: bool) -> dict[str, object]:
    async with running_server() as server, asyncio.timeout(LONGEST_S + 60):
        ada = await asyncio.to_thread(server.register, "ada")
        bob = await asyncio.to_thread(server.register, "bob")
        laptop = await asyncio.to_thread(server.link, bob, "laptop")
        seats = [
            Seat("Ada's phone", ada, "bob", "bright_cyan"),
            Seat("Bob's phone", bob, "ada", "bright_magenta"),
            Seat("Bob's laptop", laptop, "ada", "bright_magenta"),
        ]
        stage = Stage(seats, server)
        show = Show(page, stage, film, quiet)
        for seat in seats:
            await _switch_on(seat)
        try:
            async with show:
                await Story(server, seats, stage, show, beat).tell()
        finally:
            for seat in seats:
                await _switch_off(seat)
    screens = [[message.id for message in seat.messages] for seat in seats]
    kept = all(screen == screens[0] for screen in screens) and len(set(screens[0])) == len(screens[0])
    return {"messages": len(screens[0]), "kills": stage.kills, "kept": kept}


async def _switch_on(seat: Seat) -> None:
    seat.client = await seat.device.client(limits=EAGER).__aenter__()


async def _switch_off(seat: Seat) -> None:
    _ = seat.messages  # the screen keeps what it showed
    client, seat.client = seat.client, None
    if client:
        await client.close()


class Show:
    """Ten pictures a second: to the terminal, and to the film. Without a terminal, the captions as lines."""

    def __init__(self, page: Console, stage: Stage, film: Film | None, quiet: bool) -> None:
        self._page, self._stage, self._film, self._quiet = page, stage, film, quiet
        self._live = (
            Live(console=page, auto_refresh=False, vertical_overflow="crop") if page.is_terminal and not quiet else None
        )
        if not film:
            stage.width = page.width
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._live:
            self._live.start()
        self._task = asyncio.create_task(self._draw_all())

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._draw()
        if self._live:
            self._live.stop()
        elif not self._quiet:
            self._page.print(self._stage.draw())

    def say(self, caption: str) -> None:
        self._stage.caption = caption
        if not self._live and not self._quiet:
            self._page.print(caption, markup=False)

    async def _draw_all(self) -> None:
        while True:
            self._draw()
            await asyncio.sleep(FRAME_S)

    def _draw(self) -> None:
        picture = self._stage.draw()
        if self._live:
            self._live.update(picture, refresh=True)
        if self._film:
            self._film.add(asyncio.get_running_loop().time(), rows(picture))


class Story:
    """What happens. Every step waits until it has happened."""

    def __init__(self, server: RunningServer, seats: list[Seat], stage: Stage, show: Show, beat: float) -> None:
        self._server, self._stage, self._show, self._pause = server, stage, show, beat
        self._ada, self._phone, self._laptop = seats

    async def tell(self) -> None:
        ada, phone, laptop = self._ada, self._phone, self._laptop
        await self._beat("A server, Ada's phone, and two devices of Bob's.")
        first = await self._write(ada, "Hi Bob! Dinner tonight?")
        await first.delivered()
        await self._beat("Sent ✓: it is on the server's disk. Delivered ✓✓: a device of Bob's has it on its own disk.")
        await self._read(phone)
        await first.read()
        answer = await self._write(phone, "Gladly. Where?")
        await answer.delivered()
        await self._beat("Bob has read it, and answers. His laptop shows his own words, too.")
        await _switch_off(laptop)
        await self._beat("Bob's laptop goes offline.")
        second = await self._write(ada, "The usual place.")
        third = await self._write(ada, "Bring a coat, it is cold.")
        await third.delivered()
        await self._beat("His phone has the next ones at once. For the laptop they wait on the server.")
        await self._kill()
        await self._beat("kill -9. The server is gone, in the middle of its work.")
        fourth = await self._write(ada, "And the tickets!")
        fifth = await self._write(phone, "Anything else?")
        await self._beat("Both go on writing. What they write is safe in their outboxes ◷.")
        await self._restart()
        await fourth.delivered()
        await fifth.delivered()
        await self._beat("It is back, on the same folder. The devices reconnect, and the ticks arrive.")
        await _switch_on(laptop)
        await self._until(lambda: _ids(laptop) == _ids(phone))
        await self._beat("Bob opens his laptop: everything is there. Once, and in order.")
        await self._read(laptop)
        await self._read(ada)
        for receipt in (second, third, fourth, answer, fifth):
            await receipt.read()
        await self._until(lambda: _ticks(laptop) == _ticks(phone))
        await self._beat("Every message once, in order, on every device; and everybody knows.")

    # --- steps ----------------------------------------------------------------------------------

    async def _beat(self, caption: str) -> None:
        self._show.say(caption)
        await asyncio.sleep(self._pause)

    async def _write(self, seat: Seat, text: str) -> Receipt:
        assert seat.client is not None
        return await seat.client.send(seat.peer, text)

    async def _read(self, seat: Seat) -> None:
        assert seat.client is not None
        await seat.client.read(seat.peer)

    async def _kill(self) -> None:
        self._stage.state = Text("killed with SIGKILL", "bold red")
        self._stage.kills += 1
        await asyncio.to_thread(self._server.kill)

    async def _restart(self) -> None:
        self._stage.state = Text("starting again", "yellow")
        await asyncio.to_thread(self._server.start)
        self._stage.state = Text("serving", "green")

    async def _until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONGEST_S):
            while not so():  # noqa: ASYNC110 (asked of the profiles, which ring no bell)
                await asyncio.sleep(FRAME_S)


def _ids(seat: Seat) -> list[str]:
    return [message.id for message in seat.messages]


def _ticks(seat: Seat) -> list[Tick]:
    return [message.state for message in seat.messages if message.own]
