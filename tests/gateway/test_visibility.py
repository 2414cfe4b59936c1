"""Who may see whose presence: every combination."""

from __future__ import annotations

from itertools import product

from nightmail.gateway.visibility import may_see
from nightmail.model.rows import Account, KnownAccounts
from nightmail.model.words import Audience

ADA, BEN = 11, 13


def test_a_watcher_sees_who_shows_itself_to_it_unless_one_of_both_hides_or_it_is_blocked() -> None:
    for audience, own, known, blocked in product(Audience, Audience, (True, False), (True, False)):
        row = Account("ada", blocked={BEN: 1} if blocked else {})
        contacts = KnownAccounts({BEN: 1}) if known else None
        shown = audience is Audience.EVERYONE or (audience is Audience.CONTACTS and known)
        assert may_see(BEN, own, ADA, audience, row, contacts) == (
            shown and own is not Audience.NOBODY and not blocked
        )  # fmt: skip


def test_nobody_sees_an_account_that_is_closed_or_was_never_there() -> None:
    for row in (None, Account("ada", closed=True)):
        assert not may_see(BEN, Audience.EVERYONE, ADA, Audience.EVERYONE, row, KnownAccounts({BEN: 1}))
        assert not may_see(ADA, Audience.EVERYONE, ADA, Audience.EVERYONE, row, None)


def test_an_account_sees_itself() -> None:
    assert may_see(ADA, Audience.NOBODY, ADA, Audience.NOBODY, Account("ada"), None)
