from __future__ import annotations

from typing import Any

import pytest

from examples.rag_service import RagService
from tests.evaluation.connectors.conftest import service

__all__ = ["asked", "service"]


@pytest.fixture
def asked(service: RagService, settings: Any) -> RagService:
    """The toy system on the list of systems that may be asked; no queue."""
    settings.CONCORD_SYSTEM_ORIGINS = [service.origin]
    settings.CONCORD_DISPATCHER = "django_q"  # no worker listens: tests drain
    return service
