from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.rag_service import RagService


@pytest.fixture
def service() -> Iterator[RagService]:
    """The toy system on a real socket."""
    with RagService() as running:
        yield running
