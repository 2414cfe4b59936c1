"""Questions to an owner on another node, as bytes and back.

Knows:   what `OwnerQuestions` asks, and the types of what it is asked and answers with, from its own signatures.
Never:   builds on bytes that do not have these types: they raise, and the question counts as lost.

A row that is shown is written down at once, because it changes after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec

from nightmail.core.state import decode_entry
from nightmail.engine import ports as engine_ports
from nightmail.engine.blobs import port as blob_ports
from nightmail.engine.cluster.ports import OwnerQuestions
from nightmail.engine.ports import Offered
from nightmail.model import group_questions
from nightmail.model.group_questions import GroupAnswer, GroupQuestion
from nightmail.model.refusals.groups import NotMember, UnknownGroup
from nightmail.model.rows import Entry, Gap

OfferedForm = list[tuple[int, tuple[msgspec.Raw, ...], Gap | None]]
"""Runs and gaps in one form: a gap has no entries. Those that came through a group are told apart by their length."""
Named = tuple[str, msgspec.Raw]
"""One of several types, with its name."""

_GROUP_TYPES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (*get_args(GroupQuestion), *get_args(GroupAnswer), UnknownGroup, NotMember)
}


def _to_named(value: Any) -> Named:
    return type(value).__name__, msgspec.Raw(msgspec.msgpack.encode(value))


def _from_named(value: Named) -> Any:
    name, data = value
    return msgspec.msgpack.decode(data, type=_GROUP_TYPES[name])


def _to_offered(runs: Sequence[Offered]) -> list[tuple[int, Sequence[Entry], Gap | None]]:
    return [(0, (), run) if isinstance(run, Gap) else (*run, None) for run in runs]


def _from_offered(runs: OfferedForm) -> list[Offered]:
    return [
        gap if gap is not None else (first, tuple(decode_entry(bytes(entry)) for entry in entries))
        for first, entries, gap in runs
    ]


class _Form(NamedTuple):
    """How values of one type are written, where msgspec alone could not tell them apart."""

    type: Any
    to: Callable[[Any], Any] = lambda value: value
    back: Callable[[Any], Any] = lambda value: value


def _form_of(kind: Any) -> _Form:
    if kind in (GroupQuestion, GroupAnswer):
        return _Form(Named, _to_named, _from_named)
    if kind == Sequence[Offered]:
        return _Form(OfferedForm, _to_offered, _from_offered)
    return _Form(kind)


class Asked(NamedTuple):
    """One method of `OwnerQuestions`."""

    names: tuple[str, ...]
    arguments: tuple[_Form, ...]
    results: tuple[_Form, ...] | None
    """None: it is not answered."""
    read_arguments: msgspec.msgpack.Decoder[Any]
    read_results: msgspec.msgpack.Decoder[Any]

    def write(self, given: Sequence[Any]) -> bytes:
        return msgspec.msgpack.encode([form.to(value) for form, value in zip(self.arguments, given, strict=True)])

    def read(self, data: bytes) -> dict[str, Any]:
        values = self.read_arguments.decode(data)
        return {name: form.back(value) for name, form, value in zip(self.names, self.arguments, values, strict=True)}

    def write_result(self, *found: Any) -> bytes:
        return msgspec.msgpack.encode([form.to(value) for form, value in zip(self.results or (), found, strict=True)])

    def read_result(self, data: bytes) -> list[Any]:
        values = self.read_results.decode(data)
        return [form.back(value) for form, value in zip(self.results or (), values, strict=True)]


def _asked(name: str) -> Asked:
    known = {**vars(blob_ports), **vars(group_questions), **vars(engine_ports)}
    hints = get_type_hints(getattr(OwnerQuestions, name), known)
    hints.pop("return", None)
    then = hints.pop("then", None)
    arguments = tuple(map(_form_of, hints.values()))
    results = tuple(map(_form_of, get_args(then)[0])) if then is not None else None
    return Asked(
        tuple(hints), arguments, results,
        msgspec.msgpack.Decoder(tuple[tuple(form.type for form in arguments)]),  # pyright: ignore[reportInvalidTypeArguments]
        msgspec.msgpack.Decoder(tuple[tuple(form.type for form in results or ())]),  # pyright: ignore[reportInvalidTypeArguments]
    )  # fmt: skip


ASKED: dict[str, Asked] = {name: _asked(name) for name in dir(OwnerQuestions) if not name.startswith("_")}
"""Name of a method → how it goes over a link."""


def put(owner: OwnerQuestions, name: str, data: bytes, reply: Callable[[bytes], None]) -> None:
    """Ask an owner here what another node asks. Raises msgspec.DecodeError or KeyError for what is no question."""
    asked = ASKED[name]
    given = asked.read(data)
    if asked.results is None:
        getattr(owner, name)(**given)
        return

    def found(*values: Any) -> None:
        reply(asked.write_result(*values))

    getattr(owner, name)(**given, then=found)


class RemoteOwner:
    """Stands in for an owner on another node. What is not answered is asked again by the desk."""

    def __init__(self, ask: Callable[[str, bytes, Callable[[bytes], None] | None], None]) -> None:
        """`ask(name, arguments, on_reply)`; without `on_reply` nobody waits."""
        self._ask = ask

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in ASKED:
            raise AttributeError(name)
        return partial(self._put, name, ASKED[name])

    def _put(self, name: str, asked: Asked, *given: Any, **named: Any) -> None:
        then = named.pop("then", None)
        values = list(given)
        if asked.results is not None and then is None:
            then = values.pop()
        arguments = [*values, *(named[each] for each in asked.names[len(values) :])]

        def replied(data: bytes) -> None:
            assert then is not None
            then(*asked.read_result(data))

        self._ask(name, asked.write(arguments), replied if then is not None else None)
