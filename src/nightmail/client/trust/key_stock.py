"""This device's own keys: made once, published, restocked, renewed weekly, deleted in time.

Knows:   what the server has of them, by what it has confirmed.
Touches: the row of own keys.
Never:   lets a secret out, or makes a second identity.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from nightmail.client.events import KeysRefused
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry
from nightmail.client.store.rows import OwnKeys
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import DAY_MS, DeviceKeys, Upload, confirmed, make_keys, rotate, stock, upload
from nightmail.e2ee.state import decode_keys, encode_keys
from nightmail.model.answers import Said, Stocked
from nightmail.model.records import Published
from nightmail.model.refusals import Refusal


class KeyStock:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._keys: DeviceKeys | None = None
        self._asked = False
        self._retry = Retry(context, self._publish)
        self._stocked_at: int | None = None
        """When one-time keys were made last."""
        self._restock_at: int | None = None
        """When to make more, because the server ran low too soon after that."""

    @property
    def keys(self) -> DeviceKeys:
        if self._keys is None:
            row = self._context.store.own_keys()
            self._keys = decode_keys(row.state) if row else self._make()
        return self._keys

    @property
    def is_published(self) -> bool:
        row = self._context.store.own_keys()
        return row is not None and row.published == self.keys.signed[0].id

    def put(self, keys: DeviceKeys) -> None:
        """The next state of the keys, in the same transaction as what led to it."""
        row = self._context.store.own_keys()
        assert row is not None
        self._put(replace(row, state=encode_keys(keys)), keys)

    def connected(self) -> None:
        self._retry.reset()
        self._tend()
        keys = self.keys
        if not self.is_published or _unconfirmed(keys):
            self._publish()
        else:
            self._context.signals.keys_published()

    def lost(self) -> None:
        self._asked, self._restock_at = False, None
        self._retry.cancel()

    def low(self) -> None:
        """The server has few left. Keys that it has not confirmed yet are published first."""
        if self._asked:
            return
        context = self._context
        if not _unconfirmed(self.keys):
            limits = context.limits
            if self._stocked_at is not None and 0 <= context.now - self._stocked_at < limits.restock_ms:
                self._restock_at = self._stocked_at + limits.restock_ms
                return
            self._stocked_at, self._restock_at = context.now, None
            self.put(stock(self.keys, context.secrets, context.now, limits.stock_one_time, limits.stock_kem))
        self._publish()

    def deadline(self) -> int | None:
        row = self._context.store.own_keys()
        dues = [self._retry.due, self._restock_at, row.tended_at + DAY_MS if row and row.tended_at else None]
        return min((due for due in dues if due is not None), default=None)

    def tick(self) -> None:
        context = self._context
        row = context.store.own_keys()
        if row is None:
            return
        tended = self._tend()
        if tended and context.online and not self.is_published:
            self._publish()
        self._retry.tick()
        if self._restock_at is not None and context.now >= self._restock_at:
            self._restock_at = None
            self.low()
        if tended:
            context.signals.day_passed()

    def _make(self) -> DeviceKeys:
        context, me, limits = self._context, self._context.identity, self._context.limits
        # A linked device made its keys when it asked to be linked: only an account's first device comes here.
        keys = make_keys(
            Address(me.device, me.registration), context.secrets, context.now,
            primary=True, count=limits.stock_one_time, kem_count=limits.stock_kem,
        )  # fmt: skip
        self._put(OwnKeys(encode_keys(keys), tended_at=context.now), keys)
        return keys

    def _tend(self) -> bool:
        """Once a day: renew old keys, delete those that nobody can still use. Whether a day had passed."""
        context, before = self._context, self.keys
        row = context.store.own_keys()
        assert row is not None
        if row.tended_at and 0 <= context.now - row.tended_at < DAY_MS:
            return False
        keys = rotate(before, context.secrets, context.now, context.limits.rotate_ms)
        self._put(replace(row, state=encode_keys(keys), tended_at=context.now), keys)
        return True

    def _publish(self) -> None:
        context = self._context
        if self._asked or not context.online:
            return
        self._asked = True
        self._retry.cancel()
        sent = upload(self.keys)
        published = Published(
            context.identity.registration,
            sent.identity,
            sent.signed,
            sent.last_resort,
            sent.one_time,
            sent.one_time_kem,
        )
        context.ask(published, partial(self._answered, sent, self.keys.signed[0].id))

    def _answered(self, sent: Upload, signed_id: int, said: Said) -> None:
        context = self._context
        self._asked = False
        if isinstance(said, Stocked):
            self._retry.reset()
            row, keys = context.store.own_keys(), confirmed(self.keys, sent)
            assert row is not None
            self._put(replace(row, state=encode_keys(keys), published=signed_id), keys)
            context.signals.keys_published()
        elif isinstance(said, Refusal) and said.retry:
            self._retry.later()
        elif isinstance(said, Refusal):
            me = context.identity
            context.tell(KeysRefused(me.account, me.handle, me.device, said.sentence))

    def _put(self, row: OwnKeys, keys: DeviceKeys) -> None:
        self._keys = keys
        self._context.store.put_own_keys(row)


def _unconfirmed(keys: DeviceKeys) -> bool:
    return any(key > keys.offered for key in keys.one_time) or any(
        key > keys.offered_kem for key in keys.one_time_kem
    )  # fmt: skip
