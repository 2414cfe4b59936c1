"""The words everything else is written in: ids, records, rows, effects, refusals, limits.

Knows:   nothing of ours; every type here is a value that can be encoded.
Never:   a clock, a socket, a file, a random number.
"""
