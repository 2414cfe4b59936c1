"""The one port, before anything is read from it."""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import ExitStack

from nightmail.testing import running_server

CROWD = 600
WAIT_MS = 60_000


def test_a_crowd_that_connects_while_the_server_is_busy_loses_no_connection() -> None:
    with running_server() as server, ExitStack() as opened:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            crowd = [opened.enter_context(socket.socket()) for _ in range(CROWD)]
            for each in crowd:
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", server.port))
            # The kernel answers for the server. A connection without a place is not answered as long as that stands
            # still: it would be waited for in vain.
            waiting = select.poll()
            for each in crowd:
                waiting.register(each, select.POLLOUT)
            answered = 0
            while answered < CROWD:
                ready = waiting.poll(WAIT_MS)
                assert ready, f"{CROWD - answered} connections have no place"
                for descriptor, event in ready:
                    assert event == select.POLLOUT
                    waiting.unregister(descriptor)
                answered += len(ready)
        finally:
            os.kill(server.pid, signal.SIGCONT)
