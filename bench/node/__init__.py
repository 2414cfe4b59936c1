"""What a message costs in a whole server: real sockets, a real process, real kills.

    orchestrator (this package's __main__)
        │ starts, kills, reads clocks and memory            ┌── sockets ──┐
        ├──► server process: python -m nightmail serve ◄────┤             │
        └──► load process(es): python -m bench.node.load ───┘  every promise is checked here, on the fly

Knows:   the protocol as any client does, and what the kernel says about a process.
Never:   looks into the server while it runs, or asks the server for figures.
"""
