"""One module per command: `x_y.py` defines the command `x-y` under the name `command`.

Commands that are groups hold their subcommands. What several commands share is in `nightmail.cli`.
"""
