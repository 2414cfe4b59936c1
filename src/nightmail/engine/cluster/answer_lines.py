"""Lines of one node: where the answers of owners, wherever they are, come in.

Knows:   which node an address names, which lines are open here, which answers are still waited for.
Never:   answers one question twice: every owner that folds a record answers it, the replaced ones included.

An answer's address is `node | line | ref`: NODE_BITS, COUNT_BITS and REF_BITS of a 64-bit number.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from nightmail.engine.ports import REF_BITS
from nightmail.model.answers import Said
from nightmail.model.refusals import Unavailable

NODE_BITS = 12
COUNT_BITS = 64 - REF_BITS - NODE_BITS
NODES_MAX = 1 << NODE_BITS
"""Numbers for nodes. No two nodes that live at the same time have the same."""

LINES_MAX = 1 << COUNT_BITS
REF_MASK = (1 << REF_BITS) - 1
ANSWER_MS = 10_000
"""An answer that did not come within this time was lost. Longer than any takeover that goes well."""


def node_of(via: int) -> int:
    """The node that holds the line of this address."""
    return via >> (REF_BITS + COUNT_BITS)


class AnswerLines:
    def __init__(self, node: int, entropy: Callable[[int], bytes], pace: Callable[[], int]) -> None:
        assert 0 <= node < NODES_MAX
        self.node, self._pace = node, pace
        # The log may still name lines of an earlier node with this number: begin at a random place.
        self._last = int.from_bytes(entropy(8), "little") % LINES_MAX
        self._lines: dict[int, Callable[[int, Said], None]] = {}
        self._waiting: dict[int, int] = {}
        """Address → since when its answer is waited for, oldest first."""

    def open(self, on_answer: Callable[[int, Said], None]) -> int:
        assert len(self._lines) < LINES_MAX - 1, "every line is in use"
        line = self._next()
        while line in self._lines:
            line = self._next()
        self._lines[line] = on_answer
        return line

    def _next(self) -> int:
        # Never 0: an address of 0 asks for no answer.
        self._last = self._last % (LINES_MAX - 1) + 1
        return self.node << COUNT_BITS | self._last

    def close(self, line: int) -> None:
        self._lines.pop(line, None)

    def expect(self, via: int) -> None:
        """From now on the first answer to this address is handed out."""
        self._waiting.pop(via, None)
        self._waiting[via] = self._pace()

    def take(self, via: int, said: Said) -> None:
        """An owner's answer, or this node's own if it could not append the record. The first one counts."""
        if self._waiting.pop(via, None) is not None and (on_answer := self._lines.get(via >> REF_BITS)):
            on_answer(via & REF_MASK, said)

    def tick(self) -> None:
        """Say *unavailable* where an answer was lost: a device asks most things once per connection, and waits."""
        late = self._pace() - ANSWER_MS
        for via, _ in list(takewhile(lambda waiting: waiting[1] <= late, self._waiting.items())):
            self.take(via, Unavailable())
