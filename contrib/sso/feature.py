"""Register URLs."""

from __future__ import annotations

from evaluation.extensions import Feature

FEATURE = Feature(name="sso", urls="contrib.sso.views")
