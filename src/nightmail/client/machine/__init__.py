"""The client without sockets, clocks or tasks: frames in, one `Turn` out.

machine.py      what a driver calls
parts.py        every part, built in order; who hears what; which part takes which item
context.py      what all parts share
signals.py      what parts tell each other
turn.py         what the machine hands to its driver
retry.py        waiting before the next attempt
"""
