"""The operator's routes of dead letters: group, list, look, replay, discard.

Knows:   how letters are named: shard and offset.
Touches: the desk, by `DeskClient`.
Never:   decides what can be replayed: the fold does, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from starlette.requests import Request

from nightmail.api.access import Access
from nightmail.api.bodies import read_json
from nightmail.api.desk_client import DeskClient
from nightmail.api.limits import HttpLimits
from nightmail.api.problems import malformed, problem, refused
from nightmail.api.queries import is_number
from nightmail.api.route import ApiRoute
from nightmail.api.schedule_routes import moment
from nightmail.api.schedule_schemas import (
    LetterClassesShown,
    LetterClassShown,
    LetterShown,
    LettersSettledCount,
    LettersShown,
    LettersWanted,
    letter_shown,
)
from nightmail.engine.ports import LetterSeen, Schedules
from nightmail.model.forms import NUMBER_MAX
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.records import Discarded, LettersSettled, Replayed
from nightmail.model.refusals import UnknownLetter

SOURCE = "log"
"""The log's name. Its partition is the shard, and its offset the commit number."""
SETTLED_TOGETHER = 64
"""Letters that one record settles."""


class LetterRoutes:
    def __init__(self, desk: DeskClient, letters: Schedules, access: Access, limits: HttpLimits) -> None:
        self._desk, self._letters, self._access, self._limits = desk, letters, access, limits

    async def letter_classes(self, request: Request) -> LetterClassesShown:
        self._access.operator(request)
        counts = await self._counts()
        classes = [LetterClassShown(error, count) for error, count in counts.most_common()]
        return LetterClassesShown(classes, counts.total())

    async def _counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for shard in range(self._desk.shards):
            counts.update(
                await self._desk.look(
                    lambda then, shard=shard: self._letters.letter_counts(shard, lambda found: then(dict(found)))
                )
            )
        return counts

    async def list_letters(self, request: Request) -> LettersShown:
        self._access.operator(request)
        error = request.query_params.get("error", "")
        if not error:
            raise malformed("name an error of /v1/dead-letters/classes")
        shard, page = _page(request.query_params.get("page", ""), self._desk.shards)
        offsets, older = await self._listed(shard, error, page)
        with_content = _wants_content(request)
        shown = [
            letter_shown(shard, seen, SOURCE, with_content=with_content)
            for seen in [await self._seen(shard, each) for each in offsets]
            if seen
        ]
        next_page = f"{shard}.{older}" if older else f"{shard + 1}.0" if shard + 1 < self._desk.shards else ""
        return LettersShown(shown, next_page)

    async def _listed(self, shard: int, error: str, page: int) -> tuple[list[int], int]:
        return await self._desk.look(
            lambda then: self._letters.letters(
                shard, error, page, lambda found: then((list(found.offsets), found.older))
            )
        )  # fmt: skip

    async def _seen(self, shard: int, offset: int) -> LetterSeen | None:
        return await self._desk.look(lambda then: self._letters.letter(shard, offset, then))

    async def letter(self, request: Request) -> LetterShown:
        self._access.operator(request)
        return await self._show(*self._named(request))

    async def _show(self, shard: int, offset: int) -> LetterShown:
        if seen := await self._seen(shard, offset):
            return letter_shown(shard, seen, SOURCE)
        raise refused(UnknownLetter(offset))

    async def replay_letter(self, request: Request) -> LetterShown:
        self._access.operator(request)
        shard, offset = self._named(request)
        await self._desk.tell(shard, Replayed(offset))
        return await self._show(shard, offset)

    async def discard_letter(self, request: Request) -> LetterShown:
        self._access.operator(request)
        shard, offset = self._named(request)
        await self._desk.tell(shard, Discarded(offset))
        return await self._show(shard, offset)

    async def replay_letters(self, request: Request) -> LettersSettledCount:
        return await self._settle(request, replay=True)

    async def discard_letters(self, request: Request) -> LettersSettledCount:
        return await self._settle(request, replay=False)

    async def _settle(self, request: Request, *, replay: bool) -> LettersSettledCount:
        """Page by page. If it breaks off, what was settled stays so, and the same request goes on."""
        self._access.operator(request)
        wanted = await read_json(request, LettersWanted, self._limits)
        if wanted.error is None and wanted.since is None and wanted.before is None:
            raise malformed("name an error, or a time")
        since = moment(wanted.since, "since") if wanted.since is not None else 0
        before = moment(wanted.before, "before") if wanted.before is not None else NUMBER_MAX
        errors = [wanted.error] if wanted.error is not None else list(await self._counts())
        settled = 0
        for shard in range(self._desk.shards):
            chosen = [
                seen.offset
                for error in errors
                async for seen in self._all(shard, error)
                if since <= seen.at < before and (seen.is_replayable if replay else seen.status is LetterStatus.WAITING)
            ]
            for first in range(0, len(chosen), SETTLED_TOGETHER):
                together = tuple(chosen[first : first + SETTLED_TOGETHER])
                await self._desk.tell(shard, LettersSettled(together, replay))
                settled += len(together)
        return LettersSettledCount(settled)

    async def _all(self, shard: int, error: str) -> AsyncIterator[LetterSeen]:
        page = 0
        while True:
            offsets, page = await self._listed(shard, error, page)
            for offset in offsets:
                if seen := await self._seen(shard, offset):
                    yield seen
            if not page:
                return

    def _named(self, request: Request) -> tuple[int, int]:
        shard, dash, offset = request.path_params["letter"].partition("-")
        if not (dash and is_number(shard) and is_number(offset)):
            raise malformed("a dead letter is named by its shard and its offset: 0-4711")
        if int(shard) >= self._desk.shards:
            raise problem("not_found", "there is no such shard")
        return int(shard), int(offset)

    def routes(self) -> list[ApiRoute]:
        one = ("unknown_letter", "letter_settled", "not_replayable", "not_found", "not_yet")
        return [
            ApiRoute(
                "GET", "/v1/dead-letters/classes", "operator", "Dead letters, grouped by error", self.letter_classes,
                None, LetterClassesShown,
            ),
            ApiRoute(
                "GET", "/v1/dead-letters", "operator", "The dead letters of one error, newest first, by page",
                self.list_letters, None, LettersShown, query=("error", "page", "content"),
            ),
            ApiRoute(
                "GET", "/v1/dead-letters/{letter}", "operator", "One dead letter", self.letter, None, LetterShown, 200,
                ("unknown_letter", "not_found"),
            ),
            ApiRoute(
                "POST", "/v1/dead-letters/{letter}/replay", "operator", "Try to deliver a dead letter again",
                self.replay_letter, None, LetterShown, 200, one,
            ),
            ApiRoute(
                "POST", "/v1/dead-letters/{letter}/discard", "operator", "Give a dead letter up", self.discard_letter,
                None, LetterShown, 200, one,
            ),
            ApiRoute(
                "POST", "/v1/dead-letters/replay", "operator", "Replay those of an error or of a time",
                self.replay_letters, LettersWanted, LettersSettledCount, 200, ("not_yet",),
            ),
            ApiRoute(
                "POST", "/v1/dead-letters/discard", "operator", "Discard those of an error or of a time",
                self.discard_letters, LettersWanted, LettersSettledCount, 200, ("not_yet",),
            ),
        ]  # fmt: skip


def _wants_content(request: Request) -> bool:
    wanted = request.query_params.get("content", "yes")
    if wanted not in {"yes", "no"}:
        raise malformed("content is yes or no")
    return wanted == "yes"


def _page(text: str, shards: int) -> tuple[int, int]:
    shard, dot, page = (text or "0.0").partition(".")
    if not (dot and is_number(shard) and is_number(page)) or int(shard) >= shards:
        raise malformed("page is what next_page said")
    return int(shard), int(page)
