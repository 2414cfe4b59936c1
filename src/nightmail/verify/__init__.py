"""A chaos run on a server, and the verdict: what was lost, duplicated, reordered, or redelivered without a reason.

    plan.py              what happens when, from one seed
    participants.py      real clients with profiles of their own, which are closed and opened again
    websocket_frames.py  splits a byte stream into WebSocket frames
    proxy.py             between a device and the server: cuts, stalls, drops, duplicates, impersonates
    redelivery.py        checks each delivered entry: may the server deliver it again?
    ledger.py            what was written, acknowledged and shown, and the verdict
    run.py               a whole run

Knows:   clients and the wire. Any server that speaks the protocol can be tested.
Touches: sockets, profile folders, and the server process if the run started it.
Never:   asks the server: only what clients saw is judged.
"""
