"""One module per command: `x_y.py` defines the command `x-y` under the name `command`.

Here are the commands about messages and people; in `accounts/` those about an account and its devices, in
`operators/` those about a server. Commands that are groups hold their subcommands. What several commands share is in
`nightmail.cli`.
"""
