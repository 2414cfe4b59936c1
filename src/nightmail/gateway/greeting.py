"""The first exchange on a connection: a `Hello` is checked and answered with a `Welcome`.

Knows:   what a `Hello` must look like, and how a token proves who a device is.
Touches: nothing; the session acts on what is returned.
Never:   tells by its duration whether the device exists.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import NamedTuple

from nightmail.model.forms import DEVICE_MAX, NUMBER_MAX, TOKEN_BYTES
from nightmail.model.rows import Account, Device
from nightmail.wire.closing import CloseCode
from nightmail.wire.items import GROUP_ITEMS, NEWEST_SINCE, VERSION, Hello, Welcome

from .ports import Shared


class Rejection(NamedTuple):
    code: CloseCode
    sentence: str = ""


def check_hello(hello: Hello) -> Rejection | None:
    """Why the connection must be closed, if it must."""
    if hello.version != VERSION:
        return Rejection(CloseCode.UNSUPPORTED)
    if not (1 <= hello.device <= DEVICE_MAX and all(0 <= cursor <= NUMBER_MAX for cursor in cursors_of(hello))):
        return Rejection(CloseCode.MALFORMED, "a Hello with numbers out of range")
    return None


def cursors_of(hello: Hello) -> tuple[int, int, int]:
    """How far the device has the normal lane, the high lane and the receipts."""
    return hello.normal, hello.high, hello.receipts


def recognize(hello: Hello, row: Account | None) -> Device | None:
    """The device that says hello; None if it is unknown or its token is wrong."""
    device = row.devices.get(hello.device) if row else None
    digest = sha256(hello.token).digest()
    # The digests are compared even for an unknown device, so that the duration tells nothing.
    right = hmac.compare_digest(digest, device.token if device else bytes(TOKEN_BYTES))
    if device is None or not right:
        return None
    return device


def welcome(shared: Shared) -> Welcome:
    limits, form = shared.limits, shared.form
    return Welcome(
        VERSION, shared.clock(), shared.node, limits.heartbeat_ms, form.window, form.body_bytes, limits.frame_bytes,
        NEWEST_SINCE, GROUP_ITEMS,
    )  # fmt: skip
