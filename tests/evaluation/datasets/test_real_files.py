"""Real files import unchanged (graphrag_bench), and a large answer file imports at once (evouna_nq_scale)."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluation.datasets.importing import import_question_set
from evaluation.formats.reading import read_answers, read_questions
from evaluation.models import Answer, Question, Run
from evaluation.runs.answer_files import import_answers, score_by_rules
from evaluation.runs.results import run_figures
from tests.evaluation.datasets.sources import as_json, as_lines, question
from tests.factories import make_project

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "questions"), [("novel_sample_50.yaml", 50), ("novel_sample_50.json", 50), ("novel_dev_all.json", 939)]
)
def test_graphrag_bench_files_import_unchanged(sample_data: Path, name: str, questions: int) -> None:
    data = (sample_data / "graphrag_bench" / name).read_bytes()
    question_set = import_question_set(make_project(), "novel", read_questions(data, name), by=None).question_set
    assert question_set.questions.count() == questions
    row = question_set.questions.get(external_id="Novel-73586ddc")
    assert row.read().references == ("Cornish heath",)
    assert row.metadata["source"] == "Novel-44557"
    assert row.category == ("single_hop" if name.endswith("yaml") else "Fact Retrieval")


def test_yaml_and_json_of_one_sample_become_versions_of_one_set(sample_data: Path) -> None:
    """The YAML has keywords and its own categories, so the content differs although the ids are equal."""
    project = make_project()
    for name in ("novel_sample_50.yaml", "novel_sample_50.json"):
        data = (sample_data / "graphrag_bench" / name).read_bytes()
        question_set = import_question_set(project, "novel", read_questions(data, name), by=None).question_set
    assert question_set.version == 2
    ids = Counter(Question.objects.values_list("external_id", flat=True))
    assert set(ids.values()) == {2}


@pytest.mark.slow
def test_ten_thousand_questions_import_within_a_few_seconds() -> None:
    """A bound on the processor time against quadratic growth; the benchmark measures the real time."""
    data = as_json([question(n, source="atlas", difficulty="easy") for n in range(10_000)])
    began = time.process_time()
    import_question_set(make_project(), "many", read_questions(data, "many.json"), by=None)
    assert time.process_time() - began < 60
    assert Question.objects.count() == 10_000


def load_evouna(sample_data: Path, system: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The questions, with their gold answers as alternatives of one keyword, and the answers of one system."""
    lines = (sample_data / "evouna_nq_scale" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["system"] == system]
    golds = [[gold for gold in row["gold_answers"] if gold.strip()] for row in rows]
    questions = [
        {"id": row["question_id"], "category": "nq", "question": row["question"]}
        | ({"expected_answer": gold, "expected_keywords": [gold]} if gold else {})
        for row, gold in zip(rows, golds, strict=True)
    ]
    return questions, [{"question_id": row["question_id"], "answer": row["answer"]} for row in rows]


@pytest.mark.slow
def test_thousands_of_answers_are_stored_and_scored_at_once(sample_data: Path) -> None:
    questions, answers = load_evouna(sample_data, "gpt4")
    question_set = import_question_set(
        make_project(), "nq", read_questions(as_json(questions), "nq.json"), by=None
    ).question_set
    data = as_lines(answers)
    imported = import_answers(
        question_set, "gpt4", read_answers(data, "gpt4.jsonl"), data=data, file_name="gpt4.jsonl", by=None
    )
    assert (len(imported.missing), Answer.objects.count()) == (0, len(answers))
    run = score_by_rules(imported.run)
    hit = run_figures(run)["keyword_hit"]
    assert run.state == Run.State.COMPLETED
    assert hit.scored + hit.not_applicable == len(answers) == 3460
    # Plain substring search, written here, is a rough second opinion on token matching.
    answer_texts = {row["question_id"]: row["answer"].casefold() for row in answers}
    keyword_questions = [q for q in questions if "expected_keywords" in q]
    substring_share = sum(
        any(g.casefold() in answer_texts[q["id"]] for g in q["expected_keywords"][0]) for q in keyword_questions
    ) / len(keyword_questions)
    assert hit.mean == pytest.approx(substring_share, abs=0.05)
