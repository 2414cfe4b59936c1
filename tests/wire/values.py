"""Every item there can be, for hypothesis to choose from."""

from __future__ import annotations

from enum import IntEnum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Struct

from nightmail.wire.items import FromDevice, FromServer, Item

INTEGERS = st.one_of(st.integers(0, 300), st.integers(-(1 << 63), (1 << 64) - 1))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def of_type(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this type may have."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in {UnionType, Union}:
        return st.one_of([of_type(each) for each in inside])
    if origin is tuple:
        if inside[-1] is Ellipsis:
            return st.lists(of_type(inside[0]), max_size=4).map(tuple)
        return st.tuples(*map(of_type, inside))
    if origin is list:
        return st.lists(of_type(inside[0]), max_size=6)
    if origin is dict:
        return st.dictionaries(of_type(inside[0]), of_type(inside[1]), max_size=4)
    if issubclass(kind, Struct):
        hints = get_type_hints(kind)
        return st.builds(kind, *(of_type(hints[name]) for name in kind.__struct_fields__))
    if issubclass(kind, IntEnum):
        return st.sampled_from(kind)
    return {int: INTEGERS, str: TEXTS, bytes: st.binary(max_size=40), bool: st.booleans(), type(None): st.none()}[kind]


DEVICE_ITEMS: tuple[type[Item], ...] = get_args(FromDevice)
SERVER_ITEMS: tuple[type[Item], ...] = get_args(FromServer)

from_devices: st.SearchStrategy[list[FromDevice]] = st.lists(of_type(FromDevice), max_size=5)
from_servers: st.SearchStrategy[list[FromServer]] = st.lists(of_type(FromServer), max_size=5)
