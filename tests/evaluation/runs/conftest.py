from __future__ import annotations

from typing import Any

import pytest

from tests.judge_server import JudgeServer
from tests.judge_server.fixture import judge_server

__all__ = ["judge", "judge_server"]


@pytest.fixture
def judge(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    """A judge server as an allowed origin, without a task queue."""
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    settings.CONCORD_CALL_SECONDS = 2.0
    return judge_server
