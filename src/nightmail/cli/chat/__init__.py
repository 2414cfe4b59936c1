"""The window of `nightmail chat`: conversations in a terminal.

    model.py          what is shown, as values: no terminal, no client, no clock
    lines.py          a conversation as lines: days, messages, notices
    bubbles.py        draws a line at a given width
    conversations.py  everything that the window asks of the client
    widgets.py, screens.py, style.py, app.py   the terminal

Never:   shows message content outside its window: not in the title, in a notification or in a log.
"""
