"""Sessions with other devices: begun with a claimed bundle, advanced by every message, stored with it.

Knows:   each device's sessions, and which claims for keys are open.
Touches: peer rows, claims.
Never:   uses a bundle whose signatures or identity do not fit the list that was believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from nightmail.client.events import KeysRefused
from nightmail.client.machine.context import Context
from nightmail.client.messages import conversation_id
from nightmail.e2ee import peers
from nightmail.e2ee.bundles import check_bundle
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import NotListed, Rejected
from nightmail.e2ee.note import Note
from nightmail.e2ee.peers import Peer
from nightmail.e2ee.sealing import open_entry, seal_note
from nightmail.e2ee.state import decode_peer, encode_peer
from nightmail.model.answers import Bundle, Said
from nightmail.model.ids import account_of
from nightmail.model.records import Claimed, FellowClaimed
from nightmail.model.refusals import RateLimited, Refusal, UnknownDevice
from nightmail.model.rows import Entry

from .believed_lists import BelievedLists
from .device_lists import DeviceLists
from .key_stock import KeyStock
from .sealer import Then

CACHED = 512
"""How many devices' sessions are kept decoded. The store has all of them."""
REQUEST_BYTES = 6


class Sessions:
    def __init__(self, context: Context, lists: DeviceLists, believed: BelievedLists, key_stock: KeyStock) -> None:
        self._context, self._lists, self._believed, self._key_stock = context, lists, believed, key_stock
        self._cache: dict[int, Peer] = {}
        self._claims = context.store.claims()
        self._asked: dict[int, int] = {}
        """Device → when its keys were asked for over this connection."""
        self._not_before: dict[int, int] = {}
        """Device → when its keys may be asked for again, if the server said so."""
        self._waiting: dict[int, dict[object, tuple[Then, Then]]] = {}
        self._fellows: dict[int, int] = {}
        """Device → a group that its account is in, too, if its keys are wanted for that."""
        self._pending: dict[int, Peer] = {}
        """Devices that are being linked: no list names them yet, so their keys are those of their code."""

    # --- sealing --------------------------------------------------------------------------------

    def ready(self, devices: Mapping[int, int], who: object, then: Then, otherwise: Then, group: int = 0) -> bool:
        """`group`: one that this account shares with theirs. Many keys may be claimed there."""
        missing = [device for device in devices if device in self._claims or not self.listed(device).ready]
        for device in missing:
            self._waiting.setdefault(device, {})[who] = then, otherwise
            if group and account_of(device) != self._context.identity.account:
                self._fellows[device] = group
            self._claim(device)
        return not missing

    def seal(self, device: int, note: Note) -> bytes:
        peer, sealed = seal_note(self.listed(device), note)
        self.put(peer)
        return sealed

    def renew(self, device: int) -> bool:
        """Begin another session before the next seal, unless that was done within the hour. Whether it will be."""
        peer, context = self.find(device), self._context
        if peer is not None and peer.ready and peers.may_restart(peer, context.now, context.limits.restart_ms):
            self._request(device)
        return peer is None or not peer.ready or device in self._claims

    # --- opening --------------------------------------------------------------------------------

    def open(self, entry: Entry) -> Note:
        context, key_stock = self._context, self._key_stock
        conversation = conversation_id(account_of(entry.by), entry.to)
        opened = open_entry(key_stock.keys, self._author(entry), entry, conversation, context.now, context.secrets)
        decode_content(opened.note.content)  # content that no client can show counts as unreadable
        if opened.keys is not key_stock.keys:
            key_stock.put(opened.keys)
        self.put(opened.peer)
        return opened.note

    # --- the states -----------------------------------------------------------------------------

    def find(self, device: int) -> Peer | None:
        """The sessions with a device, listed or not."""
        if (peer := self._cache.get(device)) is None and (state := self._context.store.peer(device)) is not None:
            peer = self._keep(decode_peer(state))
        return peer

    def put(self, peer: Peer) -> None:
        self._keep(peer)
        self._context.store.put_peer(peer.device, encode_peer(peer))

    def forget(self) -> None:
        """Once a day: delete skipped keys whose time is over, and the sessions of devices that left long ago."""
        for device in self._context.store.peers():
            peer = self.find(device)
            if self._believed.is_gone(device):
                self._cache.pop(device, None)
                self._context.store.drop_peer(device)
            elif peer is not None and (after := peers.forget(peer, self._context.now)) != peer:
                self.put(after)

    def add_pending(self, peer: Peer) -> None:
        """The person agreed to link this device."""
        self._pending[peer.device] = peer

    def confirm_pending(self, device: int) -> None:
        """The account's list names the device from now on."""
        self._pending.pop(device, None)

    def drop_pending(self, device: int) -> None:
        """The device will not be linked: delete everything about it."""
        if self._pending.pop(device, None) is not None:
            for held in (self._cache, self._waiting, self._not_before, self._claims):
                held.pop(device, None)
            self._context.store.drop_claim(device)
            self._context.store.drop_peer(device)

    def listed(self, device: int) -> Peer:
        """A device as its account's list has it now. With other keys than before, it is another device."""
        known, signed = self.find(device), self._believed.of(account_of(device))
        if (named := self._pending.get(device)) is None:
            if signed is None:
                raise NotListed(device, 0)
            named = signed.peer(device)
        if known is not None and known.address == named.address and known.identity.is_same(named.identity):
            return known
        return named

    def _author(self, entry: Entry) -> Peer:
        try:
            return self.listed(entry.by)
        except NotListed:
            # It has left the list. What it sent before is judged by the keys that it had.
            if not self._believed.knows(entry):
                raise
            return self.find(entry.by) or self._believed.departed(entry.by)

    def _keep(self, peer: Peer) -> Peer:
        cache = self._cache
        if len(cache) >= CACHED and peer.device not in cache:
            del cache[next(iter(cache))]
        cache[peer.device] = peer
        return peer

    def key_changed(self, account: int) -> None:
        for devices in (self._cache, self._claims):
            for device in [device for device in devices if account_of(device) == account]:
                del devices[device]

    # --- claims ---------------------------------------------------------------------------------

    def lost(self) -> None:
        self._asked.clear()
        self._waiting.clear()
        self._not_before.clear()
        self._fellows.clear()

    def deadline(self) -> int | None:
        """When to claim again for what a part waits for."""
        return min((due for device in self._waiting if (due := self._due(device)) is not None), default=None)

    def tick(self) -> None:
        for device in list(self._waiting):
            if (due := self._due(device)) is not None and self._context.now >= due:
                self._claim(device)

    def _due(self, device: int) -> int | None:
        asked = self._asked.get(device)
        return self._not_before.get(device) if asked is None else asked + self._context.limits.answer_ms

    def _request(self, device: int) -> int:
        """The number of the open claim for a device: the same until it is answered."""
        if (request := self._claims.get(device)) is None:
            request = int.from_bytes(self._context.secrets.draw(REQUEST_BYTES), "big") + 1
            self._claims[device] = request
            self._context.store.put_claim(device, request)
        return request

    def _claim(self, device: int) -> None:
        context, due = self._context, self._due(device)
        request = self._request(device)
        if context.online and (due is None or context.now >= due):
            self._not_before.pop(device, None)
            self._asked[device] = context.now
            fellow = self._fellows.get(device)
            claim = Claimed(device, request) if fellow is None else FellowClaimed(fellow, device, request)
            context.ask(claim, partial(self._answered, device, request))

    def _answered(self, device: int, request: int, said: Said) -> None:
        if self._claims.get(device) != request:
            return  # answered already, or no longer wanted
        self._asked.pop(device, None)
        self._fellows.pop(device, None)
        if isinstance(said, Bundle):
            self._settle(device)
            self._wake(device, good=self._begin(device, said))
            return
        if isinstance(said, UnknownDevice):
            self._lists.forget(account_of(device))
            if device in self._pending:
                self._context.signals.pending_device_gone(device)
                return
        if isinstance(said, RateLimited):
            self._not_before[device] = self._context.now + said.retry_ms
        # Another session was wanted. Without keys the old one must do, if it is with the device that the list names.
        ready = self._is_ready(device)
        if ready or (isinstance(said, Refusal) and not said.retry):
            self._settle(device)
        self._wake(device, good=ready)

    def _is_ready(self, device: int) -> bool:
        try:
            return self.listed(device).ready
        except NotListed:
            return False

    def _begin(self, device: int, said: Bundle) -> bool:
        context = self._context
        try:
            peer = self.listed(device)
            bundle = check_bundle(peer.address, said.identity, said.signed, said.kem, said.one_time)
            self.put(peers.begin(self._key_stock.keys, peer, bundle, context.secrets, context.now))
        except Rejected as error:
            account = account_of(device)
            context.tell(KeysRefused(account, context.handle(account), device, str(error)))
            return False
        return True

    def _settle(self, device: int) -> None:
        del self._claims[device]
        self._context.store.drop_claim(device)

    def _wake(self, device: int, *, good: bool) -> None:
        waiting: Iterable[tuple[Then, Then]] = self._waiting.pop(device, {}).values()
        for then, otherwise in waiting:
            (then if good else otherwise)()
