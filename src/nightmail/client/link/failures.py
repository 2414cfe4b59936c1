"""Why a server could not be reached, in words for a person.

Knows:   the errors of sockets and of TLS.
Never:   quotes what the other side sent.
"""

from __future__ import annotations

import socket
import ssl

UNTRUSTED = "its certificate is not trusted"
"""Begins the text if the server is there, and cannot show that it is the one that was asked for."""


def failure_text(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"{UNTRUSTED} ({error.verify_message.rstrip('.')})"
        case ssl.SSLError():
            return "the TLS handshake failed"
        case socket.gaierror():
            return "its host name is unknown"
        case ConnectionRefusedError():
            return "nothing listens there"
        case TimeoutError():
            return "it did not answer in time"
        case _:
            return type(error).__name__
