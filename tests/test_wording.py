"""The check of wording finds what reads as translated, in every source of texts."""

from __future__ import annotations

import pytest

from tools.wording import bilingual_texts, catalogue_texts, doc_texts, problems


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("The file has to be read anew.", "again"),
        ("The value is no number.", "isn't, aren't"),
        ("답변을 견주어 보세요.", "비교"),
    ],
)
def test_translated_wording_is_found(text: str, advice: str) -> None:
    assert [problem.rpartition(": ")[2] for problem in problems("page", text)] == [advice]


def test_plain_wording_passes() -> None:
    assert problems("page", "The judge is no better than chance. This must be done. 답변을 비교하세요.") == []


def test_texts_come_from_pages_metrics_and_documentation() -> None:
    pages, metrics, docs = ({text for _, text in source()} for source in (catalogue_texts, bilingual_texts, doc_texts))
    assert "Column" in pages
    assert {"Keyword hit", "키워드 적중"} & metrics
    assert any("blind" in text for text in docs)
    assert not any("```" in text or "make demo " in text for text in docs)
