"""The client: a durable outbox and inbox, and a connection that is opened again when it is lost.

Knows:   the protocol (`wire`), the model, and one profile folder.
Never:   acknowledges or sends anything that is not durable on this device.

For applications:

    client.py       for asyncio; sync.py for scripts without it
    messages.py, events.py, errors.py, limits.py, receipt.py    the values that they work with
    contacts.py, devices.py, safety.py, listeners.py, waiters.py    what client.py hands work to

Inside:

    machine/        the rules, without sockets, clocks or tasks
    link/           the connection to the server
    outbox/         sending
    inbox/          receiving
    trust/          lists, keys and sessions: whom to seal for
    own_devices/    registering, linking, revoking, moving an account
    store/          what survives
    profile/        the folder, and the secrets that protect it
"""

from nightmail.e2ee.content import Content

from .client import Client
from .errors import ClientError
from .events import Event
from .messages import Message, Tick
from .profile.protection import KeyFile, Keyring, Passphrase
from .receipt import Receipt
from .sync import SyncClient

__all__ = [
    "Client", "ClientError", "Content", "Event", "KeyFile", "Keyring", "Message", "Passphrase", "Receipt",
    "SyncClient", "Tick",
]  # fmt: skip
