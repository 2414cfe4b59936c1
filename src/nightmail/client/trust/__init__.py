"""Whom this device trusts: lists, keys and sessions.

sealer.py           the port: what sends and receives ask of sealing
e2ee_sealer.py      what every client has behind that port
device_lists.py     for whom to seal: asked for once, cached
believed_lists.py   which lists are believed, and what the person said about a key
key_stock.py        this device's own keys
sessions.py         sessions with other devices, and the claims that begin them
"""
