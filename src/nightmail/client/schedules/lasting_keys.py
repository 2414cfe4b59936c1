"""The keys of devices that everybody gets: for what is sealed now and delivered later. Asking for them takes none.

Knows:   which were asked for over this connection, and those that came recently.
Never:   hands on a bundle whose signatures or identity do not fit the list that was believed.
"""

from __future__ import annotations

from functools import partial

from nightmail.client.events import KeysRefused
from nightmail.client.machine.context import Context
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.sealer import Then
from nightmail.client.trust.sessions import Sessions
from nightmail.e2ee.bundles import PrekeyBundle, check_bundle
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.peers import Peer
from nightmail.model.answers import Bundle, Said
from nightmail.model.ids import account_of
from nightmail.model.records import KeysAsked
from nightmail.model.refusals import UnknownDevice

FRESH_MS = 3_600_000
"""So long keys are not asked for again. Their device holds them for weeks after it has replaced them."""
KEPT = 1_024
"""Devices whose keys are remembered."""


class LastingKeys:
    def __init__(self, context: Context, lists: DeviceLists, sessions: Sessions) -> None:
        self._context, self._lists, self._sessions = context, lists, sessions
        self._found: dict[int, tuple[int, PrekeyBundle]] = {}
        """Device → when its keys came, and the keys."""
        self._asked: dict[int, int] = {}
        self._waiting: dict[int, dict[object, tuple[Then, Then]]] = {}

    def lost(self) -> None:
        self._asked.clear()
        self._waiting.clear()

    def of(self, peer: Peer) -> PrekeyBundle | None:
        """The keys of a device as its list names it now."""
        at, bundle = self._found.get(peer.device, (0, None))
        if bundle is None or bundle.address != peer.address:
            return None
        return bundle if 0 <= self._context.now - at < FRESH_MS else None

    def want(self, device: int, who: object, then: Then, otherwise: Then) -> None:
        """Ask for a device's keys; `then` is called when they are here, `otherwise` if they cannot be had."""
        context = self._context
        self._waiting.setdefault(device, {})[who] = then, otherwise
        asked = self._asked.get(device)
        if context.online and (asked is None or context.now - asked >= context.limits.answer_ms):
            self._asked[device] = context.now
            context.ask(KeysAsked(device), partial(self._answered, device))

    def _answered(self, device: int, said: Said) -> None:
        self._asked.pop(device, None)
        good = isinstance(said, Bundle) and self._take(device, said)
        if isinstance(said, UnknownDevice):
            self._lists.forget(account_of(device))
        for then, otherwise in self._waiting.pop(device, {}).values():
            (then if good else otherwise)()

    def _take(self, device: int, said: Bundle) -> bool:
        context = self._context
        try:
            peer = self._sessions.listed(device)
            bundle = check_bundle(peer.address, said.identity, said.signed, said.kem, said.one_time)
        except Rejected as error:
            account = account_of(device)
            context.tell(KeysRefused(account, context.handle(account), device, str(error)))
            return False
        if len(self._found) >= KEPT:
            self._found.clear()
        self._found[device] = context.now, bundle
        return True
