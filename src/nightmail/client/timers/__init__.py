"""Disappearing messages: how long a message lives, from when that is counted, and what sets it.

life_clock.py   the time by which lives are counted; it goes on after a restart, also if the clock was set back
lives.py        the life of one message: outside and inside its seal, counted, what is left of it
deadlines.py    deletes messages at their deadline
changes.py      the timer of a conversation, and the messages that change it
"""
