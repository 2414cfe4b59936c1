# pyright: reportPrivateUsage=false
"""Bugs in what is sealed, opened, believed and kept of it."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace

from nightmail.client.inbox.inbox import Inbox
from nightmail.client.outbox import envelopes
from nightmail.client.outbox.successors import Successors
from nightmail.client.trust.believed_lists import BelievedLists, _check_named
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.client.trust.sessions import Sessions
from nightmail.e2ee import bundles, cipher, lists, note, peers, ratchet, session
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.kdf import chain_step
from nightmail.model.rows import Entry

from .tools import Bug, Focus, edit, edit_method, method, swap

CLIENT = tuple(
    f"tests/client/{name}.py"
    for name in ("trust/test_e2ee_sealer", "outbox/test_reseals", "trust/test_believed_lists", "test_evil_server",
                 "test_evil_lists")
)  # fmt: skip
E2EE = tuple(
    f"tests/e2ee/test_{name}.py"
    for name in ("peers", "ratchet", "schedules", "note", "lists", "bundles", "sealing", "keys")
)
SECONDS = 12.0
CHANGING_KEYS = Focus(
    {"start_over": 1, "verify": 3, "hesitate": 1.0, "link": 0, "remove": 0, "set_back": 0},
)
"""Worlds in which people start over, those who verified them see it, and do not agree for long."""


def _advances_anyway() -> AbstractContextManager[None]:
    """What does not open uses up a key all the same."""
    right = Sessions.open

    def wrong(sessions: Sessions, entry: Entry) -> Any:
        try:
            return right(sessions, entry)
        except Rejected:
            peer = sessions.find(entry.by)
            if peer is not None and peer.sessions and peer.sessions[0].ratchet.receiving:
                first, *others = peer.sessions
                chain, _ = chain_step(first.ratchet.receiving)
                after = replace(first.ratchet, receiving=chain, received=first.ratchet.received + 1)
                sessions.put(replace(peer, sessions=(replace(first, ratchet=after), *others)))
            raise

    return method(Sessions, "open", wrong)


def _no_change() -> AbstractContextManager[None]:
    return swap(_check_named, lambda signed, item: None)


def sealed(name: str, plant: Any, unit: tuple[str, ...], seconds: float = SECONDS, focus: Focus | None = None) -> Bug:
    return Bug(name, plant, ("sealed",), unit, seconds, focus)


def forged(what: str, name: str, plant: Any, unit: tuple[str, ...], seconds: float = SECONDS) -> Bug:
    """Only a server that lies shows it, about entries, lists or keys."""
    return Bug(name, plant, (f"forged {what}",), unit, seconds)


BUGS = (
    # --- what is kept, and with what
    sealed("a ratchet is saved after what it sealed was sent",
           edit_method(Sessions, "seal", "self.put(peer)", "self._keep(peer)"), CLIENT),
    sealed("an opened message's ratchet is not saved with it",
           edit_method(Sessions, "open", "self.put(opened.peer)", "self._keep(opened.peer)"), CLIENT),
    sealed("a retry is sealed again",
           edit(envelopes.unsealed, "kept = row.envelopes", "kept = {}"), CLIENT),
    forged("entries", "what does not open uses up a key", _advances_anyway, CLIENT),
    sealed("keys that were skipped are not kept", edit(ratchet._bounded, "return kept", "return {}"), E2EE),
    forged("entries", "an opened key is kept and opens again",
           edit(ratchet._take, "del left[header.key + _NUMBER.pack(header.number)]", "pass"), E2EE),
    forged("entries", "a one-time key is not deleted when it was used",
           edit(peers._open_first, "spend(keys, block.one_time_id, block.kem_id, block.ephemeral)", "keys"), E2EE,
           20),
    # --- what is checked of a message
    forged("entries", "a MAC is not checked", edit(cipher.decrypt, "raise Undecipherable", "pass"), E2EE),
    forged("entries", "a tag is not checked", edit(note.check, 'raise NotAsAnnounced("content tag")', "pass"), E2EE),
    forged("entries", "a message id is not checked",
           edit(note.check, 'raise NotAsAnnounced("message id")', "pass"), E2EE),
    forged("entries", "a kind is not checked", edit(note.check, 'raise NotAsAnnounced("kind")', "pass"), E2EE),
    # --- whose keys and lists
    forged("keys", "a signed prekey's signature is not checked",
           edit(bundles.check_bundle, "verify(who.signing, Label.SIGNED_PREKEY, body, prekey.signature)", "pass"),
           E2EE),
    forged("keys", "a KEM key's signature is not checked",
           edit(bundles.check_bundle, "verify(who.signing, kem_prekey.label, body, kem_prekey.signature)", "pass"),
           E2EE),
    forged("keys", "a bundle of another identity is taken",
           edit(peers._check, "raise IdentityChanged(peer.device)", "pass"), E2EE),
    forged("lists", "a list's signature is not checked",
           edit(lists.check_list, "verify(found.key, ", "(lambda *_: None)(found.key, "),
           E2EE),
    forged("lists", "a list may go back to an older version",
           edit(lists.check_list, "raise ListRolledBack(account, known.version, found.version)", "pass"), E2EE,
           seconds=20),
    forged("lists", "a device that only the server names is sealed for", _no_change, CLIENT),
    sealed("another account key is taken without a word",
           edit_method(BelievedLists, "_change", "context.tell(SecurityCodeChanged(",
                       "(lambda _: None)(SecurityCodeChanged("), CLIENT),
    sealed("a verified contact's new key is used unasked",
           edit_method(E2eeSealer, "is_held", "return self.believed.is_held(account)", "return False"), CLIENT, 20,
           CHANGING_KEYS),
    sealed("a second change of key lifts what the first one held",
           edit_method(BelievedLists, "_change", "row.verified or row.held", "row.verified"), CLIENT, 30,
           CHANGING_KEYS),
    # --- which session
    sealed("the session that came last is sealed in",
           edit(peers._with, "tuple(sorted((*kept, fresh), key=lambda one: (-one.made, one.id)))", "(fresh, *kept)"),
           E2EE, 20),
    forged("entries", "a session is dropped although there is room for it",
           edit(peers._with, "SESSIONS_MAX", "2"), E2EE, 30),
    forged("entries", "the newest session is dropped, not the oldest",
           edit(peers._with, "peer.sessions[:-1]", "peer.sessions[1:]"), E2EE, 30),
    sealed("a session is repeated in front only once",
           edit(session.seal, "return _with(session, after), header + sealed",
                "return replace(session, ratchet=after, block=b''), header + sealed"), E2EE),
    sealed("a re-seal never begins a new session",
           edit_method(Sessions, "renew", "self._request(device)", "pass"), CLIENT, 45),
    # --- what follows
    sealed("what cannot be opened counts as delivered",
           edit_method(Inbox, "_miss", "self._context.store.put_unopened(lane, seq)", "pass"), CLIENT),
    sealed("a successor gets nothing",
           edit_method(Successors, "_found", "self._outbox.reseal(message, device)", "pass"), CLIENT, 20),
)  # fmt: skip
