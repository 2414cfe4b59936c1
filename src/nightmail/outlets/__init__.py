"""Calls from the server to other systems: webhooks.

Knows:   how to call an address, signed and bounded, and what its answer means.
Touches: sockets, on a thread of its own or in a process of its own.
Never:   the fold or frames; never logs what it sends.
"""
