"""Writes the tables of docs/ that follow from the code:  make docs

Knows:   which table stands under which heading, and where each cell comes from: classes, their fields and docstrings.
Touches: docs/reference.md, docs/protocol.md, docs/configuration.md and docs/operating.md, and nothing in them but those
         tables; deploy/prometheus/alerts.yml as a whole.

`tests/test_tree.py` fails when a page is not what this would write.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import get_args

from msgspec import Struct

from nightmail.client.limits import ClientLimits
from nightmail.client.profile.settings import all_settings
from nightmail.model import answers, refusals, words
from nightmail.model.records import AnyBody, Author, Body, SaidByDevices
from nightmail.server.alerts.rules import alerts_table, rule_file

DOCS = Path(__file__).parent
RULES = DOCS.parent / "deploy" / "prometheus" / "alerts.yml"
Cells = Sequence[str]

AUTHORS = {
    Author.DEVICE: "device", Author.SERVER: "server", Author.SHARD: "another shard", Author.FOLD: "follows",
    Author.TIME: "time", Author.OPERATOR: "operator",
}  # fmt: skip
ENUMERATIONS: tuple[type[IntEnum], ...] = (
    words.Lane,
    words.Kind,
    words.MessageState,
    words.Reason,
    words.Audience,
    words.PresenceState,
    words.Platform,
    words.PushPlatform,
)


def number_of(kind: type[Struct]) -> int:
    number = kind.__struct_config__.tag
    assert isinstance(number, int)
    return number


def by_number(union: object) -> list[type[Struct]]:
    return sorted(get_args(union), key=number_of)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def fields_of(kind: type[Struct]) -> str:
    return code(", ".join(kind.__struct_fields__))


def meaning_of(kind: type) -> str:
    """Its docstring, in one line."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split())


def meanings_of_members(kind: type[IntEnum] | type[Struct]) -> dict[str, str]:
    """Member or field → the docstring under it."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for member, text in zip(definition.body, definition.body[1:], strict=False):
        match member, text:
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words_))),
            ):
                found[name] = " ".join(words_.split())
            case _:
                pass
    return found


# --- the tables -------------------------------------------------------------------------------


def refusals_table() -> Iterable[Cells]:
    yield "code", "name", "word", "retry", "fields", "meaning"
    for kind in by_number(refusals.AnyRefusal):
        assert issubclass(kind, refusals.Refusal)
        retry = "yes" if kind.retry else "no"
        yield f"0x{number_of(kind):02x}", code(kind.__name__), code(kind.word), retry, fields_of(kind), meaning_of(kind)


def records_table() -> Iterable[Cells]:
    yield "tag", "name", "fields", "said by", "fold", "meaning"
    for kind in by_number(AnyBody):
        assert issubclass(kind, Body)
        authors = ", ".join(name for author, name in AUTHORS.items() if kind.said_by & author)
        yield str(number_of(kind)), code(kind.__name__), fields_of(kind), authors, str(kind.since), meaning_of(kind)


def answers_table() -> Iterable[Cells]:
    yield "tag", "name", "fields", "meaning"
    for kind in by_number(answers.Answer):
        yield str(number_of(kind)), code(kind.__name__), fields_of(kind), meaning_of(kind)


def words_table() -> Iterable[Cells]:
    yield "of", "number", "word", "meaning"
    for kind in ENUMERATIONS:
        meanings = meanings_of_members(kind)
        for word in kind:
            yield code(kind.__name__), str(int(word)), code(word.name), meanings.get(word.name, "")


def asked_table() -> Iterable[Cells]:
    yield "number", "record", "fields", "answered by"
    for kind in by_number(SaidByDevices):
        assert issubclass(kind, Body)
        answered = ", ".join(code(answer.__name__) for answer in kind.answered_by)
        yield str(number_of(kind)), code(kind.__name__), fields_of(kind), f"{answered}, or a refusal"


def profile_table() -> Iterable[Cells]:
    yield "setting", "default", "what it is for"
    meanings = meanings_of_members(ClientLimits)
    for each in all_settings().values():
        yield code(each.name), code(f"{each.default:,}"), f"{meanings[each.name]} Allowed: {each.allowed}."


TABLES: dict[str, dict[str, Callable[[], Iterable[Cells]]]] = {
    "reference.md": {
        "Refusals": refusals_table,
        "Records": records_table,
        "Answers": answers_table,
        "Words": words_table,
    },
    "protocol.md": {"Records": asked_table},
    "configuration.md": {"A profile": profile_table},
    "operating.md": {"Alerts": alerts_table},
}
"""Page → heading → the first table under it."""


# --- the pages --------------------------------------------------------------------------------


def drawn(table: Iterable[Cells]) -> list[str]:
    head, *rows = (f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in table)
    return [head, "|" + "---|" * (head.count("|") - 1), *rows]


def rewritten(page: str, tables: dict[str, Callable[[], Iterable[Cells]]]) -> str:
    """The page, with the first table under each heading as the code has it now."""
    lines = page.split("\n")
    for heading, table in tables.items():
        start = next(n for n in range(lines.index(f"## {heading}"), len(lines)) if lines[n].startswith("|"))
        end = next(n for n in range(start, len(lines)) if not lines[n].startswith("|"))
        lines[start:end] = drawn(table())
    return "\n".join(lines)


def main() -> None:
    for name, tables in TABLES.items():
        path = DOCS / name
        path.write_text(rewritten(path.read_text(), tables))
        print(f"docs/{name}: {', '.join(tables)}")
    RULES.write_text(rule_file())
    print("deploy/prometheus/alerts.yml")


if __name__ == "__main__":
    main()
