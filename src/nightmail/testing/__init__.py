"""For tests of other projects: a real server process on a free port, with a temporary data folder.

    with running_server() as server:
        ada, bob = server.register("ada"), server.register("bob")
        with ada.sync() as sender, bob.sync() as recipient:
            sender.send("bob", "hello")
            assert recipient.receive(timeout=10).text == "hello"
            server.kill()       # SIGKILL
            server.restart()    # on the same port and the same folder

`async with running_server() as server` does the same without blocking the event loop. For pytest, put
`pytest_plugins = ["nightmail.testing.fixtures"]` into conftest.py to get the fixture `nightmail_server`.

Knows:   how to start a server, and how the server reports that it is ready.
Touches: one process, one temporary folder.
Never:   sleeps: it waits for the output of the process.
"""

from .registered_device import RegisteredDevice
from .running import RunningServer, ServerFailed, running_server

__all__ = ["RegisteredDevice", "RunningServer", "ServerFailed", "running_server"]
