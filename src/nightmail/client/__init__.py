"""The client: a durable outbox and inbox, and a connection that comes back by itself.

Knows:   the protocol (`wire`), the model, and one profile folder.
Never:   acknowledges or sends anything that is not safe on this device.

    machine.py      the rules, without sockets, clocks or tasks (outbox, inbox, ticks, reads, lists beside it)
    store.py        what must survive; sqlite_store.py and memory_store.py keep it
    client.py       the face for asyncio (joining, devices, safety, people, waiting beside it)
    sync.py         the same for scripts
"""

from nightmail.e2ee.content import Content

from .client import Client
from .errors import ClientError
from .events import Event
from .handles import Receipt
from .messages import Message, Tick
from .protection import KeyFile, Keyring, Passphrase
from .sync import SyncClient

__all__ = [
    "Client", "ClientError", "Content", "Event", "KeyFile", "Keyring", "Message", "Passphrase", "Receipt",
    "SyncClient", "Tick",
]  # fmt: skip
