"""The command line: what a person types, and what a terminal shows.

Knows:   how to say things to people and to scripts, and what each exit code means.
Touches: standard streams, profile folders through the client, a server through its settings.
Never:   keeps a rule about messages; shows a token, or content in an error.

    app.py        the group of commands; each is imported only when it is called
    failing.py    exit codes, and one sentence for everything a user can cause
    saying.py     lines for people, one JSON object per line for scripts
    profiles.py   where a profile is, and which servers it talks to
"""
