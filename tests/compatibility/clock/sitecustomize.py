"""Sets the wall clock of a Python process that has this folder on PYTHONPATH; monotonic clocks stay as they are.

Python imports a module of this name by itself when it starts.
"""

from __future__ import annotations

import os
import time

_OFFSET_NS = int(os.environ["COMPATIBILITY_CLOCK_OFFSET_S"]) * 1_000_000_000
_real_ns = time.time_ns

time.time_ns = lambda: _real_ns() + _OFFSET_NS
time.time = lambda: time.time_ns() / 1e9
