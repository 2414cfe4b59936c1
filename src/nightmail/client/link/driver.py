"""Drives a machine on asyncio: turns, time, and a connection that is opened again whenever it is lost.

Knows:   when the machine must be called, and what to do with its turns.
Touches: the machine, on the event loop's thread only; one task, one timer.

What happens in one pass of the loop is one turn, and so one commit: a hundred sends at once cost one sync.

A frame that breaks the machine in a way that nobody foresaw is rolled back together with the machine. The next machine
is made from the store, as after a restart, and the server sends again what was not acknowledged. What the app asked for
is committed before a frame is taken, so it is never rolled back with one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from nightmail.client.errors import ClientError, Misused, Stopped, StoreFailed
from nightmail.client.events import Disconnected, Ended, Event, Retrying
from nightmail.client.limits import ClientLimits
from nightmail.client.machine.machine import Machine
from nightmail.client.machine.turn import Ending

from .clock import ClientClock
from .connection import WebSocketConnection
from .presence import PresenceView
from .restart_budget import RestartBudget
from .route import ServerRoute

LOOK_MS = 60_000


class Driver:
    def __init__(
        self,
        machine: Machine,
        route: ServerRoute,
        tls: ssl.SSLContext | None,
        limits: ClientLimits,
        tell: Callable[[Event], None],
        ended: Callable[[ClientError], None],
    ) -> None:
        """`tell` gets every event; `ended` is called once, with the reason why no more will come."""
        self._machine, self._route, self._tls, self._limits = machine, route, tls, limits
        self._tell_app, self._ended = tell, ended
        self.clock = ClientClock()
        self._connection: WebSocketConnection | None = None
        self._opened_at = 0
        self._budget = RestartBudget(limits)
        self._broken_by = ""
        """Why the machine that had this connection was replaced; empty: it was not."""
        self._asked = False
        """The app has asked for something since the last commit."""
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: int | None = 0
        """When to tick. The first one is due before anything is read."""
        self._turn_handle: asyncio.Handle | None = None
        self._committing: asyncio.Future[None] | None = None
        self._confirming: asyncio.Future[None] | None = None
        self._over: ClientError | None = None
        self._task = asyncio.create_task(self._run(), name="nightmail client")
        self._task.add_done_callback(self._on_done)

    def catch_up(self) -> None:
        """Let everything happen whose time has come. Call it before the app reads the store: a timer of the event
        loop may be late, and the app must not see what is over."""
        if self._deadline is not None and self.clock() >= self._deadline:
            self._tick()

    @property
    def online(self) -> bool:
        return self._machine.online

    @property
    def is_primary(self) -> bool:
        """This device holds the account's signing key."""
        return self._machine.sealer.own_list.is_primary

    @property
    def presence(self) -> PresenceView:
        """For looking only: no turn follows."""
        return self._machine.presence(self.clock())

    @contextmanager
    def working(self) -> Generator[Machine]:
        """The machine, for one call; a turn follows by itself. Raises the reason if the client has ended.

        If the caller's block raises anything but a ClientError, something may be half done, and the client ends.
        """
        if self._over:
            raise self._over
        self._asked = True
        try:
            yield self._machine
        except StoreFailed as error:
            self._die(error)
            raise
        except ClientError:
            raise
        except Exception as mistake:
            raise self._end_by(mistake) from mistake
        except BaseException as end:
            self._end_by(end)
            raise
        self._turn_soon()

    async def committed(self) -> None:
        """Wait until everything that was asked of the machine is durable."""
        if self._over:
            raise self._over
        if self._committing is None:
            self._committing = asyncio.get_running_loop().create_future()
        self._turn_soon()
        # Several callers may wait for one commit: none of them may cancel it for the others.
        await asyncio.shield(self._committing)

    async def confirmed(self) -> None:
        """Wait until the server has confirmed what was received and read here, however often the connection breaks."""
        with self.working() as machine:
            machine.confirm(self.clock())
        if self._confirming is None:
            self._confirming = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._confirming)

    async def stop(self) -> None:
        """Disconnect, and commit what is open."""
        try:
            if self._connection:
                with suppress(ClientError), self.working() as machine:
                    machine.leave(self.clock())
                self._turn()
            await _stop(self._task)
        finally:
            self._turn()
            self._end(Misused("the client is closed"))
            for handle in (self._timer, self._turn_handle):
                if handle:
                    handle.cancel()

    # --- turns ----------------------------------------------------------------------------------

    def _turn_soon(self) -> None:
        if self._turn_handle is None:
            self._turn_handle = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Commit what happened, then carry out what follows from it."""
        if self._turn_handle:
            self._turn_handle.cancel()
            self._turn_handle = None
        if self._over:
            return
        try:
            turn = self._machine.turn()
        except StoreFailed as error:
            self._die(error)
            return
        except Exception as mistake:  # noqa: BLE001  # told as the client's end
            self._end_by(mistake)
            return
        self._asked = False
        committing, self._committing = self._committing, None
        _succeed(committing)
        if self._confirming and self._machine.is_confirmed:
            confirming, self._confirming = self._confirming, None
            _succeed(confirming)
        if self._connection:
            self._connection.write(turn.frames)
            if turn.hang_up:
                self._connection.hang_up()
        self._arm(turn.deadline)
        for event in turn.events:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self._tell_app(event)
        if isinstance(event, Ended):
            self._end(Stopped(event.code, event.sentence))

    def _arm(self, deadline: int | None) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._deadline = deadline
        if deadline is not None and not self._over:
            # The event loop's clock stands still while the machine sleeps: look at the time now and then.
            wait = min(max(0, deadline - self.clock()), LOOK_MS) / 1_000
            self._timer = asyncio.get_running_loop().call_later(wait, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._step(lambda machine: machine.tick(self.clock()))
        self._turn()

    def _step(self, happen: Callable[[Machine], None]) -> None:
        """Something that no caller asked for: nobody could catch an error, so any error ends the client."""
        if not self._over:
            try:
                with self.working() as machine:
                    happen(machine)
            except ClientError as error:
                self._end_by(error)

    # --- the connection -------------------------------------------------------------------------

    async def _run(self) -> None:
        """Connect, live, lose the connection, wait, and again; until stopped, or told never to come back."""
        address = self._route.addresses[0]
        self._turn()
        while True:
            began = self.clock()
            connection = WebSocketConnection(address.socket, self._tls, self._limits)
            await connection.open()
            ending = Ending(connection.code, connection.retry_ms)
            if connection.is_open:
                ending = await self._live(connection)
            if self._over:
                return
            address, in_ms = self._route.ended(ending.code, ending.retry_ms, self.clock() - began)
            self._tell(Retrying(address.socket, in_ms, connection.why))
            await asyncio.sleep(in_ms / 1_000)

    async def _live(self, connection: WebSocketConnection) -> Ending:
        self._connection, self._opened_at, self._broken_by = connection, self.clock(), ""
        self._step(lambda machine: machine.connected(self.clock()))
        self._turn()
        endings: list[Ending] = []
        try:
            await connection.live(self._receive)
        finally:
            self._connection = None
            code, why = connection.code, connection.why
            self._step(lambda machine: endings.append(machine.closed(code, self.clock(), why)))
            self._turn()
            if self._broken_by and not self._over:
                self._tell(Disconnected(self._broken_by, code))
        return endings[0] if endings else Ending(code, 0)

    def _receive(self, frame: bytes) -> None:
        if self._asked or self._committing:
            self._turn()
        if self._over or self._broken_by:
            return
        try:
            self._machine.receive(frame, self.clock())
        except StoreFailed as error:
            self._die(error)
        except Exception as mistake:  # noqa: BLE001  # told, and after a few times the client's end
            self._restart_machine(mistake)
        except BaseException as end:
            self._end_by(end)
            raise
        else:
            self._turn_soon()

    def _restart_machine(self, mistake: Exception) -> None:
        """A frame may be half written: roll it back, replace the machine, and reconnect."""
        self._machine.roll_back()
        try:
            if not self._budget.take(self._machine.cursors, self.clock() - self._opened_at):
                self._end_by(mistake)
                return
            self._machine = self._machine.restarted()
            if self._confirming:
                self._machine.confirm(self.clock())
        except Exception as worse:  # noqa: BLE001  # told as the client's end
            self._end_by(worse)
            return
        # Only its type: its text may quote what was in the frame.
        self._broken_by = f"a frame could not be taken ({type(mistake.__cause__ or mistake).__name__})"
        if self._connection:
            self._connection.hang_up()
        self._turn_soon()

    # --- the end --------------------------------------------------------------------------------

    def _die(self, error: ClientError) -> None:
        """What is not on the disk may neither be told nor acknowledged. The next start reads what is."""
        self._machine.roll_back()
        self._end(error)
        self._task.cancel()

    def _end_by(self, mistake: BaseException) -> ClientError:
        """A bug of ours, or a frame that found one. Something may be half written: it must not be committed."""
        if isinstance(mistake, ClientError):
            error = mistake
        else:
            error = ClientError(f"the client stopped: {type(mistake).__name__}")
            error.__cause__ = mistake
        self._die(error)
        return error

    def _on_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (mistake := task.exception()) is not None and not self._over:
            self._end_by(mistake)

    def _end(self, error: ClientError) -> None:
        if self._over:
            return
        self._over = error
        self._arm(None)
        for waited_for in (self._committing, self._confirming):
            if waited_for and not waited_for.done():
                waited_for.set_exception(error)
                waited_for.exception()  # marks it as seen: perhaps nobody waits any more
        self._committing = self._confirming = None
        self._ended(error)


def _succeed(waited_for: asyncio.Future[None] | None) -> None:
    if waited_for and not waited_for.done():
        waited_for.set_result(None)


async def _stop(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait until it ended, also if the caller is cancelled meanwhile."""
    task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
