"""A scheduled message arrives at its recipient's shard: its time has come.

Knows:   the author's stream, the recipient's account and mailboxes.
Touches: those; through `tell`, the author's shard, which learns what became of it.

It is judged like a message that is sent now, but takes its number from the third count of the stream, and is not
refused for the version of the list: only the devices that it is sealed for are compared.
"""

from __future__ import annotations

from nightmail.core import send, shares
from nightmail.core.late_filing import file_late
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState
from nightmail.model.ids import account_of
from nightmail.model.records import Fired, FiringOutcome, FiringSettled, Sent
from nightmail.model.refusals import AnyRefusal, StaleDevices
from nightmail.model.rows import Account, Need, Stream
from nightmail.model.schedule_rows import SCHEDULED_FROM
from nightmail.model.words import Lane


def needs_fired(state: ShardState, _by: int, fired: Fired) -> list[Need]:
    return send.needs_sent(state, fired.by, _as_sent(fired, 0, None))


def step_fired(state: ShardState, _by: int, _via: int, fired: Fired) -> None:
    by, to = fired.by, fired.to
    account = state.accounts.rows[to]
    stream = state.streams.rows[by, to] or Stream()
    sent = _as_sent(fired, stream.scheduled + 1, account)
    if refusal := _check(state, account, by, sent):
        outcome = FiringOutcome.STALE if isinstance(refusal, StaleDevices) else FiringOutcome.REFUSED
        state.tell(account_of(by), FiringSettled(account_of(by), fired.serial, outcome, error=refusal.word))
        return
    stream.scheduled += 1
    stream.at = at = max(state.now, stream.at + 1)
    state.streams.put((by, to), stream, state.offset)
    state.ledger.owed += len(sent.envelopes)
    file_late(state, by, sent, at, account, is_checked=True)
    settled = FiringSettled(account_of(by), fired.serial, FiringOutcome.FILED, sent.n, at)
    state.tell(account_of(by), settled)


def _check(state: ShardState, account: Account | None, by: int, sent: Sent) -> AnyRefusal | None:
    is_blocked = account is not None and account_of(by) in account.blocked
    if is_blocked:
        state.known.rows[sent.to]
    refusal = send.check(state, account, by, sent)
    if refusal is None and is_blocked:
        return shares.withhold(state, by, sent)
    return refusal


def _as_sent(fired: Fired, count: int, account: Account | None) -> Sent:
    f, n = fired, SCHEDULED_FROM + count
    version = account.list_version if account else f.content.list_version
    envelopes, own = f.content.envelopes, f.content.own_envelopes
    return Sent(f.to, Lane.NORMAL, n, n, 0, f.id, f.tag, f.kind, None, f.life_ms, version, envelopes, own)


STEPS: Steps = {5: {Fired: (needs_fired, step_fired)}}
OPTIMISTIC = {Fired}
