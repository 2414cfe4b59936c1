"""What one node says to the others, and does with what they say: without sockets.

Knows:   which node owns which shard, as far as it was told; which questions wait for a reply.
Touches: the owners and the desk of this node; the links, by `send`.
Never:   repeats what a link has lost: desks ask again, clients retry, devices are prompted.

Each node tells the others which shards it owns and which fold each has reached: when that changes, and every second.
Of two that claim a shard the one that said so last is asked; a stale route costs time only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import cast

import msgspec
from msgspec import Struct

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.cluster.answer_lines import node_of
from nightmail.engine.cluster.owner import Owner
from nightmail.engine.cluster.ports import OwnerQuestions
from nightmail.engine.ports import Listener
from nightmail.model.answers import Said
from nightmail.model.effects import Answer
from nightmail.model.words import Lane

from .questions import RemoteOwner, put

REPLIES_WAITED = 100_000
"""Questions to other nodes that wait. The oldest beyond are given up: their desks have asked again since."""


class AnswersFrame(Struct, frozen=True, array_like=True, tag=1):
    answers: list[tuple[int, Said]]


class NewsFrame(Struct, frozen=True, array_like=True, tag=2):
    """(What, device, lane) each: grew, changed, dismissed, low."""

    news: list[tuple[int, int, Lane]]


class QuestionFrame(Struct, frozen=True, array_like=True, tag=3):
    number: int
    shard: int
    name: str
    arguments: bytes


class ReplyFrame(Struct, frozen=True, array_like=True, tag=4):
    number: int
    result: bytes


class OwnsFrame(Struct, frozen=True, array_like=True, tag=5):
    """All shards that the sender owns, with the fold of each that serves; 0: it does not serve yet."""

    folds: dict[int, int]


Frame = AnswersFrame | NewsFrame | QuestionFrame | ReplyFrame | OwnsFrame
Packet = tuple[int, list[Frame]]
"""The number of the node that sends, and what it says."""
_packet = msgspec.msgpack.Decoder(Packet)
GREW, CHANGED, DISMISSED, LOW = range(4)
NO_SHARD = -1
"""In a question to a node itself."""


class Exchange:
    """`Routing`, `AnswerDelivery` and the `Listener` of this node's owners."""

    def __init__(
        self, node: int, shards: int, send: Callable[[int, bytes], None], soon: Callable[[], None] = lambda: None
    ) -> None:
        """`send(node, packet)`: to one of `nodes`; may lose it. `soon` asks for a call of `flush` at the end of this
        turn."""
        self._node, self._send, self._soon = node, send, soon
        self.nodes: Collection[int] = ()
        """The others, as far as they are known."""
        self.owners: dict[int, Owner] = {}
        """Those on this node, by shard."""
        self._routes: dict[int, int] = {}
        """Shard → the other node that owns it."""
        self._folds = [1] * shards
        self._listener: Listener | None = None
        self._take_answers: Callable[[Sequence[Answer]], None] | None = None
        self._on_owner_changed: Callable[[int], None] = lambda _: None
        self._outgoing: dict[int, list[Frame]] = {}
        self._news: list[tuple[int, int, Lane]] = []
        self._answers: dict[int, list[tuple[int, Said]]] = {}
        self._waiting: dict[int, Callable[[bytes], None]] = {}
        self._asked = 0
        self.answers: dict[str, Callable[[int, bytes], bytes]] = {}
        """What this node answers by itself, to a node, by the name of the question."""
        self._said: dict[int, int] = {}
        """What was last said of this node's shards."""
        self.refused = 0
        """Packets that were not understood."""

    def attend(
        self, listener: Listener, take_answers: Callable[[Sequence[Answer]], None],
        on_owner_changed: Callable[[int], None],
    ) -> None:  # fmt: skip
        """The gateway and the desk of this node."""
        self._listener, self._take_answers, self._on_owner_changed = listener, take_answers, on_owner_changed

    # --- Routing --------------------------------------------------------------------------------

    def owner(self, shard: int) -> OwnerQuestions | None:
        if own := self.owners.get(shard):
            return own.mailboxes
        if (node := self._routes.get(shard)) is None:
            return None

        return cast("OwnerQuestions", RemoteOwner(partial(self._ask, node, shard)))

    def _ask(
        self, node: int, shard: int, name: str, arguments: bytes, on_reply: Callable[[bytes], None] | None
    ) -> None:
        self._asked += 1
        if on_reply:
            self._waiting[self._asked] = on_reply
            if len(self._waiting) > REPLIES_WAITED:
                del self._waiting[next(iter(self._waiting))]
        self._say(node, QuestionFrame(self._asked, shard, name, arguments))

    def ask_node(self, node: int, name: str, arguments: bytes, on_reply: Callable[[bytes], None]) -> None:
        """What concerns the node itself. A node that does not know the question, as an older one, does not answer."""
        self._ask(node, NO_SHARD, name, arguments, on_reply)

    def fold(self, shard: int) -> int:
        own = self.owners.get(shard)
        if own and own.loop and own.loop.ready:
            self._folds[shard] = max(self._folds[shard], own.loop.state.shard.fold)
        return self._folds[shard]

    def owner_of(self, shard: int) -> int | None:
        """The number of the node that owns a shard."""
        return self._node if shard in self.owners else self._routes.get(shard)

    # --- from the owners of this node -------------------------------------------------------------

    def deliver(self, answers: Sequence[Answer]) -> None:
        here: list[Answer] = []
        for answer in answers:
            if (node := node_of(answer.via)) == self._node:
                here.append(answer)
            elif node in self.nodes:
                if not self._answers:
                    self._soon()
                self._answers.setdefault(node, []).append((answer.via, answer.said))
        if here and self._take_answers:
            self._take_answers(here)

    def grew(self, device: int, lane: Lane) -> None:
        self._news.append((GREW, device, lane))

    def changed(self, device: int) -> None:
        self._news.append((CHANGED, device, Lane.NORMAL))

    def dismissed(self, device: int) -> None:
        self._news.append((DISMISSED, device, Lane.NORMAL))

    def low(self, device: int) -> None:
        self._news.append((LOW, device, Lane.NORMAL))

    def settled(self) -> None:
        news, self._news = self._news, []
        if news:
            for node in self.nodes:
                self._say(node, NewsFrame(news))
            self._tell(news)

    def _tell(self, news: Sequence[tuple[int, int, Lane]]) -> None:
        if (listener := self._listener) is None:
            return
        for what, device, lane in news:
            if what == GREW:
                listener.grew(device, lane)
            elif what == CHANGED:
                listener.changed(device)
            elif what == DISMISSED:
                listener.dismissed(device)
            elif what == LOW:
                listener.low(device)
        listener.settled()

    # --- out --------------------------------------------------------------------------------------

    def announce(self, *, again: bool = False) -> None:
        """Say which shards are owned here, if that has changed, or `again`."""
        owns = {shard: self.fold(shard) if own.mailboxes else 0 for shard, own in self.owners.items()}
        if again or owns != self._said:
            self._said = owns
            for node in self.nodes:
                self._say(node, OwnsFrame(owns))

    def _say(self, node: int, frame: Frame) -> None:
        if not self._outgoing:
            self._soon()
        self._outgoing.setdefault(node, []).append(frame)

    def flush(self) -> None:
        for node, answers in self._answers.items():
            self._say(node, AnswersFrame(answers))
        self._answers = {}
        outgoing, self._outgoing = self._outgoing, {}
        for node, frames in outgoing.items():
            self._send(node, msgspec.msgpack.encode((self._node, frames)))

    # --- in ---------------------------------------------------------------------------------------

    def take(self, packet: bytes) -> None:
        """What another node says. What is not understood, as of a newer program, is dropped and counted."""
        try:
            node, frames = _packet.decode(packet)
        except msgspec.DecodeError:
            self.refused += 1
            return
        for frame in frames:
            match frame:
                case AnswersFrame(answers):
                    if self._take_answers:
                        self._take_answers([Answer(via, said) for via, said in answers])
                case NewsFrame(news):
                    self._tell(news)
                case QuestionFrame():
                    self._answer(node, frame)
                case ReplyFrame(number, result):
                    if on_reply := self._waiting.pop(number, None):
                        on_reply(result)
                case OwnsFrame(folds):
                    self._route(node, folds)

    def _answer(self, node: int, question: QuestionFrame) -> None:
        if question.shard == NO_SHARD:
            self._answer_itself(node, question)
            return
        own = self.owners.get(question.shard)
        if own is None or own.mailboxes is None:
            return  # It has just gone elsewhere: the desk asks again.

        def reply(result: bytes) -> None:
            self._say(node, ReplyFrame(question.number, result))

        try:
            put(own.mailboxes, question.name, question.arguments, reply)
        except (msgspec.DecodeError, KeyError):
            self.refused += 1

    def _answer_itself(self, node: int, question: QuestionFrame) -> None:
        answer = self.answers.get(question.name)
        try:
            if answer:
                self._say(node, ReplyFrame(question.number, answer(node, question.arguments)))
        except msgspec.DecodeError:
            self.refused += 1

    def _route(self, node: int, folds: Mapping[int, int]) -> None:
        for shard in [shard for shard, owner in self._routes.items() if owner == node and shard not in folds]:
            del self._routes[shard]
        for shard, fold in folds.items():
            if not 0 <= shard < len(self._folds):
                self.refused += 1
                continue
            # A newer program may be further than this one can go: then its owners stop this one, in words.
            self._folds[shard] = max(self._folds[shard], min(fold, NEWEST_FOLD))
            if fold and self._routes.get(shard) != node and shard not in self.owners:
                self._routes[shard] = node
                self._on_owner_changed(shard)

    def forget(self, node: int) -> None:
        """The node is gone."""
        self._routes = {shard: owner for shard, owner in self._routes.items() if owner != node}
