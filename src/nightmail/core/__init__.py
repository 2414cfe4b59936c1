"""The pure fold: what each record does to the rows, and what it asks for.

Knows:   the rows it is handed and the record it is given.
Never:   a clock, a socket, a disk, a random number, or a row that `needs` did not name.
"""
