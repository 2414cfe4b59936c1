"""One process: its settings, and the one place where its parts meet.

Knows:   every server-side room, and how each is handed to the next.
Touches: the data folder, the listening socket, signals, the log lines.
Never:   decides what becomes of a record.
"""
