"""Real files from public repositories import unchanged (folders ``graphrag_bench`` and ``openqa_nq301``)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evaluation.formats.rating_rows import read_definitions
from evaluation.formats.reading import read_answers, read_questions, read_ratings
from tests.evaluation.formats.openqa_nq301 import DEFINITION, convert


@pytest.mark.parametrize(
    ("name", "count", "first_category", "metadata"),
    [
        ("novel_sample_50.yaml", 50, "single_hop", ("origin_question_type", "source")),
        ("novel_sample_50.json", 50, "Fact Retrieval", ("source",)),
        ("novel_dev_all.json", 939, "Fact Retrieval", ("source",)),
    ],
)
def test_graphrag_bench_imports_unchanged(
    sample_data: Path, name: str, count: int, first_category: str, metadata: tuple[str, ...]
) -> None:
    file = read_questions((sample_data / "graphrag_bench" / name).read_bytes(), name)
    assert len(file.questions) == count
    assert all(question.references for question in file.questions)
    assert (file.questions[0].id, file.questions[0].category) == ("Novel-73586ddc", first_category)
    assert file.metadata_keys == metadata


def test_graphrag_bench_groups_by_novel(sample_data: Path) -> None:
    data = (sample_data / "graphrag_bench" / "novel_dev_all.json").read_bytes()
    file = read_questions(data, "novel_dev_all.json", group_by="source")
    assert len({question.group for question in file.questions}) == 10  # ten novels, says its README


def test_openqa_agreement_equals_the_published_values(sample_data: Path) -> None:
    files = convert(sample_data / "openqa_nq301")
    assert len(read_questions(files["questions.jsonl"], "questions.jsonl").questions) == 150
    answers = read_answers(files["answers.jsonl"], "answers.jsonl").answers
    assert len({(answer.question_id, answer.sample) for answer in answers}) == 737
    ratings = read_ratings(files["ratings.jsonl"], "ratings.jsonl", scales=read_definitions([DEFINITION])).ratings
    human_values = {(r.question_id, r.sample): r.value for r in ratings if r.origin.author == "adjudicated"}
    gpt_4_values = {(r.question_id, r.sample): r.value for r in ratings if r.origin.author == "gpt-4"}
    counts = Counter((human_values[key], value) for key, value in gpt_4_values.items() if value is not None)
    n = sum(counts.values())
    # Cohen's kappa by hand: (observed - expected) / (1 - expected), expected from the two margins.
    observed = (counts[0.0, 0.0] + counts[1.0, 1.0]) / n
    human_yes, judge_yes = (counts[1.0, 0.0] + counts[1.0, 1.0]) / n, (counts[0.0, 1.0] + counts[1.0, 1.0]) / n
    expected = human_yes * judge_yes + (1 - human_yes) * (1 - judge_yes)
    assert n == 730
    assert observed == pytest.approx(0.847945, abs=5e-7)
    assert (observed - expected) / (1 - expected) == pytest.approx(0.694113, abs=5e-7)
    assert sum(r.failure.startswith("parse: ") for r in ratings if r.origin.author == "gpt-4") == 7
