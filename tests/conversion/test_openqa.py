"""Real verdicts, imported through the commands, give the published agreement."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from rest_framework.test import APIClient

from evaluation.core.roles import Role
from evaluation.models import Run, Score
from review.models import Rating
from tests.conversion.openqa import DEFINITIONS, JUDGES, convert
from tests.factories import make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture(scope="module")
def stored(
    django_db_setup: None, django_db_blocker: Any, sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, dict[str, Path]]]:
    """The key of the run over the answers, and the rating files: imported once for all tests of the file, each of which
    takes back its own changes alone."""
    files = convert(sample_data / "openqa_nq301", tmp_path_factory.mktemp("openqa"))
    with django_db_blocker.unblock(), transaction.atomic():
        yield import_all(files), files
        transaction.set_rollback(True)


@pytest.fixture
def openqa(stored: tuple[int, dict[str, Path]]) -> tuple[Run, dict[str, Path]]:
    """The run over the answers, and the rating files."""
    number, files = stored
    return Run.objects.get(pk=number), files


def import_all(files: dict[str, Path]) -> int:
    """Import the questions and the answers through the commands; the run's key."""
    project = make_project()
    call_command("import_questions", str(files["questions"]), name="openqa", project=project.name, stdout=StringIO())
    out = StringIO()
    options = {"questions": "openqa", "system": "twelve systems", "project": project.name}
    call_command("import_answers", str(files["answers"]), **options, stdout=out)
    (number,) = re.findall(r"run (\d+)", out.getvalue())
    return int(number)


def imported(run: Run, *paths: Path, **options: Any) -> list[dict[str, Any]]:
    results = []
    for path in paths:
        out = StringIO()
        call_command(
            "import_ratings", str(path), run=run.pk, define=list(DEFINITIONS), format="json", stdout=out, **options
        )
        results.append(json.loads(out.getvalue()))
    return results


def agreement(run: Run, **options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("agreement", run.pk, format="json", stdout=out, **options)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_kappa_and_exact_agreement_of_three_judges_are_those_published(
    openqa: tuple[Run, dict[str, Path]], sample_data: Path
) -> None:
    run, files = openqa
    done = imported(run, files["human"], *(files[name] for name in JUDGES))
    assert [(d["human"], d["judge"], d["failed"]) for d in done] == [(737, 0, 0), (0, 737, 7), (0, 737, 0), (0, 737, 0)]

    found = agreement(run, resamples=0)["judges"]
    gpt4 = found["gpt-4"]["acceptable"]
    assert gpt4["n"] == 730
    assert gpt4["excluded"] == {"no_judge_value": 7}
    assert gpt4["cohen_kappa"] == pytest.approx(0.694113, abs=5e-7)
    assert gpt4["exact"] == pytest.approx(0.847945, abs=5e-7)
    assert gpt4["confusion"] == [[279, 43], [68, 340]]

    viewer = APIClient()
    viewer.force_authenticate(make_user(Role.VIEWER, run.project))
    assert viewer.get(f"/api/v1/runs/{run.pk}/agreement/?resamples=0").json()["judges"] == found

    reference = json.loads((sample_data / "reference_values.json").read_text())["openqa_nq301"]["judges"]
    for name in JUDGES:
        ours, theirs = found[name]["acceptable"], reference[name]["metrics"]
        assert ours["n"] == reference[name]["n"]
        pairs = {"cohen_kappa": "kappa_unweighted", "bias": "bias", "mae": "mae", "spearman": "spearman"}
        for mine, name_there in pairs.items():
            assert ours[mine] == pytest.approx(theirs[name_there]["value"], abs=1e-6), (name, mine)


def test_intervals_over_questions_are_close_to_the_reference(openqa: tuple[Run, dict[str, Path]]) -> None:
    run, files = openqa
    imported(run, files["human"], files["gpt-4"])
    low, high = agreement(run, resamples=1000, seed=3)["judges"]["gpt-4"]["acceptable"]["intervals"]["cohen_kappa"]
    assert low == pytest.approx(0.618546, abs=0.015)
    assert high == pytest.approx(0.758039, abs=0.015)


def test_annotators_with_gaps_agree_as_published(openqa: tuple[Run, dict[str, Path]]) -> None:
    run, files = openqa
    imported(run, files["annotators"])
    experts = agreement(run, resamples=0)["experts"]["acceptable_to_annotator"]
    assert experts["krippendorff_alpha_nominal"] == pytest.approx(0.762862, abs=1e-6)
    assert experts["pairs"]["annotator1-annotator2"]["n"] == 732
    assert experts["pairs"]["annotator1-annotator2"]["cohen_kappa"] == pytest.approx(0.776392, abs=1e-6)


def test_importing_again_stores_nothing_twice(openqa: tuple[Run, dict[str, Path]]) -> None:
    run, files = openqa
    imported(run, files["human"], files["gpt-4"])
    before = Rating.objects.count(), Score.objects.count()
    done = imported(run, files["human"], files["gpt-4"])
    assert [(d["human"], d["judge"], d["unchanged"]) for d in done] == [(0, 0, 737), (0, 0, 737)]
    assert (Rating.objects.count(), Score.objects.count()) == before


def test_a_dry_run_stores_nothing(openqa: tuple[Run, dict[str, Path]]) -> None:
    run, files = openqa
    (done,) = imported(run, files["human"], dry_run=True)
    assert done["human"] == 737
    assert not Rating.objects.exists()
