"""`nightmail demo`: a story with four real clients and a real server process.

screen.py   three devices, the server and a caption, drawn from what the clients hold
story.py    what happens, step by step
view.py     where the screen is shown, ten times a second
"""
