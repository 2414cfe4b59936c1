"""Draws the pictures of the README from real servers and real clients. Not part of the installed package."""
