"""Calls from the server to other systems: webhooks.

Knows:   how to call an address of the operator's, signed, and what its answer means.
Touches: sockets, on threads of its own.
Never:   the fold, frames, or the content of a message.
"""
