"""Messages that could not be folded: buried, listed, replayed, discarded, forgotten."""
