"""All scenarios by name, and which of them run when nobody says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .absent import idle, offline, storm
from .depth import depth
from .figures import Figures
from .stage import Stage
from .talking import busy, crowd, peers, phone, phone_one_way, phone_open

SCENARIOS: dict[str, Callable[[Stage], Iterator[Figures]]] = {
    "phone": phone,
    "phone_one_way": phone_one_way,
    "phone_open": phone_open,
    "busy": busy,
    "crowd": crowd,
    "peers": peers,
    "offline": offline,
    "idle": idle,
    "storm": storm,
    "depth": depth,
}
DEFAULT = tuple(name for name in SCENARIOS if name != "phone_one_way")
