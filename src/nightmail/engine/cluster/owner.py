"""One shard on one node, from takeover to end.

Knows:   how far the takeover is, and the loop once there is one.
Touches: the shard's rows and log; other shards' logs, by forwards; answers and news, on their way to other nodes.
Never:   reads a clock, waits or sleeps: the node calls `tick` a few times a second. Never asks whether it is still
         the owner: one that was replaced computes the same, and what it writes does no harm.

A takeover: open the rows where their pointer stands; ask where the log ends; read the log from the pointer to
that end; fold it, and serve. Everything above the pointer is answered again, because the owner before may have
died between append and answer, and the node that asked still waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from nightmail.core.shard import fold_to_raise
from nightmail.core.state import ShardState
from nightmail.engine.desk import LoopDesk
from nightmail.engine.forwarder import Forwarder, ForwarderLimits
from nightmail.engine.loop import TICK, Loop, LoopLimits
from nightmail.engine.ports import Damaged, EngineError, Failed, Listener, Rows
from nightmail.engine.trace import Tracer
from nightmail.engine.watcher import Watcher
from nightmail.model.effects import Answer, Call, Effect, LookForBytes, RemoveBytes, Wake
from nightmail.model.limits import FoldLimits

from .followed_log import FollowedLog
from .fresh_reads import FreshReads
from .ports import AnswerDelivery, Nodes, OpenRows, OwnerQuestions, SharedLog

FAILURES_TOLD = 20
"""So many failures, some seconds or more, are told an operator; and each time so many more."""
RETRY_MS = 50
"""After rows could not be opened, or the log's end not be read."""
LOST_LOG = (
    "the log of shard {} ends at {}, before its checkpoint at {}: it is another log, or has lost what was acknowledged"
)
STIR_MS = 6 * 60 * 60 * 1000
"""How often a shard that has something to forget gets a record: a log removes no segment that may still be written."""
RAISE_MS = 1_000
"""How often an owner looks whether every node supports a newer fold."""


class OwnerWatcher(Watcher):
    """What an owner tells its node. Does nothing; replace what you care about."""

    def on_fell_behind(self) -> None:
        """Another owner has saved and trimmed what this one has not read: it starts again from that checkpoint."""

    def on_fold_raised(self, fold: int) -> None:
        """Every node supports a newer fold: the owner appends that the shard goes on with it."""

    def on_limits_set(self, before: FoldLimits, after: FoldLimits) -> None:
        """The shard went by other limits than this node's settings: the owner appends that it goes on with these."""

    def on_call(self, call: Call) -> None:
        """A webhook is to be called. It is asked for again until somebody says what became of it."""

    def on_wake(self, device: int) -> None:
        """Something waits for a device: push, unless some node holds it. It is said again until it is fetched."""

    def on_bytes(self, effect: RemoveBytes | LookForBytes) -> None:
        """A blob is no more, or its bytes are to be looked for. What is not done is asked again, or swept."""

    def on_stopped(self, why: EngineError) -> None:
        """It cannot go on, for example because this program is too old, and has ended. Another node must take over."""


