"""Modal screens for files: which one to send, and where to save one."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from nightmail.cli.output import plain


class PathScreen(ModalScreen[str]):
    """Asks for a path; returns what was typed."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss('')", "Back")]

    def __init__(self, title: str, keys: str, path: str = "") -> None:
        super().__init__()
        self._title, self._keys, self._path = title, keys, path

    def compose(self) -> ComposeResult:
        with Vertical(classes="box small"):
            yield Static(Text(plain(self._title)), classes="title")
            yield Input(self._path, placeholder="path", id="path")
            yield Static(Text(self._keys), classes="keys")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())
