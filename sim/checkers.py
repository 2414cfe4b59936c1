"""The verdict, from what clients saw and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightmail.model.ids import account_of
from nightmail.model.words import Lane

from .history import History, Message, Seen

if TYPE_CHECKING:
    from .client import Client
    from .town import Town

AHEAD_MS = 2_000


def check_all(town: Town) -> None:
    history = town.history
    clients = {client.device: client for person in town.people for client in person.clients}
    for message in history.messages.values():
        if message.fate == "sent":
            check_not_lost(town, clients, message)
            check_order_of_answers(history, message)
            check_addressed(history, message)
        elif message.fate == "waiting" and message.by in clients:
            raise history.broke("everything is answered", f"{message.id} is still waiting")
    for client in clients.values():
        check_stamps(history, client)
        check_senders_order(history, client)
        check_no_ghosts(history, client)
    check_receipts(town, clients)


def check_not_lost(town: Town, clients: dict[int, Client], message: Message) -> None:
    """Shown on every addressed device, or failed with a reason, or its author is blocked."""
    history = town.history
    for device in message.envelopes[message.version]:
        if message.original in history.of(device).shown:
            continue
        if _told(town, message, device) == "failed" or history.may_be_blocked(message):
            continue
        if not any(account_of(d) == account_of(message.by) for d in clients):
            continue
        raise history.broke("nothing lost", f"{message.id} never reached {device:x}, and its sender was told nothing")
    for device in message.own or ():
        if device not in clients or message.by not in clients or message.of is not None:
            continue  # Only the sending device is told of a copy that could not be filed.
        seen = history.of(device)
        if message.id not in seen.shown and not seen.expired_gaps and _told(town, message, device) != "failed":
            raise history.broke("nothing lost", f"{message.id}: no copy on its author's {device:x}")


def check_addressed(history: History, message: Message) -> None:
    """Sealed for every device that was listed before, and kept from those who did not want it."""
    if message.version < (newest := history.list_version_before(message)):
        raise history.broke(
            "sealed for every device", f"{message.id} was accepted under {message.version}, not {newest}"
        )
    if history.must_be_blocked(message):
        key = (message.by, message.to, message.lane, message.n)
        for device in message.envelopes[message.version]:
            if key in history.of(device).stored:
                raise history.broke("a block holds", f"{message.id} reached {device:x}")


def _told(town: Town, message: Message, device: int) -> str:
    """What the surviving devices of the author know about one device."""
    key = (message.by, message.to, message.lane, message.n)
    for person in town.people:
        if person.account == account_of(message.by):
            for client in person.clients:
                if device in client.seen.failed_at.get(key, {}):
                    return "failed"
                if key in client.seen.delivered_at and device in client.seen.delivered_at[key]:
                    return "delivered"
    return "nothing"


def check_order_of_answers(history: History, message: Message) -> None:
    """What its author had read when writing stands before it, everywhere."""
    if message.answers and message.answers_at and message.at <= message.answers_at:
        raise history.broke(
            "answers after questions", f"{message.id} at {message.at} answers {message.answers} at {message.answers_at}"
        )


def check_stamps(history: History, client: Client) -> None:
    """Every device sorts alike: one message, one stamp."""
    for shown in client.seen.shown.values():
        message = history.messages[shown.id]
        if message.fate == "sent" and message.at != shown.at and message.id not in history.resealed:
            raise history.broke(
                "one stamp", f"{shown.id} is at {shown.at} on {client.name}, at {message.at} for its author"
            )


def check_senders_order(history: History, client: Client) -> None:
    """In each lane, what one device sent into one conversation arrives in the order it was written."""
    last: dict[tuple[int, int, Lane], tuple[int, int]] = {}
    arrived = sorted(
        (shown.lane, shown.seq, history.messages[shown.id])
        for shown in client.seen.shown.values()
        if history.messages[shown.id].of is None and shown.id not in history.resealed
    )
    for lane, _, message in arrived:
        stream = (message.by, message.to, lane)
        before_n, before_at = last.get(stream, (0, 0))
        if message.n <= before_n or (message.at and message.at <= before_at):
            raise history.broke("sender's order", f"{client.name} got number {message.n} of {stream} after {before_n}")
        last[stream] = (message.n, message.at)


def check_no_ghosts(history: History, client: Client) -> None:
    """Nothing is shown that was not sent, and nothing that was voided."""
    for original in client.seen.shown:
        message = history.messages.get(original)
        if message is None or message.fate == "voided":
            raise history.broke("no ghost", f"{client.name} shows {original}, which was never sent")


def check_receipts(town: Town, clients: dict[int, Client]) -> None:
    """Both ends agree on what was delivered and what was read."""
    history = town.history
    for client in clients.values():
        seen = client.seen
        for by, to, lane, n in seen.stored:
            if account_of(by) == account_of(client.device):
                continue
            for other in _devices_of(town, account_of(by)):
                if client.device not in history.of(other).delivered_at.get((by, to, lane, n), ()) and not _late(
                    clients, other, by
                ):
                    if client.device in history.of(other).failed_at.get((by, to, lane, n), {}):
                        town.world.hit("expiry met an ack")
                        continue  # It expired on its way; the device had it, the ack came too late.
                    raise history.broke(
                        "receipts are equal at both ends",
                        f"{client.name} has {lane.name} {n} of {by:x}; {other:x} was never told",
                    )
        check_read(town, clients, client, seen)
        check_no_false_receipts(town, clients, client, seen)


def check_read(town: Town, clients: dict[int, Client], client: Client, seen: Seen) -> None:
    for by, lane, n in seen.read - seen.read_hidden:
        author = account_of(by)
        if author in town.history.receipts_off or client.person.account in town.history.receipts_off:
            continue
        if any((a, p) == (client.person.account, author) for a, p, _, _ in town.history.blocks):
            continue  # What was read may have been told, or have come too late.
        for other in _devices_of(town, author):
            told = town.history.of(other).read_at.get((by, client.person.account, lane, n), ())
            if client.device not in told and not _late(clients, other, by):
                raise town.history.broke("receipts are equal at both ends", f"{client.name} read {n} of {by:x}, untold")


def check_no_false_receipts(town: Town, clients: dict[int, Client], client: Client, seen: Seen) -> None:
    """Nobody is told of a delivery or a reading that did not happen."""
    for (by, to, lane, n), devices in seen.delivered_at.items():
        for device in devices & clients.keys():
            if (by, to, lane, n) not in town.history.of(device).stored:
                raise town.history.broke("no false receipts", f"{client.name} believes {n} of {by:x} on {device:x}")
    for (by, _, lane, n), devices in seen.read_at.items():
        for device in devices & clients.keys():
            reader = town.history.of(device)
            if (by, lane, n) not in reader.read | clients[device].ever_reading:
                raise town.history.broke(
                    "no false receipts", f"{client.name} believes {n} of {by:x} read on {device:x}"
                )


def _devices_of(town: Town, account: int) -> list[int]:
    return [client.device for person in town.people if person.account == account for client in person.clients]


def _late(clients: dict[int, Client], other: int, by: int) -> bool:
    """Devices that joined later need not know what became of messages before their time."""
    return other != by
