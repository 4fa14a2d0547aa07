"""Claims labelled by people, imported as parts, give the supported shares that were computed from the data by others
(folder ``refchecker``, ``reference_values.json``)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from evaluation.models import Answer, Finding, Run, Score
from review.models import Rating
from tests.conversion import refchecker
from tests.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
Group = tuple[str, str]


@pytest.fixture(scope="module")
def imported_data(
    django_db_setup: None, django_db_blocker: Any, sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """The run over the 1,050 answers, with the labels of the annotators imported, which takes seconds: once for all
    tests of the file, each of which takes back its own changes alone."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield import_all(sample_data, tmp_path_factory.mktemp("refchecker"))
        transaction.set_rollback(True)


@pytest.fixture
def run(imported_data: int) -> Run:
    return Run.objects.get(pk=imported_data)


def import_all(sample_data: Path, tmp_path: Path) -> int:
    """Import the questions, the answers and the labels through the commands; the run's key."""
    items = refchecker.read_items(sample_data / "refchecker")
    rows_by_kind = {"questions": refchecker.questions, "answers": refchecker.answers, "claims": refchecker.claims}
    for name, rows in rows_by_kind.items():
        (tmp_path / f"{name}.jsonl").write_bytes(refchecker.lines(rows(items)))
    project = make_project()
    command_options = {"project": project.name, "stdout": StringIO()}
    call_command("import_questions", str(tmp_path / "questions.jsonl"), name="refchecker", **command_options)
    output = StringIO()
    options = {"questions": "refchecker", "system": "seven models", "project": project.name}
    call_command("import_answers", str(tmp_path / "answers.jsonl"), **options, stdout=output)
    (number,) = re.findall(r"run (\d+)", output.getvalue())
    call_command("import_ratings", str(tmp_path / "claims.jsonl"), run=int(number), stdout=StringIO())
    return int(number)


@pytest.fixture
def expected(sample_data: Path) -> dict[str, Any]:
    """The reference values."""
    values: dict[str, Any] = json.loads((sample_data / "reference_values.json").read_text("utf-8"))["refchecker"]
    return values


def test_supported_shares_by_data_set_and_model_match_reference(run: Run, expected: dict[str, Any]) -> None:
    rows: dict[str, list[Rating]] = defaultdict(list)
    for rating in Rating.objects.select_related("answer__question").filter(metric__name="claim_support"):
        data_set = rating.answer.question.external_id.partition(":")[0]
        rows[f"{data_set}/{rating.answer.metadata['model']}"].append(rating)
    assert set(rows) == set(expected["by_dataset_model"])
    for group, ratings in rows.items():
        expected_group = expected["by_dataset_model"][group]
        values = [rating.value for rating in ratings if rating.value is not None]
        verdicts = [part["verdict"] for rating in ratings for part in rating.parts or []]
        assert len(ratings) == len(values) == expected_group["with_claims"]
        assert sum(values) / len(values) == pytest.approx(expected_group["macro_groundedness"], abs=5e-7)
        supported = verdicts.count("supported") / len(verdicts)
        assert supported == pytest.approx(expected_group["micro_groundedness"], abs=5e-7)
        assert values.count(1.0) == expected_group["answers_fully_supported"]


def test_every_label_is_stored_and_answers_without_claims_have_no_score(run: Run, expected: dict[str, Any]) -> None:
    verdicts = [part["verdict"] for rating in Rating.objects.all() for part in rating.parts or []]
    assert {verdict: verdicts.count(verdict) for verdict in set(verdicts)} == {
        "supported": expected["claims"]["Entailment"],
        "unsupported": expected["claims"]["Neutral"],
        "contradicted": expected["claims"]["Contradiction"],
    }
    rated_answers = set(Rating.objects.values_list("answer_id", flat=True))
    assert Answer.objects.exclude(pk__in=rated_answers).count() == expected["no_claims"]


def test_judge_claims_become_findings_and_determine_its_score(run: Run, tmp_path: Path) -> None:
    answer = Answer.objects.select_related("question").first()
    assert answer is not None
    labels = ("Entailment", "Neutral", "Entailment", "Contradiction")
    row = {
        "question_id": answer.question.external_id,
        "sample": answer.sample,
        "metric": "claim_support",
        "parts": [{"kind": "claim", "text": f"claim {n}", "label": label} for n, label in enumerate(labels)],
        "rater": "judge",
        "author": "checker@1",
    }
    (tmp_path / "judge.jsonl").write_bytes(refchecker.lines([row]))
    call_command("import_ratings", str(tmp_path / "judge.jsonl"), run=run.pk, stdout=StringIO())
    score = Score.objects.get(author="checker@1")
    assert score.value == 0.5  # two of four
    assert list(Finding.objects.filter(score=score).values_list("verdict", flat=True)) == [
        *("supported", "unsupported", "supported", "contradicted"),
    ]
