"""Small pictures: drawn again, bounded, and never a reason to fail."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from PIL import Image

from nightmail.client.media.thumbnails import BYTES_MAX, SIDE_MAX, pixels_of, thumbnail_of
from nightmail.e2ee.streams.media import THUMBNAIL_BYTES_MAX


def a_picture(folder: Path, size: tuple[int, int] = (640, 480), name: str = "picture.png") -> Path:
    path = folder / name
    Image.effect_noise(size, 90).convert("RGB").save(path)
    return path


def test_a_thumbnail_is_small_and_keeps_its_shape(tmp_path: Path) -> None:
    made = thumbnail_of(str(a_picture(tmp_path)))
    assert 0 < len(made) <= BYTES_MAX < THUMBNAIL_BYTES_MAX
    assert Image.open(io.BytesIO(made)).size == (SIDE_MAX, SIDE_MAX * 3 // 4)


def test_what_a_picture_tells_besides_what_it_shows_stays_behind(tmp_path: Path) -> None:
    path, exif = tmp_path / "picture.jpg", Image.Exif()
    exif[0x010E] = "taken at home"
    Image.new("RGB", (300, 200), "red").save(path, exif=exif)
    assert b"taken at home" in path.read_bytes()
    assert b"taken at home" not in thumbnail_of(str(path))


def test_what_is_no_picture_has_no_thumbnail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, cut = tmp_path / "text.png", tmp_path / "cut.png"
    text.write_text("no picture")
    cut.write_bytes(a_picture(tmp_path).read_bytes()[:2_000])
    assert [thumbnail_of(str(path)) for path in (text, cut, tmp_path / "nowhere")] == [b"", b"", b""]
    picture = str(a_picture(tmp_path))
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert (thumbnail_of(picture), pixels_of(b"x", 4, 4)) == (b"", [])


def test_a_peers_thumbnail_is_shown_in_so_many_pixels_or_not_at_all(tmp_path: Path) -> None:
    pixels = pixels_of(thumbnail_of(str(a_picture(tmp_path))), 28, 20)
    assert (len(pixels), len(pixels[0])) == (20, 27)
    large, other = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (2_000, 2_000)).save(large, "JPEG")
    Image.new("RGB", (10, 10)).save(other, "GIF")
    for hostile in (b"", b"\xff\xd8\xff", large.getvalue(), other.getvalue()):
        assert pixels_of(hostile, 28, 20) == []
