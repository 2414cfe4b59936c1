from __future__ import annotations

from tests.engines.started import started_engines

__all__ = ["started_engines"]
