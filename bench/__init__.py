"""Benchmarks of the real engine. They fail if a promise is broken, never because something is slow."""
