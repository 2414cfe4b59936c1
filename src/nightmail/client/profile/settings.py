"""The file `settings` of a profile: the numbers of `limits.py` that the user changed.

Knows:   which settings there are, and that each lies in its range.
Touches: `settings` in a profile folder. It holds no secret, and is read before the profile is opened.
Never:   ignores a setting that it does not know, or a number that is out of its range: the user meant something.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import structs

from nightmail.client.errors import Misused, ProfileDamaged
from nightmail.client.limits import ClientLimits

from .key_places import write_durably

NAME = "settings"
ORDERED = (("retry_ms_min", "retry_ms_max"), ("backoff_ms_min", "backoff_ms_max"), ("lifetime_ms", "remember_ms"))
"""The first of each pair is at most the second."""


class ProfileSetting(NamedTuple):
    name: str
    default: float
    low: float
    high: float

    @property
    def allowed(self) -> str:
        whole = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{whole} from {self.low:,} to {self.high:,}"


def all_settings() -> dict[str, ProfileSetting]:
    """Every setting by its name, in the order of `limits.py`."""
    found: dict[str, ProfileSetting] = {}
    for field in structs.fields(ClientLimits):
        kind = msgspec.inspect.type_info(field.type)
        assert isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType), field.name
        assert kind.ge is not None, field.name
        assert kind.le is not None, field.name
        found[field.name] = ProfileSetting(field.name, field.default, kind.ge, kind.le)
    return found


def changed(folder: Path) -> dict[str, float]:
    """The settings that the user changed, as they are in the file. Raises ProfileDamaged."""
    try:
        raw = (folder / NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ProfileDamaged(f"{folder / NAME} cannot be read: {error.strerror}") from error
    try:
        return msgspec.json.decode(raw, type=dict[str, float | int])
    except msgspec.DecodeError:
        raise ProfileDamaged(f"{folder / NAME} is not a JSON object of numbers") from None


def limits_of(folder: Path) -> ClientLimits:
    """The numbers of a profile: the defaults, with what the user changed. Raises ProfileDamaged."""
    try:
        return _checked(changed(folder))
    except Misused as error:
        raise ProfileDamaged(f"{folder / NAME}: {error}") from None


def put(folder: Path, name: str, value: str) -> ClientLimits:
    """Change one setting; an empty value is its default again. Raises Misused; nothing has changed then."""
    values = changed(folder)
    values.pop(name, None)
    if value:
        values[name] = _number(name, value)
    limits = _checked({**values, **({} if value else {name: _setting(name).default})})
    write_durably(folder / NAME, msgspec.json.format(msgspec.json.encode(values)) + b"\n")
    return limits


def _setting(name: str) -> ProfileSetting:
    if (setting := all_settings().get(name)) is None:
        raise Misused(f"there is no setting {name!r}")
    return setting


def _number(name: str, value: str) -> float:
    setting = _setting(name)
    try:
        return int(value) if isinstance(setting.default, int) else float(value)
    except ValueError:
        raise Misused(f"{name} is {setting.allowed}, not {value!r}") from None


def _checked(values: dict[str, float]) -> ClientLimits:
    for name, value in values.items():
        setting = _setting(name)
        is_whole = isinstance(value, int)
        if (isinstance(setting.default, int) and not is_whole) or not setting.low <= value <= setting.high:
            raise Misused(f"{name} is {setting.allowed}, not {value}")
    limits = msgspec.convert(values, ClientLimits)
    for low, high in ORDERED:
        if getattr(limits, low) > getattr(limits, high):
            raise Misused(f"{low} ({getattr(limits, low)}) is above {high} ({getattr(limits, high)})")
    return limits
