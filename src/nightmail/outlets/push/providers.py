"""Pushes, each to the provider of its platform.

Knows:   which providers the operator has set up.
Touches: a thread with an event loop of its own, for Apple and Google; the dispatch of webhooks, for addresses that
         devices have chosen.
Never:   logs a token.

So a provider that hangs holds up no message, and an address that somebody has chosen is checked like a webhook's.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

import msgspec
import uvloop
from msgspec import Struct

from nightmail.engine.ports import Post
from nightmail.model.push_rows import PushSeen
from nightmail.model.records.pushes import PushOutcome
from nightmail.model.records.schedules import CallOutcome
from nightmail.model.words import PushPlatform
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.outcomes import CallResult
from nightmail.outlets.ports import WebhookCall

from . import judging
from .apns import Apns
from .fcm import Fcm, NoAccess
from .http2 import Http2Client, Http2Limits, PushFailed
from .payload import SYNC, Pseudonyms, PushText
from .ports import PushResult
from .requests import ProviderAnswer, PushRequest
from .web_push import BadSubscription, WebPush

log = logging.getLogger("nightmail.outlets")

_Done: TypeAlias = Callable[[PushResult], None]

WAITING = 100_000
"""Pushes that may wait for a place at a provider."""
NEVER_VALID = frozenset({"private_address", "bad_address", "http_404", "http_410"})
"""What says that nothing sent to an address will ever arrive."""


class ProviderSetup(Struct, frozen=True):
    """What the operator has set up. None: nobody of this platform is woken."""

    apns: Apns | None = None
    fcm: Fcm | None = None
    web: WebPush | None = None
    unifiedpush: bool = False
    limits: Http2Limits = Http2Limits()
    ca_pem: bytes = b""


class Providers:
    """A `Pusher`. Used on the node's thread; `clock` may be read on another one."""

    def __init__(self, setup: ProviderSetup, dispatch: Dispatch, clock: Callable[[], int], post: Post) -> None:
        self._setup, self._dispatch, self._clock, self._post = setup, dispatch, clock, post
        self.pseudonyms: Pseudonyms | None = None
        """To be set before the first push."""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Http2Client | None = None
        self._access: asyncio.Lock | None = None
        self._busy = {PushPlatform.IOS: 0, PushPlatform.ANDROID: 0}
        self._waiting: dict[PushPlatform, deque[tuple[PushSeen, _Done]]] = {each: deque() for each in self._busy}
        self._ended: list[tuple[_Done, PushResult]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def push(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        setup = self._setup
        match seen.platform:
            case PushPlatform.IOS if setup.apns:
                self._on_thread(self._begin, seen, done)
            case PushPlatform.ANDROID if setup.fcm:
                self._on_thread(self._begin, seen, done)
            case PushPlatform.WEB if setup.web:
                self._on_thread(self._seal, setup.web, seen, done)
            case PushPlatform.UNIFIEDPUSH if setup.unifiedpush:
                body = msgspec.json.encode(PushText(SYNC, self._user(seen), seen.depth))
                self._call(PushRequest(seen.token, {"Content-Type": "application/json"}, body), done)
            case _:
                done(judging.NOT_SERVED)

    def _user(self, seen: PushSeen) -> str:
        assert self.pseudonyms is not None
        return self.pseudonyms.of(seen.device)

    async def probe(self) -> dict[str, str]:
        """Platform → `ok`, or what is wrong with our credentials or the way to the provider."""
        found: dict[str, str] = {}
        setup, loop = self._setup, asyncio.get_running_loop()
        for platform, provider in ((PushPlatform.IOS, setup.apns), (PushPlatform.ANDROID, setup.fcm)):
            if provider is None:
                continue
            future: asyncio.Future[PushResult] = loop.create_future()

            def tell(result: PushResult, future: asyncio.Future[PushResult] = future) -> None:
                if not future.done():
                    future.set_result(result)

            self._on_thread(self._probe, platform, tell)
            result = await future
            taken = result.outcome in (PushOutcome.DELIVERED, PushOutcome.GONE)
            found[platform.name.lower()] = "ok" if taken else result.error
        if setup.web:
            found["web"] = "ok"  # Each browser's service is another one: only our key can be looked at.
        if setup.unifiedpush:
            found["unifiedpush"] = "ok"
        return found

    @property
    def web_key(self) -> str:
        """What web apps subscribe with; empty: they cannot be woken."""
        return self._setup.web.public if self._setup.web else ""

    def close(self) -> None:
        """Pushes under way are given up, and are not told to have ended."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = self._thread = None

    # --- to addresses that devices have chosen ------------------------------------------------------

    def _call(self, request: PushRequest, done: Callable[[PushResult], None]) -> None:
        call = WebhookCall("", request.url, request.body, b"", headers=tuple(request.headers.items()))
        self._dispatch.submit(call, lambda result: done(_meaning(result)))

    # --- on the thread ------------------------------------------------------------------------------

    def _on_thread(self, do: Callable[..., None], *what: object) -> None:
        if self._loop is None:
            # Most servers push to nobody: they need no thread.
            self._loop = uvloop.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="push", daemon=True)
            self._thread.start()
        self._loop.call_soon_threadsafe(do, *what)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(self._give_up())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    async def _give_up(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client:
            await self._client.close()

    def _seal(self, web: WebPush, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        """Sealing takes longer than the node's own thread has."""
        try:
            request = web.request(seen, self._user(seen), self._clock() // 1_000)
        except BadSubscription:
            self._end(done, judging.BAD_TOKEN)
        else:
            self._post(partial(self._call, request, done))

    def _begin(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        waiting = self._waiting[seen.platform]
        if len(waiting) >= WAITING:
            self._end(done, judging.NO_PLACE)
            return
        waiting.append((seen, done))
        self._go_on(seen.platform)

    def _go_on(self, platform: PushPlatform) -> None:
        waiting = self._waiting[platform]
        while waiting and self._busy[platform] < self._setup.limits.at_once:
            self._busy[platform] += 1
            self._start(self._push(platform, *waiting.popleft()))

    def _probe(self, platform: PushPlatform, done: Callable[[PushResult], None]) -> None:
        self._start(self._ask(platform, None, done))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None
        if self._client is None:
            self._client, self._access = Http2Client(self._setup.limits, self._setup.ca_pem), asyncio.Lock()
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _push(self, platform: PushPlatform, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        try:
            await self._ask(platform, seen, done)
        finally:
            self._busy[platform] -= 1
            self._go_on(platform)

    async def _ask(self, platform: PushPlatform, seen: PushSeen | None, done: Callable[[PushResult], None]) -> None:
        try:
            result = await (self._ask_apple(seen) if platform is PushPlatform.IOS else self._ask_google(seen))
        except (PushFailed, NoAccess) as error:
            result = error.result
        except Exception as mistake:  # noqa: BLE001 (its text may hold a token, so only its kind is told)
            log.error("a push could not be made", extra={"why": type(mistake).__name__})
            result = judging.BROKEN_OFF
        if result is judging.CREDENTIALS:
            log.error("a push provider refuses our credentials", extra={"platform": platform.name.lower()})
        self._end(done, result)

    async def _ask_apple(self, seen: PushSeen | None) -> PushResult:
        apns, now_s = self._setup.apns, self._clock() // 1_000
        assert apns is not None
        request = apns.request(seen, self._user(seen), now_s) if seen else apns.probe(now_s)
        return apns.judge(await self._answer(request), now_s)

    async def _ask_google(self, seen: PushSeen | None) -> PushResult:
        fcm, now_s = self._setup.fcm, self._clock() // 1_000
        assert fcm is not None
        assert self._access is not None
        if fcm.wants_access(now_s):
            async with self._access:  # One asks for all that wait.
                if fcm.wants_access(now_s):
                    await fcm.renew(self._answer, now_s)
        return fcm.judge(await self._answer(fcm.request(seen, self._user(seen)) if seen else fcm.probe()), now_s)

    async def _answer(self, request: PushRequest) -> ProviderAnswer:
        assert self._client is not None
        return await self._client.ask(request)

    def _end(self, done: Callable[[PushResult], None], result: PushResult) -> None:
        if not self._ended:
            assert self._loop is not None
            self._loop.call_soon(self._flush)
        self._ended.append((done, result))

    def _flush(self) -> None:
        ended, self._ended = self._ended, []
        self._post(lambda: _tell(ended))


def _tell(ended: list[tuple[_Done, PushResult]]) -> None:
    for done, result in ended:
        done(result)


def _meaning(result: CallResult) -> PushResult:
    """Of a call to an address that a device has chosen: one that refuses for good is as good as gone."""
    if result.outcome is CallOutcome.DELIVERED:
        return judging.TAKEN
    if result.outcome is CallOutcome.FAILED:
        return PushResult(PushOutcome.FAILED, result.error, result.retry_after_ms)
    return PushResult(PushOutcome.GONE if result.error in NEVER_VALID else PushOutcome.REFUSED, result.error)
