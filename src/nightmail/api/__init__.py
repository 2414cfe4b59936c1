"""HTTP: accounts, devices, what became of a message; health and metrics.

Knows:   who may ask what, and how an answer is put into JSON.
Touches: the desk, to submit records and to look at accounts.
Never:   the fold, the log, or what a message says.
"""
