"""What a shard has taken on, and what became of it: counted where it happens, so that nothing is lost unseen.

A *copy* is one message for one device: an entry, or what would have been one. In a group's log it is one for the group.
"""

from __future__ import annotations

from msgspec import Struct, field

from .mutable import mutable


@mutable
class CopyLedger(Struct, array_like=True, gc=False):
    """Copies, since fold 6. Each that is owed has been delivered, has failed, was withheld, waits, or is buried.

    An entry that was filed before fold 6 was never owed: when it ends, fewer wait and more have ended, which is even.
    """

    owed: int = 0
    """Taken on: a message was accepted for that device."""
    delivered: int = 0
    """Acknowledged as stored; in a group's log: everybody has it."""
    failed: dict[int, int] = field(default_factory=dict)
    """Reason → how many have failed, and their sender was told, where there is one to be told."""
    withheld: int = 0
    """From senders that their recipient blocks."""
    waiting: int = 0
    """Entries in mailboxes, less those that were filed before fold 6 and have ended since."""
    buried: int = 0
    """In dead letters that nobody has settled."""
    carried: int = 0
    """Handed on to the fold of another record, which may be that of another shard, less what was taken over."""
    repeated: int = 0
    """Retries of messages that were accepted before, answered by the log."""

    @property
    def lost(self) -> int:
        """Copies that nobody answers for. Of all shards together; what a forward carries counts until it is taken."""
        ended = self.delivered + sum(self.failed.values()) + self.withheld
        return self.owed - ended - self.waiting - self.buried + self.carried

    def fail(self, reason: int, count: int = 1) -> None:
        if count:
            self.failed[reason] = self.failed.get(reason, 0) + count
