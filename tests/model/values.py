"""Any value of the model, for tests that do not care which."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import strategies as st

from nightmail.model.blob_rows import Purpose
from nightmail.model.group_rows import FanOut, MemberState
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.records import CallOutcome, FiringOutcome, PushOutcome
from nightmail.model.roster import GroupReceipts, Role
from nightmail.model.rows import DueFor
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.words import Kind, Lane, MessageState, Platform, PushPlatform, Reason

ids = st.integers(0, 2**61 - 1)

FIELDS: dict[Any, st.SearchStrategy[Any]] = {
    int: ids,
    bool: st.booleans(),
    str: st.text(max_size=20),
    bytes: st.binary(max_size=40),
    bytearray: st.binary(max_size=40).map(bytearray),
    **{word: st.sampled_from(word) for word in (DueFor, Kind, Lane, Platform, Reason, MessageState)},
    **{word: st.sampled_from(word) for word in (FanOut, GroupReceipts, MemberState, Role)},
    **{word: st.sampled_from(word) for word in (CallOutcome, FiringOutcome, LetterStatus, ScheduleState)},
    **{word: st.sampled_from(word) for word in (PushOutcome, PushPlatform, Purpose)},
}


def built(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type of the model, by its annotations."""
    if kind in FIELDS:
        return FIELDS[kind]
    if hasattr(kind, "__struct_fields__"):
        hints = {field.name: field.type for field in msgspec.structs.fields(kind)}
        return st.builds(kind, **{name: built(hint) for name, hint in hints.items()})
    origin, args = getattr(kind, "__origin__", None), get_args(kind)
    if origin is tuple and args[-1] is ...:
        return st.lists(built(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(built, args))
    if origin is list:
        return st.lists(built(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(built(args[0]), built(args[1]), max_size=3)
    if kind is type(None):
        return st.none()
    assert args, kind
    return st.one_of(*map(built, args))


def named(kinds: tuple[Any, ...]) -> Any:
    return pytest.mark.parametrize("kind", kinds, ids=[kind.__name__ for kind in kinds])
