"""The fixture; import it in a ``conftest.py``: ``from tests.judge_server.fixture import judge_server``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.judge_server.server import JudgeServer


@pytest.fixture
def judge_server() -> Iterator[JudgeServer]:
    """A running server of its own for the test, answering every schema until it is scripted otherwise."""
    with JudgeServer() as server:
        yield server
