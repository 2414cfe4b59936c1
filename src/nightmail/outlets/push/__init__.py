"""Pushes: which sleeping devices are woken when, and how each provider wants to be asked."""
