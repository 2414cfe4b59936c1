"""What another device of the account knew before this one: its history, its contacts, and whom it trusted.

Knows:   that what this device learned by itself counts, and that one message has one row.
Touches: believed lists, contacts, conversations, groups, messages and their read marks.
Never:   shows a message that is here, or was here; takes keys of another device; or lengthens a life.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from nightmail.client.machine.context import Context
from nightmail.client.outbox.ticks import in_group
from nightmail.client.store.group_rows import GroupRow, GroupStanding
from nightmail.client.store.rows import Contact, MessageNumber, ReadMark, Trusted
from nightmail.client.timers.deadlines import Deadlines
from nightmail.client.timers.lives import counted, has_begun
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.e2ee.errors import Rejected

from .controls import PastGroup, PastMessage

ENDED = (GroupStanding.LEFT, GroupStanding.REMOVED)


class Past:
    def __init__(self, context: Context, believed: BelievedLists, deadlines: Deadlines) -> None:
        self._context, self._believed, self._deadlines = context, believed, deadlines

    def trust(self, row: Trusted) -> None:
        """Whom the other device trusted. What nobody signed is left out; the account's own list, too."""
        if row.account != self._context.identity.account:
            with suppress(Rejected):
                self._believed.adopt(row)

    def keep_contact(self, contact: Contact) -> None:
        if self._context.store.contact(contact.account) is None:
            self._context.store.put_contact(contact)

    def keep_handle(self, account: int, handle: str) -> None:
        conversation = self._context.store.conversation(account)
        if not conversation.handle:
            self._context.store.put_conversation(replace(conversation, handle=handle))

    def keep_group(self, group: PastGroup) -> None:
        """Its name. Who is in it now, and with which keys, only a member can say."""
        if self._context.store.group(group.group) is None:
            standing = GroupStanding(group.standing)
            self._context.store.put_group(
                GroupRow(
                    group=group.group, standing=standing if standing in ENDED else GroupStanding.INVITED,
                    name=group.name, picture=group.picture, joined_at=group.joined_at,
                )
            )  # fmt: skip

    def keep_message(self, past: PastMessage) -> bool:
        """Whether it was not here yet."""
        store = self._context.store
        if store.message(past.id) is not None or self._deadlines.is_gone(past.id):
            return False
        message = past.message()
        if has_begun(message):
            # The clocks of two devices differ: it may never live longer than its life from now on. An old device of a
            # former version counts no lives, and says no deadline.
            latest = counted(self._context, replace(message, deadline=0)).deadline
            message = replace(message, deadline=min(message.deadline or latest, latest))
        store.put_message(message)
        if past.unread and not past.own:
            lane, n = past.unread
            own = self._context.identity.account
            row = MessageNumber(past.by, own, lane, n, past.id, ReadMark.UNREAD)
            store.put_numbered(in_group(message, ReadMark.UNREAD) if past.group_seq else row)
        conversation = store.conversation(past.peer)
        store.put_conversation(replace(conversation, seen=max(conversation.seen, past.at)))
        return True
