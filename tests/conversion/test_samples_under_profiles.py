"""All seven profiles on real answers: with passages and without references (``ragtruth_qa``), with references and
without passages (``openqa_nq301``). Metrics that do not apply give a reason; nothing fails."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluation.models import Run, Score
from evaluation.profiles.spec import shipped_profiles
from tests.conversion import openqa, ragtruth
from tests.conversion.refchecker import lines
from tests.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
NAMES = tuple(profile.name for profile in shipped_profiles())
QUESTIONS = 4


@pytest.fixture(autouse=True)
def no_queue(settings: object) -> None:
    settings.CONCORD_DISPATCHER = "local"  # type: ignore[attr-defined]


@pytest.fixture(params=["ragtruth_qa", "openqa_nq301"])
def project(request: pytest.FixtureRequest, sample_data: Path, tmp_path: Path) -> str:
    """A project with the first questions of a data set and the answers to them."""
    folder = sample_data / request.param
    converter: Any = ragtruth if request.param == "ragtruth_qa" else openqa
    items = converter.read_items(folder) if converter is ragtruth else openqa_items(folder)
    questions = converter.questions(items)[:QUESTIONS]
    expected_ids = {row["id"] for row in questions}
    answers = [row for row in converter.answers(items) if row["question_id"] in expected_ids]
    for name, rows in (("questions", questions), ("answers", answers)):
        (tmp_path / f"{name}.jsonl").write_bytes(lines(rows))
    owner = make_project()
    options = {"project": owner.name, "stdout": StringIO(), "stderr": StringIO()}
    call_command("import_questions", str(tmp_path / "questions.jsonl"), name="sample", **options)
    call_command("import_answers", str(tmp_path / "answers.jsonl"), questions="sample", system="models", **options)
    return owner.name


def openqa_items(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "items.jsonl").read_text("utf-8").splitlines()]


def test_every_profile_completes_and_inapplicable_metrics_give_a_reason(project: str, tmp_path: Path) -> None:
    for name in NAMES:
        path = tmp_path / f"{name}.json"
        options = {"project": project, "profile": name, "output": [path], "stdout": StringIO()}
        call_command("evaluate", questions="sample", system="models", **options)
        report = json.loads(path.read_text("utf-8"))
        run = Run.objects.get(pk=report["run"]["id"])
        assert run.state == Run.State.COMPLETED, name
        assert not Score.objects.filter(run=run, status="failed").exists(), name
        left_out = Score.objects.filter(run=run, status="not_applicable")
        assert not left_out.filter(reason="").exists()
        assert report["by_profile"]["profile"] == name
