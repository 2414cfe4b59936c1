"""Sizes, as a person reads them."""

from __future__ import annotations


def size_words(size: int) -> str:
    return f"{size / 1_048_576:.1f} MiB" if size >= 1_048_576 else f"{-(-size // 1_024):,} KiB"
