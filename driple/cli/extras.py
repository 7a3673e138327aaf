"""Optional extras that a command needs, under the name that commands import them by."""

from __future__ import annotations

from driple.extras import require_numba, require_tensorflow, require_torch, require_web

__all__ = ["require_numba", "require_tensorflow", "require_torch", "require_web"]
