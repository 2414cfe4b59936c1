"""A small picture of a picture, to travel inside the message.

Knows:   Pillow, if it is installed (`pip install nightmail[pictures]`); without it there are no thumbnails.
Never:   fails a message, or hands on what a picture holds besides what it shows: it is drawn again.
"""

from __future__ import annotations

import importlib
import io
from typing import Any

BYTES_MAX = 12 * 1024
"""Of a thumbnail: every device gets it inside its own envelope."""
SIDE_MAX = 160
PIXELS_MAX = 64_000_000
"""Of a picture that is opened to make one."""
SOURCE_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")
QUALITIES = (80, 60, 40, 20)


def thumbnail_of(path: str) -> bytes:
    """A JPEG; empty if it is no picture, or there is no Pillow."""
    if (image := _pillow("Image")) is None:
        return b""
    try:
        with image.open(path, formats=SOURCE_FORMATS) as opened:
            if opened.width * opened.height > PIXELS_MAX:
                return b""
            opened.draft("RGB", (SIDE_MAX, SIDE_MAX))
            small = _pillow("ImageOps").exif_transpose(opened)
            small.thumbnail((SIDE_MAX, SIDE_MAX))
            return _encoded(image, small)
    except Exception:  # noqa: BLE001  # Pillow raises whatever a damaged picture leads it to
        return b""


def pixels_of(thumbnail: bytes, columns: int, rows: int) -> list[list[tuple[int, int, int]]]:
    """A peer's thumbnail, fitted into so many pixels, row by row; empty if it cannot be shown."""
    if not thumbnail or (image := _pillow("Image")) is None:
        return []
    try:
        with image.open(io.BytesIO(thumbnail), formats=("JPEG",)) as opened:
            if max(opened.size) > 2 * SIDE_MAX:
                return []
            small = opened.convert("RGB")
            small.thumbnail((columns, rows))
            width, height = small.size
            flat = list(small.tobytes())
    except Exception:  # noqa: BLE001  # likewise
        return []
    pixels = [(flat[at], flat[at + 1], flat[at + 2]) for at in range(0, len(flat), 3)]
    return [pixels[row * width : (row + 1) * width] for row in range(height)]


def _encoded(image: Any, small: Any) -> bytes:
    flat = image.new("RGB", small.size, "white")
    rgba = small.convert("RGBA")
    flat.paste(rgba, mask=rgba.getchannel("A"))
    for quality in QUALITIES:
        out = io.BytesIO()
        flat.save(out, "JPEG", quality=quality, optimize=True)
        if out.tell() <= BYTES_MAX:
            return out.getvalue()
    return b""


def _pillow(module: str) -> Any:
    try:
        return importlib.import_module(f"PIL.{module}")
    except ImportError:
        return None
