from __future__ import annotations

from typing import Any

import pytest

from examples.rag_service import RagService
from tests.evaluation.connectors.conftest import service

__all__ = ["rag_service", "service"]


@pytest.fixture
def rag_service(service: RagService, settings: Any) -> RagService:
    """The example system as an allowed origin, without workers."""
    settings.CONCORD_SYSTEM_ORIGINS = [service.origin]
    settings.CONCORD_DISPATCHER = "django_q"  # no worker listens: tests drain
    return service
