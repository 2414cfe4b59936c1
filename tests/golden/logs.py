"""Golden logs: how one is written down, folded, and summed up in two digests.

A log is text, one durable batch per line: the shard, the batch's time, its records in base64. Lines stand in the
order in which they became durable, so what one shard tells another comes after what it follows from.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nightmail.core.state import ShardState, encode_row
from nightmail.core.step import FOLDS
from nightmail.engine.folding import Durable, Folded, Folding
from nightmail.engine.memory import MemoryLog, MemoryRows
from nightmail.model.effects import Answer
from nightmail.model.records import BadRecord
from nightmail.model.rows import Kept
from sim.judges.strict import StrictState

from .forms import as_written_by

FOLDER = Path(__file__).parent
SHARDS = {"one-shard": 1, "four-shards": 4, "raised": 4}
"""Log → how many shards it was told by. In `raised` they are raised to the fold in the middle of the story."""


def logs_of(fold: int) -> list[str]:
    return [log for log in SHARDS if fold > 1 or log != "raised"]


@dataclass
class Line:
    """One durable batch of one shard."""

    shard: int
    at: int
    records: list[bytes]

    def __str__(self) -> str:
        return " ".join((str(self.shard), str(self.at), *(base64.b64encode(data).decode() for data in self.records)))


def parsed(text: str) -> list[Line]:
    lines: list[Line] = []
    for line in text.splitlines():
        shard, at, *records = line.split()
        lines.append(Line(int(shard), int(at), [base64.b64decode(data, validate=True) for data in records]))
    return lines


def path_of(fold: int, log: str) -> Path:
    return FOLDER / f"fold-{fold}" / f"{log}.log"


def pins_of(fold: int) -> Path:
    return FOLDER / f"fold-{fold}" / "pins.json"


def records_of(fold: int) -> Path:
    return FOLDER / f"fold-{fold}" / "records.json"


def read_log(fold: int, log: str) -> list[Line]:
    return parsed(path_of(fold, log).read_text())


# --- folding ----------------------------------------------------------------------------------


class Shard:
    """One shard, folded by the engine's own hands."""

    def __init__(self, index: int, shards: int, rows: MemoryRows | None = None) -> None:
        self.rows = rows or MemoryRows()
        self.handed: list[Folded] = []
        self.folding = Folding(
            MemoryLog(),
            self.rows,
            lambda: StrictState(index, shards),
            self.handed.append,
            _only_rubbish_is_dead,
            lambda _: None,
        )
        self.folding.rebuild()

    @property
    def state(self) -> ShardState:
        return self.folding.state

    def take(self, line: Line) -> None:
        self.folding.feed(Durable(self.folding.next_offset, line.at, line.records))


def _only_rubbish_is_dead(_offset: int, error: Exception) -> None:
    if not isinstance(error, BadRecord):
        raise error


def folded(lines: Iterable[Line], shards: int) -> dict[int, Shard]:
    town: dict[int, Shard] = {}
    for line in lines:
        if line.shard not in town:
            town[line.shard] = Shard(line.shard, shards)
        town[line.shard].take(line)
    return town


# --- summing up -------------------------------------------------------------------------------


def digest_of_state(shard: Shard, fold: int) -> str:
    """Over every row and every entry, in the order of their keys, whether in memory or saved, as `fold` writes them."""
    state, found = shard.state, dict[tuple[int, ...], bytes]()
    found |= {(0, *key): data for key, data in shard.rows.rows.items()}
    found |= {(1, *key): data for key, data in shard.rows.entries.items()}
    for key, _, row in state.changed_rows():
        found.pop((0, *key), None)
        if row is not None:
            found[0, *key] = encode_row(row)
    for queue, upto in state.cleared.items():
        found = {key: data for key, data in found.items() if key[:2] != (1, queue) or key[2] > upto}
    for queue, seq in state.dropped:
        found.pop((1, queue, seq), None)
    for queue, entries in state.entries.items():
        found |= {(1, queue, seq): encode_row(entry) for seq, entry in entries.items()}
    for key in [key for key in found if key[0] == 0]:
        found[key] = as_written_by(fold, Kept(key[1]), found[key])
    return _digest(msgspec.msgpack.encode((key, found[key])) for key in sorted(found))


def digest_of_words(shard: Shard) -> str:
    """Over every answer and everything told to other shards, in order."""
    said = (
        ([effect for effect in handed.effects if isinstance(effect, Answer)], handed.forwards)
        for handed in shard.handed
    )
    return _digest(
        msgspec.msgpack.encode(([(a.via, a.said) for a in answers], [(o, f.shard, f.k, f.body) for o, f in told]))
        for answers, told in said
    )


def _digest(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(4, "big") + part)
    return total.hexdigest()


Pins = dict[str, dict[str, str]]
"""Log and shard → what its state and its words come to."""


def pinned(logs: dict[str, list[Line]], fold: int) -> Pins:
    """The state at the end, and over all the states on the way: what is gone at the end counts, too."""
    pins: Pins = {}
    for log, lines in logs.items():
        for index in range(SHARDS[log]):
            shard = Shard(index, SHARDS[log])
            states: list[str] = []
            for line in lines:
                if line.shard == index:
                    shard.take(line)
                    states.append(digest_of_state(shard, fold))
            pins[f"{log} {index}"] = {
                "state": states[-1],
                "states": _digest(state.encode() for state in states),
                "words": digest_of_words(shard),
            }
    return pins


def read_pins(fold: int) -> Pins:
    return json.loads(pins_of(fold).read_text())


def records_taken(fold: int) -> list[int]:
    """The tag of every record that a fold takes."""
    return sorted(int(str(kind.__struct_config__.tag)) for kind in FOLDS[fold])


def read_records(fold: int) -> list[int]:
    return json.loads(records_of(fold).read_text())
