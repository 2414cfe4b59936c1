"""Pushes, well formed and malformed."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.model.ids import account_id, device_id
from nightmail.model.records import AnyBody, Pushed, PushOutcome, PushRemoved, PushSet, WakeLooked
from nightmail.model.words import PushPlatform

PHONE = device_id(account_id("alice"), 1)
IOS = PushSet(PushPlatform.IOS, "0aF9" * 16)
ANDROID = PushSet(PushPlatform.ANDROID, "c2aK9sd-_8:APA91b" * 9)
WEB = PushSet(PushPlatform.WEB, '{"endpoint":"https://push.example/x","keys":{"p256dh":"BA","auth":"AA"}}')
UNIFIED = PushSet(PushPlatform.UNIFIEDPUSH, "https://push.example/topic")
PUSHED = Pushed(PHONE, 7, 1_700_000_000_000, 0, PushOutcome.FAILED, "http_503", 1_000)

WELL_FORMED_PUSHES: dict[str, AnyBody] = {
    "a token of ios": IOS,
    "a token of android": ANDROID,
    "the subscription of a browser": WEB,
    "an address to push to": UNIFIED,
    "no token any more": PushRemoved(),
    "a push that failed": PUSHED,
    "a push that was taken": replace(PUSHED, outcome=PushOutcome.DELIVERED, error=""),
}

MALFORMED_PUSHES: dict[str, tuple[AnyBody, str]] = {
    "no token": (replace(IOS, token=""), "a push token has 1 to 4096 characters"),
    "a token of 10 kB": (replace(ANDROID, token="x" * 10_000), "a push token has 1 to 4096 characters"),
    "a token with a line break": (replace(UNIFIED, token="https://x/\r\ny"), "a push token has printable ASCII"),
    "a token with other letters": (replace(UNIFIED, token="https://ü/"), "a push token has printable ASCII"),
    "a token of android for ios": (replace(ANDROID, platform=PushPlatform.IOS), "a token of ios has at most"),
    "an address for android": (replace(UNIFIED, platform=PushPlatform.ANDROID), "a token of android has at least"),
    "a short token for android": (replace(ANDROID, token="abc"), "a token of android has at least 32"),
    "an address for a browser": (replace(UNIFIED, platform=PushPlatform.WEB), "the token of a browser is its"),
    "a token of ios for an address": (
        replace(IOS, platform=PushPlatform.UNIFIEDPUSH),
        "the token of unifiedpush is an",
    ),
    "a push to nobody": (replace(PUSHED, device=0), "device is not between"),
    "a push by no token": (replace(PUSHED, set_at=0), "set_at is not between"),
    "a push for no wake": (replace(PUSHED, woke_at=-1), "woke_at is not between"),
    "a push of no attempt": (replace(PUSHED, attempt=-1), "attempt is not between"),
    "a push with a negative delay": (replace(PUSHED, retry_after_ms=-1), "retry_after_ms is not between"),
    "a push that failed for nothing": (replace(PUSHED, error=""), "a push that failed names an error"),
    "a push whose error is no word": (replace(PUSHED, error="Token=abc"), "error is no word"),
}

SERVERS_PUSHES: list[AnyBody] = [WakeLooked(PHONE, 5)]
