"""For other people's tests: a real server process on a free port and a folder of its own.

    with running_server() as server:
        ada, bob = server.register("ada"), server.register("bob")
        with ada.sync() as sender, bob.sync() as recipient:
            sender.send("bob", "hello")
            assert recipient.receive(timeout=10).text == "hello"
            server.kill()       # SIGKILL
            server.restart()    # on the same port and the same folder

`async with running_server() as server` does the same without stopping the event loop while it starts. For
pytest, `pytest_plugins = ["nightmail.testing.fixtures"]` in conftest.py gives the fixture `nightmail_server`.

Knows:   how to start a server, and how it says that it is there.
Touches: one process, one temporary folder.
Never:   sleeps: it waits for what the process says.
"""

from .registered_device import RegisteredDevice
from .running import RunningServer, ServerFailed, running_server

__all__ = ["RegisteredDevice", "RunningServer", "ServerFailed", "running_server"]
