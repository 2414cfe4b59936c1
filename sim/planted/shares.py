# pyright: reportPrivateUsage=false
"""Bugs in shares of mailboxes, and in blocking."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import blocking, expiry, mailbox, shares
from nightmail.model.records import Sent, Swept
from nightmail.model.rows import Kept

from .tools import Bug, Focus, edit, in_needs, in_step, without

FLOODED = Focus({"lie": 20, "offline": 6})
"""Worlds in which a stranger sends as much as it may, while devices are away."""
BLOCKING = Focus({"block": 6, "offline": 6, "write": 30})

BUGS = (
    Bug("a stranger has the share of a friend",
        edit(shares._knows, "known is not None and peer in known.accounts", "True"), ("node", "cluster"),
        focus=FLOODED),
    Bug("a friend is taken for a stranger",
        edit(shares._knows, "known is not None and peer in known.accounts", "False"), ("node", "cluster"),
        focus=FLOODED),
    Bug("what is acknowledged still counts in its share",
        edit(mailbox.step_acked, "shares.let_go(state, by, ", "len("), ("node", "cluster"), focus=FLOODED),
    Bug("what expires still counts in its share",
        edit(expiry.make_gaps, "shares.let_go(state, device, ended)", "pass"), ("node", "cluster"),
        focus=Focus({"lie": 20, "offline": 6, "timer": 0.5, "block": 6})),
    Bug("what is filed is not counted in its share",
        edit(mailbox.file, "shares.add(state, device, entry.by, size)", "pass"), ("node", "cluster"), focus=FLOODED),
    Bug("shares are begun without what waits in one lane",
        edit(shares.count, "for lane in Lane:", "for lane in (Lane.NORMAL,):"), ("node", "cluster"),
        focus=Focus({"lie": 20, "offline": 6, "high_lane": 0.5})),
    Bug("needs of Sent miss the shares", in_needs(Sent, without(Kept.SHARES)), ("node", "cluster"), focus=FLOODED),
    Bug("needs of Sent miss whom the recipient knows", in_needs(Sent, without(Kept.KNOWN)), ("node", "cluster"),
        focus=FLOODED),
    Bug("a block frees nothing", in_step(Swept, lambda _: lambda *_: None), ("node", "cluster"), focus=BLOCKING),
    Bug("a block frees what others have sent",
        edit(blocking.step_swept, "and _is_blocked(account, entries[seq])", ""), ("node", "cluster"),
        focus=BLOCKING),
)  # fmt: skip
