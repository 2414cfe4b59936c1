"""Sending: every message durable first, numbered, sealed once, repeated until the server has answered.

outbox.py           a message gets its id and its number
streams.py          what waits, by conversation and lane; stream.py is one of them
sending.py          what is sent next, and when again
answers.py          what each answer of the server means
envelopes.py        sealing one message for every device
ticks.py            how far own messages got
reseals.py          sealing again for a device that could not open a message
successors.py       sealing again for devices that took the place of removed ones
control_copies.py   control messages, kept until their device has them
"""
