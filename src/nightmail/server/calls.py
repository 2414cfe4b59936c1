"""Everything of a node that calls webhooks, put together: outlet, dispatch, codes, scheduled calls.

Knows:   which settings each part has.
Touches: the data folder, for the secret that signs scheduled calls.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nightmail.api.schedule_routes import Webhooks
from nightmail.engine.ports import Desk, Post
from nightmail.model.effects import Call
from nightmail.outlets.addresses import Allowed, networks
from nightmail.outlets.caller import HttpCaller
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.link import Setup
from nightmail.outlets.processes import ProcessesOutlet
from nightmail.outlets.scheduled import ScheduledCalls
from nightmail.outlets.signing import account_secret, secret_text
from nightmail.outlets.thread import ThreadOutlet

from .code_webhook import webhook_of
from .config import Config
from .heart import clock, pace
from .secret_files import secret_from

SECRET_FILE = "webhooks.secret"  # noqa: S105 (a name)


class NodeCalls:
    def __init__(self, config: Config, desk: Desk, post: Post, soon: Callable[[], None]) -> None:
        self._config, self._pepper = config, b""
        self.allowed = Allowed(networks(config.schedule.private_networks))
        self._outlet: ThreadOutlet | ProcessesOutlet
        if config.outlet.runs_in == "processes":
            self._outlet = ProcessesOutlet(Setup(config.schedule.private_networks, config.caller))
        else:
            self._outlet = ThreadOutlet(lambda: HttpCaller(self.allowed, config.caller, clock), post)
        self.dispatch = Dispatch(self._outlet, config.places, pace)
        self.codes = webhook_of(config.accounts, self.dispatch)
        self.scheduled = ScheduledCalls(desk, self.dispatch, self._secret_of, soon, config.waiting)

    async def start(self, folder: Path) -> None:
        """Before the first call. A folder that is refused gets no new files."""
        if isinstance(self._outlet, ProcessesOutlet):
            await self._outlet.listen(folder)
        self._pepper = secret_from(self._config.schedule.secret, folder / SECRET_FILE).encode()

    def on_call(self, asked: Call) -> None:
        """Before the start nobody is called: the fold asks again."""
        if self._pepper:
            self.scheduled.on_call(asked)

    def _secret_of(self, account: int) -> bytes:
        return account_secret(self._pepper, account)

    @property
    def webhooks(self) -> Webhooks:
        """For the HTTP side."""
        return Webhooks(
            self._config.schedule.webhooks, self.allowed.check, lambda account: secret_text(self._secret_of(account))
        )

    @property
    def processes(self) -> int:
        """Those that make calls: 1 for a thread of the server."""
        return self._outlet.processes if isinstance(self._outlet, ProcessesOutlet) else 1

    def close(self) -> None:
        self._outlet.close()
