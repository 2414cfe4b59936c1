"""The client: a durable outbox and inbox, and a connection that is opened again when it is lost.

Knows:   the protocol (`wire`), the model, and one profile folder.
Never:   acknowledges or sends anything that is not durable on this device.

For applications:

    client.py       for asyncio; sync.py for scripts without it
    messages.py, events.py, errors.py, limits.py, receipt.py    the values that they work with
    groups/group.py, group_events.py, group_errors.py    likewise, of groups
    schedules/scheduled.py, schedule_events.py, schedule_errors.py    likewise, of messages for later
    media_client.py, media_events.py, media_errors.py    likewise, of files
    group_client.py, schedule_client.py, presence_client.py     methods of the client
    contacts.py, devices.py, presence.py, safety.py, listeners.py, waiters.py    what client.py hands work to

Inside:

    machine/        the rules, without sockets, clocks or tasks
    link/           the connection to the server
    outbox/         sending
    inbox/          receiving
    trust/          lists, keys and sessions: whom to seal for
    groups/         who is in a group, and what is sealed for it
    schedules/      messages for later
    media/          files: sealed, uploaded, fetched, verified
    own_devices/    registering, linking, revoking, moving an account
    store/          what survives
    profile/        the folder, and the secrets that protect it
    backup/         encrypted backups to a file, and restoring them
"""

from nightmail.e2ee.content import Content
from nightmail.e2ee.streams.media import MediaPointer

from .client import Client
from .errors import ClientError
from .events import Event
from .group_errors import GroupError
from .groups.group import Group, SeenBy
from .media_client import SharedFile
from .media_errors import MediaError
from .messages import Message, Tick
from .profile.protection import KeyFile, Keyring, Passphrase
from .receipt import Receipt
from .schedule_errors import ScheduleError
from .schedules.scheduled import ScheduledMessage
from .sync import SyncClient

__all__ = [
    "Client", "ClientError", "Content", "Event", "Group", "GroupError", "KeyFile", "Keyring", "MediaError",
    "MediaPointer", "Message", "Passphrase", "Receipt", "ScheduleError", "ScheduledMessage", "SeenBy", "SharedFile",
    "SyncClient", "Tick",
]  # fmt: skip
