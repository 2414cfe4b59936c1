"""Blobs: who owns one, how large it is, whom it is for, who has it, and when it ends. Bytes are the engine's."""
