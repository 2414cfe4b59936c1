"""For all tests: chance may choose the examples, never the clock the outcome."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "nightmail", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)  # fmt: skip
settings.load_profile("nightmail")
