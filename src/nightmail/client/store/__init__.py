"""What survives on the device.

port.py               what the machine asks of a store
rows.py               the rows, as values
sqlite.py             a sealed SQLite file; sqlite_schema.py opens and migrates it
memory.py             plain data, for tests and the simulator
search.py             the words that a message is found by
unspaced_scripts.py   the same, in scripts without spaces
"""
