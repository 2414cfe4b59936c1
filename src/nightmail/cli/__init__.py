"""The command line: what a user types, and what the terminal shows.

Knows:   how to print for people and for scripts, and what each exit code means.
Touches: standard streams, profile folders through the client, a server through its settings.
Never:   decides anything about messages; prints a token, or message content in an error.

    app.py                the group of commands; imports a command's module when it is called
    commands/             one module per command; about an account in `accounts/`, about a server in `operators/`
    chat/                 the window of `nightmail chat`
    demo/                 the story and the screen of `nightmail demo`
    errors.py             exit codes, and one sentence for every error that a user can cause
    output.py             lines for people
    json_shapes.py        one JSON object per line, for scripts
    profiles.py           which profile a command uses, and which servers it connects to
    unlocking.py, pins.py passphrases and PINs: from options, the environment, or a prompt
    contact_names.py      contact names and handles ↔ accounts
    waiting.py            --timeout, for every command that waits
    server_settings.py    flags and files for the settings of a server
    child_server.py       runs a command that starts a server process
    link_confirmation.py  asks before a device is linked
    qr_code.py            QR codes in a terminal
"""
