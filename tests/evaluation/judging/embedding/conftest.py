from __future__ import annotations

from tests.judge_server.fixture import judge_server

__all__ = ["judge_server"]
