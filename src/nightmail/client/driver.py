"""Keeps a machine going: turns, time, and a connection that comes back by itself.

Knows:   when the machine must be asked, and where its frames go.
Touches: the machine, on the event loop's thread only; one task, one timer.

What happens in one pass of the loop is one turn, and so one commit: a hundred sends at once cost one sync.

A frame that trips the machine up, in a way that nobody foresaw, is undone together with the machine: the next one is
made from the store, as after a restart, and the server brings again what was not acknowledged. What the app asked for
is committed before a frame is taken, so that it is never undone with one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from .clock import Clock
from .connection import Connection
from .errors import ClientError, Misused, Stopped, StoreFailed
from .events import Disconnected, Ended, Event, Retrying
from .limits import ClientLimits
from .machine import Machine
from .route import Route
from .stumbling import Stumbles


class Driver:
    def __init__(
        self,
        machine: Machine,
        route: Route,
        tls: ssl.SSLContext | None,
        limits: ClientLimits,
        tell: Callable[[Event], None],
        ended: Callable[[ClientError], None],
    ) -> None:
        """`tell` hears every event; `ended` why nothing more will come, once."""
        self._machine, self._route, self._tls, self._limits = machine, route, tls, limits
        self._tell_app, self._ended = tell, ended
        self.clock = Clock()
        self._connection: Connection | None = None
        self._opened_at = 0
        self._stumbles = Stumbles(limits)
        self._stumbled = ""
        """Why the machine that had this connection is no more; empty: it is there."""
        self._asked = False
        """The app has asked for something since the last commit."""
        self._timer: asyncio.TimerHandle | None = None
        self._turn_handle: asyncio.Handle | None = None
        self._committing: asyncio.Future[None] | None = None
        self._over: ClientError | None = None
        self._task = asyncio.create_task(self._run(), name="nightmail client")
        self._task.add_done_callback(self._on_done)

    @property
    def online(self) -> bool:
        return self._machine.online

    @property
    def is_primary(self) -> bool:
        """This device holds the account's signing key."""
        return self._machine.sealed.roster.is_primary

    @contextmanager
    def working(self) -> Generator[Machine]:
        """The machine, for one call. Raises why it no longer works.

        Whatever is raised inside, except for an error of the client's own, is a mistake with something half done.
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
            raise self._broken(mistake) from mistake
        except BaseException as end:
            self._broken(end)
            raise
        self._turn_soon()

    async def committed(self) -> None:
        """Until everything that was asked of the machine is durable."""
        if self._over:
            raise self._over
        if self._committing is None:
            self._committing = asyncio.get_running_loop().create_future()
        self._turn_soon()
        # Several may wait for one commit: none of them may cancel it for the others.
        await asyncio.shield(self._committing)

    async def stop(self) -> None:
        """Leave the server, and write down what is open."""
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
        """Commit what happened, then let out what follows from it."""
        if self._turn_handle:
            self._turn_handle.cancel()
            self._turn_handle = None
        if self._over:
            return
        machine = self._machine
        try:
            frames, events, deadline = machine.frames(), machine.events(), machine.deadline()
        except StoreFailed as error:
            self._die(error)
            return
        except Exception as mistake:  # noqa: BLE001  # told as the client's end
            self._broken(mistake)
            return
        self._asked = False
        committing, self._committing = self._committing, None
        if committing and not committing.done():
            committing.set_result(None)
        if self._connection:
            self._connection.write(frames)
            if machine.hangup:
                self._connection.hang_up()
        self._arm(deadline)
        for event in events:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self._tell_app(event)
        if isinstance(event, Ended):
            self._end(Stopped(event.code, event.sentence))

    def _arm(self, deadline: int | None) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if deadline is not None and not self._over:
            wait = max(0, deadline - self.clock()) / 1_000
            self._timer = asyncio.get_running_loop().call_later(wait, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._step(lambda machine: machine.tick(self.clock()))
        self._turn()

    def _step(self, happen: Callable[[Machine], None]) -> None:
        """Something that no caller asked for: there is nobody to raise an error at, so any is the end."""
        if not self._over:
            try:
                with self.working() as machine:
                    happen(machine)
            except ClientError as error:
                self._broken(error)

    # --- the connection -------------------------------------------------------------------------

    async def _run(self) -> None:
        """Connect, live, lose it, wait, again; until stopped, or told never to come back."""
        address = self._route.addresses[0]
        self._turn()
        while True:
            began = self.clock()
            connection = Connection(address.socket, self._tls, self._limits)
            await connection.open()
            if connection.is_open:
                await self._live(connection)
            if self._over:
                return
            goodbye = self._machine.goodbye if connection.was_open else None
            code, retry_ms = (
                (goodbye.code, goodbye.retry_ms) if goodbye else (connection.code, connection.retry_ms)
            )  # fmt: skip
            address, in_ms = self._route.ended(code, retry_ms, self.clock() - began)
            self._tell(Retrying(address.socket, in_ms))
            await asyncio.sleep(in_ms / 1_000)

    async def _live(self, connection: Connection) -> None:
        self._connection, self._opened_at, self._stumbled = connection, self.clock(), ""
        self._step(lambda machine: machine.connected(self.clock()))
        self._turn()
        try:
            await connection.live(self._receive)
        finally:
            self._connection = None
            self._step(lambda machine: machine.closed(connection.code, self.clock(), connection.why))
            self._turn()
            if self._stumbled and not self._over:
                self._tell(Disconnected(self._stumbled, connection.code))

    def _receive(self, frame: bytes) -> None:
        if self._asked or self._committing:
            self._turn()
        if self._over or self._stumbled:
            return
        try:
            self._machine.receive(frame, self.clock())
        except StoreFailed as error:
            self._die(error)
        except Exception as mistake:  # noqa: BLE001  # told, and after a few times the client's end
            self._stumble(mistake)
        except BaseException as end:
            self._broken(end)
            raise
        else:
            self._turn_soon()

    def _stumble(self, mistake: Exception) -> None:
        """Half of a frame may be written, and nobody knows which half: none of it has happened, and we come back."""
        self._machine.undo()
        try:
            if not self._stumbles.may_go_on(self._machine.reached, self.clock() - self._opened_at):
                self._broken(mistake)
                return
            self._machine = self._machine.anew()
        except Exception as worse:  # noqa: BLE001  # told as the client's end
            self._broken(worse)
            return
        # Its type and nothing else: its text may be about what was in the frame.
        self._stumbled = f"a frame could not be taken ({type(mistake.__cause__ or mistake).__name__})"
        if self._connection:
            self._connection.hang_up()
        self._turn_soon()

    # --- the end --------------------------------------------------------------------------------

    def _die(self, error: ClientError) -> None:
        """Nothing that is not on the disk may be told or acknowledged: a new start finds out what is."""
        self._machine.undo()
        self._end(error)
        self._task.cancel()

    def _broken(self, mistake: BaseException) -> ClientError:
        """A mistake of ours, or a frame that found one. Half of something may be written: it must not be committed."""
        if isinstance(mistake, ClientError):
            error = mistake
        else:
            error = ClientError(f"the client stopped: {type(mistake).__name__}")
            error.__cause__ = mistake
        self._die(error)
        return error

    def _on_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (mistake := task.exception()) is not None and not self._over:
            self._broken(mistake)

    def _end(self, error: ClientError) -> None:
        if self._over:
            return
        self._over = error
        self._arm(None)
        committing, self._committing = self._committing, None
        if committing and not committing.done():
            committing.set_exception(error)
            committing.exception()  # if nobody waits any more, nobody has to look
        self._ended(error)


async def _stop(task: asyncio.Task[None]) -> None:
    """Cancel a task and see it end, also if whoever asked is cancelled meanwhile."""
    task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
