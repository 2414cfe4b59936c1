"""The one port, before anything is read from it."""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import ExitStack

from nightmail.testing import running_server

CROWD = 600


def test_a_crowd_that_connects_while_the_server_is_busy_loses_no_connection() -> None:
    with running_server() as server, ExitStack() as opened:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            crowd = [opened.enter_context(socket.socket()) for _ in range(CROWD)]
            for each in crowd:
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", server.port))
            # On one machine, the kernel has answered by now; a connection without a place would try again in a second.
            waiting = select.poll()
            for each in crowd:
                waiting.register(each, select.POLLOUT)
            assert len(waiting.poll(0)) == CROWD
        finally:
            os.kill(server.pid, signal.SIGCONT)
