"""The padding of a sealed stream: its size is one of a few, and says little about the content's.

Spec:    PADMÉ (Nikitin et al. 2019): the number of significant bits of a size grows with the logarithm of its length.
         Wastes at most 12 %, and less the longer a content is. ISO/IEC 7816-4 marks the content's end: 80, then zeros.
Never:   holds a run of zeros in memory, however long: they may be content, and come out as such when more follows.
"""

from __future__ import annotations

from collections.abc import Iterator

SIZE_MIN = 1_024
PIECE_BYTES = 65_536
_MARK = b"\x80"
_ZEROS = bytes(PIECE_BYTES)


def padded_size(content_bytes: int) -> int:
    """The size of a content with its mark and its zeros."""
    needed = max(content_bytes + 1, SIZE_MIN)
    exponent = needed.bit_length() - 1
    mask = (1 << exponent - exponent.bit_length()) - 1
    return needed + mask & ~mask


def padding_of(content_bytes: int) -> Iterator[bytes]:
    """What follows a content of this size, in pieces."""
    yield _MARK
    yield from _zeros(padded_size(content_bytes) - content_bytes - 1)


class Unpadding:
    """Takes padded content piece by piece, and hands out what cannot be padding any more."""

    def __init__(self) -> None:
        self._came = self._handed = 0
        self._zeros: int | None = None
        """How many zeros came after a mark that may be the last one; None: there is no such mark."""

    def take(self, piece: bytes) -> Iterator[bytes]:
        """Everything in the piece, and before it, that is content for sure."""
        self._came += len(piece)
        stripped = piece.rstrip(b"\0")
        if not stripped and self._zeros is not None:
            self._zeros += len(piece)
            return
        if self._zeros is not None:
            yield from self._hand_out(_MARK)
            for zeros in _zeros(self._zeros):
                yield from self._hand_out(zeros)
            self._zeros = None
        if stripped.endswith(_MARK):
            self._zeros = len(piece) - len(stripped)
            piece = stripped[:-1]
        yield from self._hand_out(piece)

    @property
    def is_right(self) -> bool:
        """Whether all that came is a content with the padding that belongs to it."""
        return self._zeros is not None and self._came == padded_size(self._handed)

    def _hand_out(self, piece: bytes) -> Iterator[bytes]:
        self._handed += len(piece)
        if piece:
            yield piece


def _zeros(count: int) -> Iterator[bytes]:
    while count > 0:
        yield _ZEROS[: min(count, PIECE_BYTES)]
        count -= PIECE_BYTES
