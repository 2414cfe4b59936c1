"""Commands for who runs a server: start it, look into it, keep its data."""
