"""What the sealed store costs a client: a message with its index, a tick, a page of history, a search, a backup,
opening it.

    python -m bench.store
    python -m bench.store --messages 100000

A table for people on standard error; the last line on standard output is JSON. CPU time of this thread, the best of
several rounds; a sync of the disk is not in it, except in the two figures of backups, which are wall time. Words are
drawn like those of a language: few are frequent.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from nightmail.client import Passphrase
from nightmail.client.backup.making import make_backup, state_with
from nightmail.client.backup.schedule import BackupState, state_in
from nightmail.client.messages import Message, Tick
from nightmail.client.profile.profile import Profile
from nightmail.client.store.rows import Identity
from nightmail.client.store.search import terms_of
from nightmail.client.store.sqlite import NAME, SqliteStore
from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.streams.backup import new_code
from nightmail.model.ids import MessageId, account_id, account_of, device_id
from nightmail.model.words import Kind

AT = 1_760_000_000_000
PER_COMMIT = 50
PEOPLE = 50
WORDS = 20_000
ROUNDS = 5


def a_history(count: int, chance: random.Random) -> list[Message]:
    letters = "etaoinshrdlucmwfgypbvkjxqz"
    words = ["".join(chance.choices(letters, range(26, 0, -1), k=chance.randint(2, 9))) for _ in range(WORDS)]
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    by = device_id(account_id("ada"), 1)
    people = [account_id(f"person {n}") for n in range(PEOPLE)]
    history: list[Message] = []
    for n in range(count):
        text = " ".join(chance.choices(words, weights, k=chance.randint(3, 15)))
        body = encode_content(Content(Kind.TEXT, text))
        ident = str(MessageId(AT + n, n, by, "abcd"))
        history.append(Message(id=ident, peer=chance.choice(people), by=by, own=True, at=AT + n, body=body))
    return history


def cpu_ms(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1_000


def best_ms(work: Callable[[], object]) -> float:
    return min(cpu_ms(work) for _ in range(ROUNDS))


def measure(folder: Path, count: int) -> dict[str, float]:
    history = a_history(count, random.Random(1))
    store = SqliteStore(folder, os.urandom(32))

    def write() -> None:
        for n, message in enumerate(history, 1):
            store.put_message(message)
            if n % PER_COMMIT == 0:
                store.commit()
        store.commit()

    def tick(state: Tick) -> None:
        for message in history[:1_000]:
            store.put_message(replace(message, state=state))
        store.commit()

    figures = {"message_us": cpu_ms(write) * 1_000 / count}
    figures["tick_us"] = min(cpu_ms(lambda state=state: tick(state)) for state in (Tick.SENT, Tick.READ))
    newest = history[-1]
    rare = newest.text.split()[0]
    figures["history_of_60_ms"] = best_ms(lambda: store.history(newest.peer, 60))
    figures["search_word_ms"] = best_ms(lambda: store.search(terms_of(rare), None, 50))
    figures["search_letter_ms"] = best_ms(lambda: store.search(terms_of("e"), None, 50))
    figures |= back_up(store, folder, history)
    store.close()
    figures["bytes_per_message"] = (folder / NAME).stat().st_size / count
    for name, secret in (("open_ms", None), ("open_by_passphrase_ms", Passphrase("correct horse"))):
        place = folder / name
        Profile(place, secret).close()
        figures[name] = best_ms(lambda place=place, secret=secret: Profile(place, secret).close())
    return figures


def back_up(store: SqliteStore, folder: Path, history: list[Message]) -> dict[str, float]:
    """Seconds of a whole backup and of one that adds 100 messages and 100 ticks; wall time, with the syncs."""
    by = history[0].by
    store.put_identity(Identity("ada", account_of(by), by, 1, bytes(32)))
    state = state_with(None, new_code(SYSTEM))

    def seconds(state: BackupState) -> float:
        began = time.perf_counter()
        make_backup(store, None, state, folder / "ada.backup", AT)
        return time.perf_counter() - began

    figures = {"backup_s": seconds(state)}
    for n, message in enumerate(history[:100], len(history)):
        store.put_message(replace(message, state=Tick.DELIVERED))
        store.put_message(replace(message, id=str(MessageId(AT + n, n, by, "abcd"))))
    store.commit()
    saved = state_in(store)
    assert saved is not None
    return {**figures, "backup_increment_s": seconds(saved)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=100_000)
    count: int = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), count)
    for name, value in figures.items():
        print(f"{name:24} {value:10.2f}", file=sys.stderr)
    print(
        json.dumps({"bench": "store", "messages": count, **{name: round(value, 3) for name, value in figures.items()}})
    )


if __name__ == "__main__":
    main()
