"""Receiving: every entry once, in order, durable before it is acknowledged.

inbox.py        entries and gaps, lane by lane
parked.py       entries that cannot be opened yet
acks.py         what the server is told about them
receipts.py     what became of own messages
read_marks.py   what the person has read
"""
