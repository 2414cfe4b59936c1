"""What a failed system call means to an operator.

Touches: nothing.
"""

from __future__ import annotations

import errno
import os

_CAUSES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EIO: "the disk failed",
    errno.EROFS: "the file system can only be read",
    errno.EMFILE: "this process has no file descriptors left",
    errno.ENFILE: "this machine has no file descriptors left",
    errno.EFBIG: "a file may not grow any further",
    errno.EACCES: "a permission is missing",
    errno.EPERM: "a permission is missing",
}
_SPACE = frozenset((errno.ENOSPC, errno.EDQUOT))


def cause(number: int | None) -> str:
    """In words, with the name of the error."""
    if not number:
        return "the cause is unknown"
    said = _CAUSES.get(number) or os.strerror(number).lower()
    return f"{said} ({errno.errorcode.get(number, number)})"


def is_out_of_space(number: int | None) -> bool:
    return number in _SPACE
