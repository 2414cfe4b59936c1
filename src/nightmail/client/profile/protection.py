"""What protects a profile's key: a passphrase, a file, or the system's keyring. Values only.

    Client("ada.profile", …, secret=Passphrase("correct horse battery staple"))
    Client("ada.profile", …, secret=KeyFile("/media/stick/ada.key"))
    Client("ada.profile", …, secret=Keyring())

| protected by | can be opened by | cannot be opened by |
|---|---|---|
| Passphrase | somebody who knows it, or guesses it at 64 MiB and a third of a second a try | a copy of the disk |
| Keyring | a program that runs as the same user while they are logged in | a copy of the profile folder |
| KeyFile in another place | somebody who has both | a copy of the profile folder |
| KeyFile in the folder (default) | a copy of the folder | a copy of the database alone, as in a backup |

Nothing here protects against somebody who controls the machine while a client is open.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

from msgspec import Struct


class Passphrase(Struct, frozen=True):
    """Something that a person remembers."""

    text: str

    def __repr__(self) -> str:
        return "Passphrase(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class KeyFile(Struct, frozen=True):
    """A file with a random key, made if it is not there, readable by its owner alone."""

    path: str | os.PathLike[str] = ""
    """Empty: in the profile folder itself."""


class Keyring(Struct, frozen=True):
    """The keyring of the desktop or the system; needs the extra `keyring`."""

    service: str = "nightmail"


Secret: TypeAlias = Passphrase | KeyFile | Keyring
