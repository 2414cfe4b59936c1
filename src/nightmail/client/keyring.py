"""This device's own keys: made once, published, refilled, renewed weekly, let go in time.

Knows:   what the server has of them, by what it has confirmed.
Touches: the row of own keys.
Never:   lets a secret out, or makes a second identity.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import DAY_MS, DeviceKeys, Upload, confirmed, make_keys, rotate, stock, upload
from nightmail.e2ee.state import decode_keys, encode_keys
from nightmail.model.answers import Said, Stocked
from nightmail.model.records import Published
from nightmail.model.refusals import Refusal

from .events import KeysRefused
from .hub import Hub
from .retries import delay_ms
from .store import OwnKeys


class Keyring:
    def __init__(self, hub: Hub, published: Callable[[], None]) -> None:
        self._hub, self._on_published = hub, published
        self._keys: DeviceKeys | None = None
        self._asked = False
        self._failures = 0
        self._due: int | None = None
        """When to publish again what could not be published."""
        self._stocked: int | None = None
        """When further one-time keys were made last."""
        self._restock: int | None = None
        """When to make more, because few were left before it was time."""

    @property
    def keys(self) -> DeviceKeys:
        if self._keys is None:
            row = self._hub.store.own_keys()
            self._keys = decode_keys(row.state) if row else self._make()
        return self._keys

    @property
    def is_published(self) -> bool:
        row = self._hub.store.own_keys()
        return row is not None and row.published == self.keys.signed[0].id

    def put(self, keys: DeviceKeys) -> None:
        """The next state. Belongs into the transaction of what it came from."""
        row = self._hub.store.own_keys()
        assert row is not None
        self._put(replace(row, state=encode_keys(keys)), keys)

    def connected(self) -> None:
        self._failures = 0
        self._tend()
        keys = self.keys
        if not self.is_published or _unconfirmed(keys):
            self._publish()
        else:
            self._on_published()

    def lost(self) -> None:
        self._asked, self._due, self._restock = False, None, None

    def low(self) -> None:
        """The server has few left. What it has not confirmed comes first."""
        if self._asked:
            return
        hub = self._hub
        if not _unconfirmed(self.keys):
            limits = hub.limits
            if self._stocked is not None and 0 <= hub.now - self._stocked < limits.restock_ms:
                self._restock = self._stocked + limits.restock_ms
                return
            self._stocked, self._restock = hub.now, None
            self.put(stock(self.keys, hub.secrets, hub.now, limits.stock_one_time, limits.stock_kem))
        self._publish()

    def deadline(self) -> int | None:
        row = self._hub.store.own_keys()
        dues = [self._due, self._restock, row.tended_at + DAY_MS if row and row.tended_at else None]
        return min((due for due in dues if due is not None), default=None)

    def tick(self) -> bool:
        """Whether it is the time of the day to let go of what is old."""
        hub = self._hub
        row = hub.store.own_keys()
        if row is None:
            return False
        tended = self._tend()
        if tended and hub.online and not self.is_published:
            self._publish()
        if self._due is not None and hub.now >= self._due:
            self._due = None
            self._publish()
        if self._restock is not None and hub.now >= self._restock:
            self._restock = None
            self.low()
        return tended

    def _make(self) -> DeviceKeys:
        hub, me, limits = self._hub, self._hub.identity, self._hub.limits
        # Whoever is linked made its keys when it asked for that: only an account's first device comes here.
        keys = make_keys(
            Address(me.device, me.registration), hub.secrets, hub.now,
            primary=True, count=limits.stock_one_time, kem_count=limits.stock_kem,
        )  # fmt: skip
        self._put(OwnKeys(encode_keys(keys), tended_at=hub.now), keys)
        return keys

    def _tend(self) -> bool:
        """Daily: renew what is old, let go of what nobody can have used; whether it was time."""
        hub, before = self._hub, self.keys
        row = hub.store.own_keys()
        assert row is not None
        if row.tended_at and 0 <= hub.now - row.tended_at < DAY_MS:
            return False
        keys = rotate(before, hub.secrets, hub.now)
        self._put(replace(row, state=encode_keys(keys), tended_at=hub.now), keys)
        return True

    def _publish(self) -> None:
        hub = self._hub
        if self._asked or not hub.online:
            return
        self._asked, self._due = True, None
        sent = upload(self.keys)
        published = Published(
            hub.identity.registration, sent.identity, sent.signed, sent.last_resort, sent.one_time, sent.one_time_kem
        )
        hub.ask(published, partial(self._answered, sent, self.keys.signed[0].id))

    def _answered(self, sent: Upload, signed_id: int, said: Said) -> None:
        hub = self._hub
        self._asked = False
        if isinstance(said, Stocked):
            self._failures = 0
            row, keys = hub.store.own_keys(), confirmed(self.keys, sent)
            assert row is not None
            self._put(replace(row, state=encode_keys(keys), published=signed_id), keys)
            self._on_published()
        elif isinstance(said, Refusal) and said.retry:
            self._failures += 1
            self._due = hub.now + delay_ms(self._failures, hub.limits, hub.chance)
        elif isinstance(said, Refusal):
            me = hub.identity
            hub.tell(KeysRefused(me.account, me.handle, me.device, said.sentence))

    def _put(self, row: OwnKeys, keys: DeviceKeys) -> None:
        self._keys = keys
        self._hub.store.put_own_keys(row)


def _unconfirmed(keys: DeviceKeys) -> bool:
    return any(key > keys.offered for key in keys.one_time) or any(
        key > keys.offered_kem for key in keys.one_time_kem
    )  # fmt: skip
