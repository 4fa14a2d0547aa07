from __future__ import annotations

from tests.evaluation.connectors.conftest import service
from tests.evaluation.systems.conftest import rag_service
from tests.judge_server.fixture import judge_server
from tests.own_metrics import register

__all__ = ["judge_server", "rag_service", "register", "service"]
