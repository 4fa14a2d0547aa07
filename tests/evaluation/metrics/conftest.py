"""Korean analysis in tests: the closed list by default, kiwipiepy on request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluation.metrics import keyword_coverage, matching, negation, normalise


def _clear_caches() -> None:
    keyword_coverage.find_keywords.cache_clear()
    matching.find_keyword.cache_clear()
    negation._negators.cache_clear()


@pytest.fixture(autouse=True)
def closed_list(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Disable kiwipiepy unless the test uses ``kiwi``."""
    _clear_caches()
    if "kiwi" not in request.fixturenames:
        monkeypatch.setattr(normalise, "kiwi_installed", False)
    yield
    _clear_caches()


@pytest.fixture
def kiwi() -> None:
    """Skip the test unless the extra ``ko`` is installed."""
    pytest.importorskip("kiwipiepy", reason="the extra 'ko' is not installed")
