"""Where a file's syntax is wrong, the sentence is wholly in the reader's language."""

from __future__ import annotations

import re

import pytest
from django.utils import translation

from evaluation.core.errors import InvalidFile
from evaluation.files.reading import read_answers
from evaluation.wording.messages import explain

BROKEN = {
    "a.json": [
        '[{"a": 1}] x',
        '[{"a": 1 "b": 2}]',
        "[1 2]",
        "[{a: 1}]",
        '[{"a" 1}]',
        '[{"a": "x\n"}]',
        '[{"a": nope}]',
    ],
    "a.csv": ['question_id,answer\nq1,"x" y\n', 'question_id,answer\nq1,"x\n'],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BROKEN.items() for text in texts])
def test_no_english_is_left_in_korean(name: str, text: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        read_answers(text.encode(), name, max_bytes=10_000)
    with translation.override("ko"):
        told = explain(refused.value.problems[0]).replace(name, "")
    assert set(re.findall(r"[A-Za-z]{2,}", told)) <= {"JSON", "nope", "CSV"}
