"""Sealing in groups: the signed chain of members, and sender keys."""
