"""Draws a scene for the terminal: servers, people with their queues, ticks, faults, counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sim.world.cluster import NODES
from sim.world.device import Device
from sim.world.world import Fault

from .scene import Place, Queues, Scene, Tick, places

WIDE = 108
"""Columns from which on panels stand side by side."""
TALL = 13
"""As many lines as a panel needs: four people with three devices each, and a heading."""
BORDERS = 2
STATES = {"up": ("●", "green"), "recovering": ("◐", "yellow"), "down": ("○", "red bold")}
TICKS = {
    Tick.WAITING: ("⏱ ", "dim"),
    Tick.SENT: ("✓ ", "default"),
    Tick.DELIVERED: ("✓✓", "default"),
    Tick.READ: ("✓✓", "bold dodger_blue1"),
    Tick.FAILED: ("✗ ", "bold red"),
    Tick.WITHDRAWN: ("✗ ", "dim"),
}
BAD = ("loses", "is killed", "cannot open", "crashes", "is lost", "is full", "fails", "does not say", "times out")
BAR = 6


@dataclass
class Score:
    """What all days together have come to."""

    days: int = 0
    messages: int = 0
    events: int = 0
    power_cuts: int = 0
    takeovers: int = 0
    replays: int = 0
    broken: str = ""
    """The promise that was not kept; the show ends there."""

    @property
    def lost(self) -> int:
        return int(self.broken == "nothing lost")

    @property
    def doubled(self) -> int:
        return int(self.broken == "nothing twice")

    @property
    def judged(self) -> str:
        return f"{self.days} day{'s' * (self.days != 1)} judged, {self.messages:,} messages"

    def add(self, scene: Scene) -> None:
        self.days += 1
        self.messages += scene.sent
        self.events += scene.world.events
        self.power_cuts += scene.power_cuts
        self.takeovers += scene.world.sometimes["taken over"]
        self.replays += scene.world.sometimes["replay compared"]


def draw(scene: Scene, score: Score, speed: float, width: int, height: int) -> RenderableType:
    """A frame of at most `height` lines, or as few as make sense."""
    servers, counts = _servers(scene, width, max(3, height // 6)), _counts(scene, score)
    head = (_header(scene, speed), _box(_place(scene), servers, len(servers)))
    rest = height - 1 - (len(servers) + BORDERS)
    if width < WIDE:
        counts = counts[-2:]
        lines = rest - 3 * BORDERS - len(counts)
        part = max(2, lines * 3 // 10)
        return Group(
            *head,
            _box("devices", _people(scene), max(2, lines - 2 * part)),
            _box("messages", _messages(scene), part),
            _box("faults", _faults(scene, part), part),
            *counts,
        )
    middle = max(2, min(rest - 2 * BORDERS - len(counts), TALL))
    bottom = max(len(counts), min(rest - 2 * BORDERS - middle, TALL))
    return Group(
        *head,
        _beside(_box("devices", _people(scene), middle), _box("messages", _messages(scene), middle)),
        _beside(_box("faults", _faults(scene, bottom), bottom), _box("so far today", counts, bottom)),
    )


def _box(title: str, lines: Sequence[Text], height: int) -> Panel:
    lines = [*lines[:height], *[Text()] * (height - len(lines))]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Panel(Group(*lines), title=title, title_align="left", border_style="dim", padding=(0, 1))


def _beside(left: Panel, right: Panel) -> Table:
    table = Table.grid(expand=True)
    table.add_column(ratio=3)
    table.add_column(ratio=2)
    table.add_row(left, right)
    return table


def _header(scene: Scene, speed: float) -> Text:
    phase = ("healing: nothing fails any more", "green") if scene.town.healing else ("a bad day", "red")
    return Text.assemble(
        ("Nightmail", "bold"), f"  day {scene.day} · seed {scene.plan.seed} · ",
        (clock(scene.world.elapsed_ms), "bold"), f" of {clock(round(scene.plan.seconds * 1000))} · ", phase,
        (f" · {speed:.3g} simulated seconds per second · Ctrl-C ends" if speed else "", "dim"),
        no_wrap=True, overflow="ellipsis",
    )  # fmt: skip


def _place(scene: Scene) -> str:
    if scene.plan.mode == "node":
        return "one node: real gateway, loop, log and rows on a simulated disk"
    return f"cluster: {len(places(scene.machine))} shards on {NODES} nodes (saved/log, unsaved rows)"


def clock(ms: int) -> str:
    return f"{ms // 60_000:02}:{ms % 60_000 / 1000:04.1f}"


# --- servers ----------------------------------------------------------------------------------


def _servers(scene: Scene, width: int, most: int) -> list[Text]:
    """Where there are more shards than room, those that are not up, and those with the most to do."""
    found = places(scene.machine)
    if scene.plan.mode == "node":
        (node,) = found
        mark, style = STATES[node.state]
        saved = f"saved up to {_number(node.pointer)}   log ends at {_number(node.log_end)}   "
        line = [(f"{mark} {node.state:<12}", style), f"{saved}unsaved rows {_number(node.unsaved)}   "]
        return [Text.assemble(*line, (node.where, "red"))]
    across = max(1, min((width - 4) // 44, 4))
    down = min(-(-len(found) // across), most)
    news = sorted(found, key=lambda place: (place.state == "up", -(place.log_end or 0)))[: across * down]
    shown = [place for place in found if place in news]
    return [Text.assemble(*(part for place in shown[row::down] for part in _shard(place))) for row in range(down)]


def _shard(place: Place) -> list[tuple[str, str]]:
    mark, style = STATES[place.state]
    marks = f"{_number(place.pointer)}/{_number(place.log_end)}"
    return [
        (f"{mark} {place.name:<9}", style),
        (f"{marks:>10} {_number(place.unsaved):>3}  ", "default"),
        (f"{place.where:<18}", "magenta" if "zombie" in place.where else "dim"),
    ]


def _number(number: int | None) -> str:
    return "–" if number is None else f"{number}"


# --- people -----------------------------------------------------------------------------------


def _people(scene: Scene) -> list[Text]:
    lines = [Text(f"{'':<22}{'outbox':>6}  {'normal':<{BAR + 4}} {'high':<{BAR + 4}}{'receipts':>9}", style="dim")]
    for person in scene.town.people:
        lines += [_device(device, scene.queues.get(device.me.device, Queues())) for device in person.devices]
    return lines


def _device(device: Device, held: Queues) -> Text:
    if not device.wants_online:
        state, style = "○ offline", "red"
    elif not device.online:
        state, style = "◌ connecting", "yellow"
    else:
        state, style = "● online", "green"
    outbox = device.store.waiting
    return Text.assemble(
        f"{device.name:<9}", (f"{state:<13}", style), (f"{outbox or '·':>6}  ", "yellow" if outbox else "dim"),
        *_bar(held.normal, "cyan"), " ", *_bar(held.high, "magenta"),
        (f"{held.receipts or '·':>9}", "default" if held.receipts else "dim"),
    )  # fmt: skip


def _bar(number: int, style: str) -> Iterable[tuple[str, str]]:
    if number:
        return ((f"{'▪' * min(number, BAR):<{BAR}}", style), (f"{number:>4}", style))
    return ((f"{'':<{BAR}}{'·':>4}", "dim"),)


# --- messages ---------------------------------------------------------------------------------


def _messages(scene: Scene) -> list[Text]:
    devices = {device.me.device: device.name for device in scene.town.devices}
    accounts = {person.account: person.handle for person in scene.town.people}
    lines: list[Text] = []
    for message, tick, why in reversed(scene.ticks.followed):
        mark, style = TICKS[tick]
        by = devices.get(message.by, "(lost)")
        label = why if tick is Tick.FAILED else tick.value
        lines.append(
            Text.assemble(
                (f"{mark} ", style), f"{by:<8} → {accounts[message.to]:<6}", (f" {message.n:>3} ", "dim"),
                ("!" if message.lane else " ", "magenta"), (f" {label}", style),
            )
        )  # fmt: skip
    return lines


# --- faults and counts ------------------------------------------------------------------------


def fault_line(scene: Scene, fault: Fault) -> str:
    what = fault.what
    if what.startswith(("blocks ", "unblocks ")):
        for person in scene.town.people:
            what = what.replace(f"{person.account:x}", person.handle)
    return f"{fault.who} {what}" + (f" ×{fault.times}" if fault.times > 1 else "")


def _faults(scene: Scene, most: int) -> list[Text]:
    def style(fault: Fault) -> str:
        return "red" if fault.what.startswith(BAD) else "green" if fault.what.startswith("is up") else "yellow"

    return [
        Text.assemble((f"{clock(fault.at_ms)}  ", "dim"), (fault_line(scene, fault), style(fault)))
        for fault in list(scene.world.faults)[-most:]
    ]


def _counts(scene: Scene, score: Score) -> list[Text]:
    counts, sometimes = scene.ticks.counts, scene.world.sometimes
    read = counts[Tick.READ]
    delivered = read + counts[Tick.DELIVERED]
    pairs = [
        ("sent", delivered + counts[Tick.SENT] + counts[Tick.FAILED], "delivered", delivered),
        ("read", read, "failed", counts[Tick.FAILED]),
    ]
    if scene.plan.mode == "node":
        pairs.append(("power cuts", scene.power_cuts, "kills", sometimes["killed"]))
    else:
        zombies = sum(times for what, times in sometimes.items() if what.startswith("zombie"))
        pairs.append(("takeovers", sometimes["taken over"], "by zombies", zombies))
    pairs.append(("twins dropped", sometimes["redelivered and dropped"], "replays", sometimes["replay compared"]))
    lines = [Text(f"{a:<14}{x:>6,}   {b:<11}{y:>6,}") for a, x, b, y in pairs]
    lines.append(Text(f"{score.judged}:", style="dim"))
    lines.append(
        Text(f"lost {score.lost}, doubled {score.doubled}", style="bold red" if score.broken else "bold green")
    )
    return lines
