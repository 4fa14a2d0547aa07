"""The two ways Korean is read: by the closed list (every test unless it says otherwise) and by kiwipiepy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluation.metrics import keyword_coverage, matching, negation, normalise


def _forget() -> None:
    keyword_coverage.find_keywords.cache_clear()
    matching.find_keyword.cache_clear()
    negation._negators.cache_clear()


@pytest.fixture(autouse=True)
def closed_list(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on an installation without the extra ``ko``, unless the test asks for ``kiwi``."""
    _forget()
    if "kiwi" not in request.fixturenames:
        monkeypatch.setattr(normalise, "kiwi_installed", False)
    yield
    _forget()


@pytest.fixture
def kiwi() -> None:
    """As on an installation with the extra ``ko``."""
    pytest.importorskip("kiwipiepy", reason="the extra 'ko' is not installed")
