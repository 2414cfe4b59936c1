"""What goes over the socket: items, frames, close codes. Both sides speak it, and neither owns it.

Knows:   the model's values, and how they are put into bytes.
Never:   a socket, a clock, a row.
"""
