"""For all tests: chance may choose the examples, never the clock the outcome."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("nightmail", deadline=None, print_blob=True)
settings.load_profile("nightmail")
