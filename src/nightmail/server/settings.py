"""What a setting is: a field of a struct, with its type, its bounds, its help and its default.

Knows:   how a value is written in a file, in the environment and on the command line.
Touches: the source of the structs, once: a field's docstring is its help.
Never:   holds a value; `config.py` does.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec import inspect as shapes

NUMBER_MAX = (1 << 53) - 1
"""What every language can count to."""

UNITS = (
    ("_ms", "ms"), ("_bytes", "bytes"), ("_kib", "KiB"), ("_s", "per second"), ("_minute", "per minute"),
    ("_hour", "per hour"), ("_day", "per day"),
)  # fmt: skip
"""A unit comes last in a name."""

NEVER = "never"
NEVER_ENDS = frozenset({"ttl_ms", "dead_letters_ms"})
"""Lifetimes for which 0 means that nothing ends; "never" says the same."""

Value: TypeAlias = int | str | bool | tuple[int, ...]
Bounds: TypeAlias = tuple[int, int]


class BadSetting(Exception):
    """A setting that cannot be used. The text is one sentence for the operator."""


class Setting(Struct, frozen=True):
    """One thing that can be set."""

    section: str
    key: str
    kind: type
    """int, str, bool or tuple (of int)."""
    default: Value
    help: str
    bounds: Bounds = (0, NUMBER_MAX)
    choices: tuple[str, ...] = ()
    secret: bool = False

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"NIGHTMAIL_{self.section}__{self.key}".upper()

    @property
    def flag(self) -> str:
        return f"--{self.section}-{self.key}".replace("_", "-")

    @property
    def unit(self) -> str:
        return next((unit for ending, unit in UNITS if self.kind is not str and self.key.endswith(ending)), "")

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        low, high = self.bounds
        span = f"of {low:,} or more" if high == NUMBER_MAX else f"from {low:,} to {high:,}"
        match self.kind:
            case _ if self.choices:
                return "one of " + ", ".join(self.choices)
            case kind if kind is bool:
                return "true or false"
            case kind if kind is str:
                return "text"
            case kind if kind is tuple:
                return f"whole numbers {span}, with commas between"
            case _ if self.key in NEVER_ENDS:
                return f"a whole number {span}, or {NEVER}"
            case _:
                return f"a whole number {span}"

    def read(self, text: str, origin: str) -> Value:
        """A value as it stands in the environment or on the command line."""
        text = text.strip() if self.kind is not str else text
        try:
            if self.kind is int:
                return self.check(text if text == NEVER else int(text), origin)
            if self.kind is tuple:
                return self.check(tuple(int(part) for part in text.split(",")), origin)
            if self.kind is bool:
                return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        except (ValueError, KeyError):
            raise self.refuse(text, origin) from None
        return self.check(text, origin)

    def check(self, value: object, origin: str) -> Value:
        """A value of whatever type a file may hold."""
        low, high = self.bounds
        match value:
            case bool() if self.kind is bool:
                return value
            case bool():
                pass
            case str() if value == NEVER and self.key in NEVER_ENDS:
                return 0
            case int() if self.kind is int and low <= value <= high:
                return value
            case str() if self.kind is str and (not self.choices or value in self.choices) and "\0" not in value:
                return value
            case list() | tuple() if self.kind is tuple and value:
                parts = cast("list[object]", list(value))  # pyright: ignore[reportUnknownArgumentType]
                whole = [part for part in parts if type(part) is int and low <= part <= high]
                if len(whole) == len(parts):
                    return tuple(whole)
                value = parts
            case _:
                pass
        raise self.refuse(value, origin)

    def refuse(self, value: object, origin: str) -> BadSetting:
        shown = "what it was given" if self.secret else _short(value)
        return BadSetting(f"{self.name} ({origin}) cannot be {shown}: it is {self.allowed}")


def settings_of(
    section: str, struct: type[Struct], bounds: Mapping[str, Bounds], secrets: frozenset[str]
) -> Iterator[Setting]:
    """The settings that a struct's fields are."""
    helps = helps_of(struct)
    info = shapes.type_info(struct)
    assert isinstance(info, shapes.StructType)
    for field in info.fields:
        if isinstance(field.type, shapes.StructType):
            continue  # its fields are settings of their own
        default: Any = field.default if field.default is not NODEFAULT else field.default_factory()
        match field.type:
            case shapes.BoolType():
                kind, choices = bool, ()
            case shapes.IntType():
                kind, choices = int, ()
            case shapes.StrType():
                kind, choices = str, ()
            case shapes.LiteralType(values=values):
                kind, choices = str, tuple(map(str, values))
            case shapes.VarTupleType():
                kind, choices = tuple, ()
            case other:
                raise AssertionError(f"{struct.__name__}.{field.name}: no setting can be {other}")
        # Nothing, where it is not said otherwise, would mean a server that does nothing.
        low = 0 if default == 0 else 1
        yield Setting(
            section, field.name, kind, default, helps.get(field.name, ""),
            bounds.get(field.name, (low, NUMBER_MAX)), choices, field.name in secrets,
        )  # fmt: skip


def helps_of(struct: type[Struct]) -> dict[str, str]:
    """The docstring under each field. Python does not keep it, but its source does."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    assert isinstance(tree, ast.ClassDef)
    helps: dict[str, str] = {}
    field = ""
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                field = name
            case ast.Expr(value=ast.Constant(value=str(text))) if field:
                helps[field] = " ".join(text.split())
                field = ""
            case _:
                field = ""
    return helps


def written(value: Value) -> str:
    """A value as it would be written in a TOML file."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case _:
            return msgspec.json.encode(value).decode()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
