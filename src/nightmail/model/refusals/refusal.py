"""What every no has: a wire code, a word for programs, and a sentence for people. `refusals.py` lists them all."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class Refusal(Struct, frozen=True, array_like=True):
    word: ClassVar[str]
    """What programs read: in HTTP problems, in events of the client, in JSON of the command line. Never changes."""
    retry: ClassVar[bool] = False

    @property
    def code(self) -> int:
        code = self.__struct_config__.tag
        assert isinstance(code, int)
        return code

    @property
    def sentence(self) -> str:
        """What happened, for a person. Every refusal says its own."""
        return f"refused: {self.word}"
