"""What leaves the server for somebody who is no device: webhooks.

Knows:   how to call an address of the operator's, signed, and what its answer means.
Touches: sockets, on threads of its own.
Never:   the fold, frames, or what a message says.
"""
