"""A chaos run on a server, and the verdict: what was lost, doubled, reordered, handed out again without need.

    plan.py      what happens when, from one seed
    cast.py      the people: real clients that keep their profiles, and may be closed and opened again
    wire.py      WebSocket frames cut out of a stream of bytes
    proxy.py     what stands between a device and the server: cuts, stalls, swallows, doubles, impersonates
    check.py       what went over the wire, judged entry by entry
    ledger.py    what was written, acknowledged and shown, and the verdict
    run.py       all of it together

Knows:   clients and the wire. The server may be anybody's.
Touches: sockets, profile folders, and the server's process if it was started for this.
Never:   asks the server how it did: only what clients saw is judged.
"""
