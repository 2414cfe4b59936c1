"""The data folder is its owner's alone.

Knows:   which rights others may have in it: none.
Touches: the rights of the folder and of the files in it, never their content.
"""

from __future__ import annotations

import stat
from pathlib import Path

from nightmail.engine.ports import Unwritable

OTHERS = stat.S_IRWXG | stat.S_IRWXO
UMASK = OTHERS
"""For the process: what it creates is its owner's alone, whatever makes the file."""


def make_private(folder: Path) -> list[str]:
    """Take from everybody but the owner every right to what exists. Returns what was open. Raises Unwritable.

    A folder that is shared on purpose is tightened, too: it holds who writes to whom, and the operator's token.
    """
    if not folder.is_dir():
        return []
    opened: list[str] = []
    for path in (folder, *folder.iterdir()):
        if path.is_symlink():
            continue
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & OTHERS:
                path.chmod(mode & ~OTHERS)
                opened.append("." if path == folder else path.name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Unwritable(f"{path} is open to others, and cannot be closed to them: {error.strerror}") from error
    return sorted(opened)
