"""`python -m nightmail`: the same as the command `nightmail`."""

from nightmail.cli.app import main

if __name__ == "__main__":
    main()
