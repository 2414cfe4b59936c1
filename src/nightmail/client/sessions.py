"""Sessions with other devices: begun by a claimed bundle, advanced by every message, in the store with it.

Knows:   each device's sessions, and for whose keys was asked.
Touches: peer rows, claims.
Never:   uses a bundle whose signatures or identity do not fit the list that was believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from nightmail.e2ee import peers
from nightmail.e2ee.bundles import check_bundle
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import NotListed, Refused
from nightmail.e2ee.note import Note
from nightmail.e2ee.peers import Peer
from nightmail.e2ee.sealing import open_entry, seal_note
from nightmail.e2ee.state import decode_peer, encode_peer
from nightmail.model.answers import Bundle, Said
from nightmail.model.ids import account_of
from nightmail.model.records import Claimed
from nightmail.model.refusals import RateLimited, Refusal, UnknownDevice
from nightmail.model.rows import Entry

from .events import KeysRefused
from .hub import Hub
from .keyring import Keyring
from .lists import Lists
from .messages import conversation_id
from .sealer import Then
from .trust import Trust

CACHED = 512
"""Devices whose sessions are kept decoded. The store has all of them."""
REQUEST_BYTES = 6


class Sessions:
    def __init__(self, hub: Hub, lists: Lists, trust: Trust, keyring: Keyring) -> None:
        self._hub, self._lists, self._trust, self._keyring = hub, lists, trust, keyring
        self._cache: dict[int, Peer] = {}
        self._claims = hub.store.claims()
        self._asked: dict[int, int] = {}
        """Device → when its keys were asked for over this connection."""
        self._not_before: dict[int, int] = {}
        """Device → when its keys may be asked for again, if the server said so."""
        self._waiting: dict[int, dict[object, tuple[Then, Then]]] = {}
        self.guests: dict[int, Peer] = {}
        """Devices that no list names yet, but that the person has agreed to: as their code has them."""
        self.on_gone: Callable[[int], None] = lambda _: None
        """Called with one of them that the server no longer has."""
        hub.rekeyed.append(self._rekeyed)

    # --- sealing --------------------------------------------------------------------------------

    def ready(self, devices: Mapping[int, int], who: object, then: Then, otherwise: Then) -> bool:
        missing = [device for device in devices if device in self._claims or not self._listed(device).ready]
        for device in missing:
            self._waiting.setdefault(device, {})[who] = then, otherwise
            self._claim(device)
        return not missing

    def seal(self, device: int, note: Note) -> bytes:
        peer, sealed = seal_note(self._listed(device), note)
        self.put(peer)
        return sealed

    def renew(self, device: int) -> bool:
        """Begin anew before the next seal, unless that was done within the hour; whether it will be."""
        peer, hub = self.find(device), self._hub
        if peer is not None and peer.ready and peers.may_restart(peer, hub.now, hub.limits.restart_ms):
            self._request(device)
        return peer is None or not peer.ready or device in self._claims

    # --- opening --------------------------------------------------------------------------------

    def open(self, entry: Entry) -> Note:
        hub, keyring = self._hub, self._keyring
        conversation = conversation_id(account_of(entry.by), entry.to)
        opened = open_entry(keyring.keys, self._author(entry), entry, conversation, hub.now, hub.secrets)
        decode_content(opened.note.content)  # what no client could show is as good as unreadable
        if opened.keys is not keyring.keys:
            keyring.put(opened.keys)
        self.put(opened.peer)
        return opened.note

    # --- the states -----------------------------------------------------------------------------

    def find(self, device: int) -> Peer | None:
        """The sessions with a device, whoever vouches for it."""
        if (peer := self._cache.get(device)) is None and (state := self._hub.store.peer(device)) is not None:
            peer = self._keep(decode_peer(state))
        return peer

    def put(self, peer: Peer) -> None:
        self._keep(peer)
        self._hub.store.put_peer(peer.device, encode_peer(peer))

    def forget(self, now: int) -> None:
        """Daily: let go of skipped keys whose time is over, and of devices that left long ago."""
        for device in self._hub.store.peers():
            peer = self.find(device)
            if self._trust.is_gone(device):
                self._cache.pop(device, None)
                self._hub.store.drop_peer(device)
            elif peer is not None and (after := peers.forget(peer, now)) != peer:
                self.put(after)

    def drop_guest(self, device: int) -> None:
        """It is not to be listed after all: nothing of it is kept."""
        if self.guests.pop(device, None) is not None:
            for held in (self._cache, self._waiting, self._not_before, self._claims):
                held.pop(device, None)
            self._hub.store.drop_claim(device)
            self._hub.store.drop_peer(device)

    def _listed(self, device: int) -> Peer:
        """A device as its account's list has it now; with other keys than before it is another device."""
        known, signed = self.find(device), self._trust.of(account_of(device))
        if (named := self.guests.get(device)) is None:
            if signed is None:
                raise NotListed(device, 0)
            named = signed.peer(device)
        if known is not None and known.address == named.address and known.identity.is_same(named.identity):
            return known
        return named

    def _author(self, entry: Entry) -> Peer:
        try:
            return self._listed(entry.by)
        except NotListed:
            # It has left the list; what it sent before that is judged by the key that it had.
            if not self._trust.knows(entry):
                raise
            return self.find(entry.by) or self._trust.departed(entry.by)

    def _keep(self, peer: Peer) -> Peer:
        cache = self._cache
        if len(cache) >= CACHED and peer.device not in cache:
            del cache[next(iter(cache))]
        cache[peer.device] = peer
        return peer

    def _rekeyed(self, account: int) -> None:
        for devices in (self._cache, self._claims):
            for device in [device for device in devices if account_of(device) == account]:
                del devices[device]

    # --- claims ---------------------------------------------------------------------------------

    def lost(self) -> None:
        self._asked.clear()
        self._waiting.clear()
        self._not_before.clear()

    def deadline(self) -> int | None:
        """When to ask again for what somebody waits for."""
        return min((due for device in self._waiting if (due := self._due(device)) is not None), default=None)

    def tick(self) -> None:
        for device in list(self._waiting):
            if (due := self._due(device)) is not None and self._hub.now >= due:
                self._claim(device)

    def _due(self, device: int) -> int | None:
        asked = self._asked.get(device)
        return self._not_before.get(device) if asked is None else asked + self._hub.limits.answer_ms

    def _request(self, device: int) -> int:
        """The number of the request that is open for a device: the same until it is answered."""
        if (request := self._claims.get(device)) is None:
            request = int.from_bytes(self._hub.secrets.draw(REQUEST_BYTES), "big") + 1
            self._claims[device] = request
            self._hub.store.put_claim(device, request)
        return request

    def _claim(self, device: int) -> None:
        hub, due = self._hub, self._due(device)
        request = self._request(device)
        if hub.online and (due is None or hub.now >= due):
            self._not_before.pop(device, None)
            self._asked[device] = hub.now
            hub.ask(Claimed(device, request), partial(self._answered, device, request))

    def _answered(self, device: int, request: int, said: Said) -> None:
        if self._claims.get(device) != request:
            return  # answered before, or no longer wanted
        self._asked.pop(device, None)
        if isinstance(said, Bundle):
            self._settle(device)
            self._wake(device, good=self._begin(device, said))
            return
        if isinstance(said, UnknownDevice):
            self._lists.forget(account_of(device))
            if device in self.guests:
                self.on_gone(device)
                return
        if isinstance(said, RateLimited):
            self._not_before[device] = self._hub.now + said.retry_ms
        # It was to be begun anew. Without keys the session that is there must do, if it is with whom the list names.
        ready = self._is_ready(device)
        if ready or (isinstance(said, Refusal) and not said.retry):
            self._settle(device)
        self._wake(device, good=ready)

    def _is_ready(self, device: int) -> bool:
        try:
            return self._listed(device).ready
        except NotListed:
            return False

    def _begin(self, device: int, said: Bundle) -> bool:
        hub = self._hub
        try:
            peer = self._listed(device)
            bundle = check_bundle(peer.address, said.identity, said.signed, said.kem, said.one_time)
            self.put(peers.begin(self._keyring.keys, peer, bundle, hub.secrets, hub.now))
        except Refused as error:
            account = account_of(device)
            hub.tell(KeysRefused(account, hub.handle(account), device, str(error)))
            return False
        return True

    def _settle(self, device: int) -> None:
        del self._claims[device]
        self._hub.store.drop_claim(device)

    def _wake(self, device: int, *, good: bool) -> None:
        waiting: Iterable[tuple[Then, Then]] = self._waiting.pop(device, {}).values()
        for then, otherwise in waiting:
            (then if good else otherwise)()
