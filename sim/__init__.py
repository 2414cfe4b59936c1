"""A seeded world for the engine: faults in, promises checked."""
