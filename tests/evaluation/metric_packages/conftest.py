from __future__ import annotations

from tests.own_metrics import register

__all__ = ["register"]
