"""Whom this person knows, told to the server: it gives people who are known more room in a full mailbox.

Knows:   whom the person has written to or saved, and of whom the server has been told.
Touches: one errand for each account, so that a restart only delays it.
Never:   tells a name; or says the record to a server that does not know it; or asks about two accounts at a time.
"""

from __future__ import annotations

from functools import partial

from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry
from nightmail.model.answers import Said
from nightmail.model.records import Known
from nightmail.model.refusals import Refusal
from nightmail.model.words import Lane

WAITING = "know "
TOLD = "known "
"""The server has answered. Kept, so that each account is told of once."""
LOOKED = "knows"
"""The contacts and conversations of a profile from before this was told have been looked through."""


class KnownPeople:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.retry = Retry(context, self._ask_next)
        self._noted = {int(name.rpartition(" ")[2], 16) for prefix in (WAITING, TOLD) for name in self._errands(prefix)}
        self._is_asking = False

    def know(self, account: int) -> None:
        """The person writes to this account, or saves it."""
        if account in self._noted or account == self._context.identity.account:
            return
        self._noted.add(account)
        self._context.store.put_errand(f"{WAITING}{account:013x}", b"")
        if self._context.online:
            self._ask_next()

    def connected(self) -> None:
        self.retry.reset()
        self._is_asking = False
        if self._context.store.errand(LOOKED) is None:
            self._look_through()
        self._ask_next()

    def _look_through(self) -> None:
        """Note everybody whom the person knew before it was noted."""
        store = self._context.store
        for contact in store.contacts():
            if contact.name:
                self.know(contact.account)
        for conversation in store.conversations():
            # Only a person writes in the normal lane; devices write in the high one by themselves.
            if store.last_number(conversation.peer, Lane.NORMAL):
                self.know(conversation.peer)
        store.put_errand(LOOKED, b"")

    def _ask_next(self) -> None:
        if self._is_asking or Known.since > self._context.server_since or self.retry.due is not None:
            return
        for name in self._errands(WAITING)[:1]:
            account = int(name.removeprefix(WAITING), 16)
            self._is_asking = True
            self._context.ask(Known(self._context.identity.account, account, True), partial(self._answered, account))

    def _answered(self, account: int, said: Said) -> None:
        self._is_asking = False
        if isinstance(said, Refusal) and said.retry:
            self.retry.later()
            return
        self.retry.reset()
        store = self._context.store
        store.drop_errand(f"{WAITING}{account:013x}")
        store.put_errand(f"{TOLD}{account:013x}", b"")
        self._ask_next()

    def _errands(self, prefix: str) -> list[str]:
        return self._context.store.errands(prefix)
