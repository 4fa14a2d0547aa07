"""The fixture; import it in a ``conftest.py``: ``from tests.judge_server.fixture import judge_server``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.judge_server.server import JudgeServer


@pytest.fixture
def judge_server() -> Iterator[JudgeServer]:
    """A running server for one test. It gives valid replies to any schema unless scripted."""
    with JudgeServer() as server:
        yield server
