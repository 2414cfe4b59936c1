"""All scenarios by name, and which of them run by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .figures import Figures
from .group_scenarios import groups
from .live_scenarios import busy, crowd, peers, phone, phone_one_way, phone_open
from .media_scenarios import media
from .offline_scenarios import idle, idle_present, offline, storm
from .presence_scenarios import watchers
from .push_scenarios import push, sleepers
from .scenario_setup import Stage
from .schedule_scenarios import schedule, webhooks
from .size_scenarios import depth

SCENARIOS: dict[str, Callable[[Stage], Iterator[Figures]]] = {
    "phone": phone,
    "phone_one_way": phone_one_way,
    "phone_open": phone_open,
    "busy": busy,
    "crowd": crowd,
    "peers": peers,
    "offline": offline,
    "idle": idle,
    "idle_present": idle_present,
    "watchers": watchers,
    "storm": storm,
    "depth": depth,
    "groups": groups,
    "schedule": schedule,
    "webhooks": webhooks,
    "push": push,
    "sleepers": sleepers,
    "media": media,
}
DEFAULT = tuple(name for name in SCENARIOS if name != "phone_one_way")
