"""Nightmail: every message exactly once, in order, on every device."""
