"""Hostile clients against a running server, while a calm pair talks and newcomers connect.

    attackers (a process of their own, other addresses) ──► server process ◄── calm pair, newcomers

Knows:   the wire, and how to misuse it.
Touches: a server process of its own, on this machine.
Never:   looks into the server: what the pair and the newcomers see is what counts.
"""