class Owner:
    def __init__(
        self,
        shard: int,
        log: SharedLog,
        open_rows: OpenRows,
        answers: AnswerDelivery,
        listener: Listener,
        nodes: Nodes,
        *,
        new_state: Callable[[], ShardState],
        clock: Callable[[], int],
        pace: Callable[[], int],
        entropy: Callable[[int], bytes],
        limits: LoopLimits,
        forwarder_limits: ForwarderLimits | None = None,
        watcher: OwnerWatcher,
        fold_limits: FoldLimits | None = None,
        new_tracer: Callable[[Rows], Tracer] | None = None,
    ) -> None:
        """`listener` is told the news of this shard's devices, and passes them to the nodes that hold those.

        `clock` stamps, and may jump; `pace` never does. `fold_limits`: the shard goes by these from its takeover on;
        without, by those it has. Without `new_tracer` no message is traced.
        """
        self.shard = shard
        self._shared, self._open_rows, self._answers, self._nodes = log, open_rows, answers, nodes
        self._listener, self._watcher, self._limits = listener, watcher, limits
        self._forwarder_limits, self._new_tracer = forwarder_limits, new_tracer
        self._new_state, self._clock, self._pace, self._entropy = new_state, clock, pace, entropy
        self._limits_to_set = fold_limits
        self.alive = True
        self.is_settled = False
        """The fold and the limits are those that this node would have, as far as the others let it."""
        self.rows: Rows | None = None
        self.loop: Loop | None = None
        """Once the log is read up to where it ended at the takeover."""
        self._log: FollowedLog | None = None
        self._desk: LoopDesk | None = None
        self._reads: FreshReads | None = None
        self._end: int | None = None
        """Where the log ended at the takeover."""
        self._retry_at: int | None = None
        self._failures = 0
        """Steps of the takeover that failed."""
        self._looked_at = 0
        """When it last looked for a fold to raise."""
        self._stirred_at, self._stirred_upto = self._pace(), 0
        """When the log was last stirred, and where it ended then."""
        self._take_over()

    @property
    def mailboxes(self) -> OwnerQuestions | None:
        """Whom other nodes ask; None before there is anything to ask for."""
        return self._reads

    def end(self) -> None:
        """Stop here and now. What is under way elsewhere may still arrive, and does no harm."""
        self.alive = False
        if self._log:
            self._log.close()

    # --- taking over --------------------------------------------------------------------------

    def _take_over(self) -> None:
        def opened(rows: Rows | Failed) -> None:
            if not self.alive:
                return
            if isinstance(rows, Failed):
                self._failed(rows)
                return
            self.rows, self._end = rows, None
            self._log = log = FollowedLog(self._shared, self.shard, rows.pointer, self._on_batch, self._on_trimmed_away)
            self._shared.end(self.shard, partial(self._ended, log))

        self._retry_at = None
        if self._log:
            self._log.close()
        self._open_rows(opened)

    def _ended(self, log: FollowedLog, end: int | Failed) -> None:
        if log is not self._log:
            return  # The takeover has begun again meanwhile.
        if isinstance(end, Failed):
            self._failed(end)
        elif self.rows is not None and end < self.rows.pointer:
            # Offsets would be given a second time, and what has them would pass for old.
            self.end()
            self._watcher.on_stopped(Damaged(LOST_LOG.format(self.shard, end, self.rows.pointer)))
        else:
            self._end = end
            self._on_batch()

    def _failed(self, why: Failed) -> None:
        """Try again soon. An operator is told when that does not help for a while."""
        self._retry_at = self._pace() + RETRY_MS
        self._failures += 1
        if self._failures % FAILURES_TOLD == 0:
            self._watcher.on_trouble(why.why)

    def _on_batch(self) -> None:
        loop, log = self.loop, self._log
        if not self.alive or log is None:
            return
        if loop is not None:
            self._follow(loop, log)
        elif self.rows is not None and self._end is not None and log.last >= self._end:
            self._start(self.rows, log)

    def _start(self, rows: Rows, log: FollowedLog) -> None:
        desk = LoopDesk(self._entropy, self._pace)
        loop = Loop(
            log, rows, self._clock, self._on_effects, new_state=self._new_state,
            forwarder=Forwarder(self.shard, self._forward, rows, self._forwarder_limits),
            pace=self._pace, limits=self._limits, watcher=self._watcher,
        )  # fmt: skip
        desk.attend(loop, self._listener, tracer=self._new_tracer(rows) if self._new_tracer else None)
        self.loop, self._desk = loop, desk
        self._reads = FreshReads(desk, loop, partial(self._shared.end, self.shard))
        loop.recover(announce_after=0)

    def _on_trimmed_away(self) -> None:
        self._watcher.on_fell_behind()
        if self.loop is None:
            self._retry_at = self._pace()
        else:
            self.loop.fell_behind()

    # --- serving ------------------------------------------------------------------------------

    def tick(self) -> None:
        """Let time pass: retry, take checkpoints, ask for rows again. After `on_stopped` it does nothing."""
        now = self._pace()
        if not self.alive:
            return
        if self._retry_at is not None and now >= self._retry_at:
            self._take_over()
        loop, log, desk = self.loop, self._log, self._desk
        if loop is None or log is None or desk is None:
            return
        loop.tick()
        desk.tick()
        self._follow(loop, log)
        if loop.stopped:
            self.end()
            self._watcher.on_stopped(loop.stopped)
        elif loop.ready and now - self._looked_at >= RAISE_MS:
            self._looked_at = now
            self._adopt(loop)
            self._stir(loop, now)

    def _follow(self, loop: Loop, log: FollowedLog) -> None:
        """Feed what was read behind what was fed before, and answer what has waited for it."""
        if loop.ready:
            for batch in log.after(loop.next_offset - 1):
                loop.feed(batch)
            if self._reads:
                self._reads.look()

    def _adopt(self, loop: Loop) -> None:
        """Raise the fold once every node supports it, and then set this node's limits.

        Limits once in a takeover: two owners with different settings must not overrule each other for ever. And not
        before the newest fold: a node that does not know it may not know all of these limits.
        """
        shard, limits = loop.state.shard, loop.state.shard.limits
        fold = fold_to_raise(shard.fold, self._nodes.folds())
        if fold:
            self._watcher.on_fold_raised(fold)
        if self._limits_to_set and (fold or shard.fold) >= loop.state.newest_fold:
            if limits == self._limits_to_set:
                self._limits_to_set = None
            else:
                self._watcher.on_limits_set(limits, self._limits_to_set)
                limits = self._limits_to_set
        self.is_settled = loop.adopt(fold or shard.fold, limits)

    def _stir(self, loop: Loop, now: int) -> None:
        """Have an idle log begin a new segment, so that the bytes of the old one can go."""
        if now - self._stirred_at < STIR_MS:
            return
        if loop.folded_upto > self._stirred_upto:
            loop.submit(TICK)
            loop.flush()
        # The record itself is nothing to forget.
        self._stirred_at, self._stirred_upto = now, loop.folded_upto + self._shared.span

    def _forward(self, shard: int, records: Sequence[bytes], done: Callable[[bool], None]) -> None:
        def appended(first: int | None) -> None:
            if self.alive:
                done(first is not None)

        self._shared.append(shard, self._clock(), records, appended)

    def _on_effects(self, effects: Sequence[Effect]) -> None:
        if not self.alive or self._desk is None:
            return
        answers: list[Answer] = []
        news: list[Effect] = []
        for effect in effects:
            if type(effect) is Call:
                self._watcher.on_call(effect)
            elif type(effect) is Wake:
                self._watcher.on_wake(effect.device)
            elif isinstance(effect, RemoveBytes | LookForBytes):
                self._watcher.on_bytes(effect)
            elif type(effect) is not Answer:
                news.append(effect)
            elif effect.via:
                answers.append(effect)
        if answers:
            self._answers.deliver(answers)
        if news:
            self._desk.on_effects(news)
