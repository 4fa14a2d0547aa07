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
def stored_run(
    django_db_setup: None, django_db_blocker: Any, sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, dict[str, Path]]]:
    """The key of the run over the answers, and the rating files: imported once for all tests of the file, each of which
    takes back its own changes alone."""
    files = convert(sample_data / "openqa_nq301", tmp_path_factory.mktemp("openqa"))
    with django_db_blocker.unblock(), transaction.atomic():
        yield import_all(files), files
        transaction.set_rollback(True)


@pytest.fixture
def openqa(stored_run: tuple[int, dict[str, Path]]) -> tuple[Run, dict[str, Path]]:
    """The run over the answers, and the rating files."""
    number, files = stored_run
    return Run.objects.get(pk=number), files


def import_all(files: dict[str, Path]) -> int:
    """Import the questions and the answers through the commands; the run's key."""
    project = make_project()
    call_command("import_questions", str(files["questions"]), name="openqa", project=project.name, stdout=StringIO())
    output = StringIO()
    options = {"questions": "openqa", "system": "twelve systems", "project": project.name}
    call_command("import_answers", str(files["answers"]), **options, stdout=output)
    (number,) = re.findall(r"run (\d+)", output.getvalue())
    return int(number)


def import_rating_files(run: Run, *paths: Path, **options: Any) -> list[dict[str, Any]]:
    results = []
    for path in paths:
        output = StringIO()
        call_command(
            "import_ratings", str(path), run=run.pk, define=list(DEFINITIONS), format="json", stdout=output, **options
        )
        results.append(json.loads(output.getvalue()))
    return results


def run_agreement_command(run: Run, **options: Any) -> dict[str, Any]:
    output = StringIO()
    call_command("agreement", run.pk, format="json", stdout=output, **options)
    report: dict[str, Any] = json.loads(output.getvalue())
    return report


def test_kappa_and_exact_agreement_of_three_judges_match_published_values(
    openqa: tuple[Run, dict[str, Path]], sample_data: Path
) -> None:
    run, files = openqa
    summaries = import_rating_files(run, files["human"], *(files[name] for name in JUDGES))
    assert [(d["human"], d["judge"], d["failed"]) for d in summaries] == [
        (737, 0, 0),
        (0, 737, 7),
        (0, 737, 0),
        (0, 737, 0),
    ]

    judges = run_agreement_command(run, resamples=0)["judges"]
    gpt4 = judges["gpt-4"]["acceptable"]
    assert gpt4["n"] == 730
    assert gpt4["excluded"] == {"no_judge_value": 7}
    assert gpt4["cohen_kappa"] == pytest.approx(0.694113, abs=5e-7)
    assert gpt4["exact"] == pytest.approx(0.847945, abs=5e-7)
    assert gpt4["confusion"] == [[279, 43], [68, 340]]

    viewer = APIClient()
    viewer.force_authenticate(make_user(Role.VIEWER, run.project))
    assert viewer.get(f"/api/v1/runs/{run.pk}/agreement/?resamples=0").json()["judges"] == judges

    reference = json.loads((sample_data / "reference_values.json").read_text())["openqa_nq301"]["judges"]
    for name in JUDGES:
        computed, published = judges[name]["acceptable"], reference[name]["metrics"]
        assert computed["n"] == reference[name]["n"]
        pairs = {"cohen_kappa": "kappa_unweighted", "bias": "bias", "mae": "mae", "spearman": "spearman"}
        for statistic, published_name in pairs.items():
            assert computed[statistic] == pytest.approx(published[published_name]["value"], abs=1e-6), (name, statistic)


def test_question_level_intervals_are_close_to_the_reference(openqa: tuple[Run, dict[str, Path]]) -> None:
    run, files = openqa
    import_rating_files(run, files["human"], files["gpt-4"])
    low, high = run_agreement_command(run, resamples=1000, seed=3)["judges"]["gpt-4"]["acceptable"]["intervals"][
        "cohen_kappa"
    ]
    assert low == pytest.approx(0.618546, abs=0.015)
    assert high == pytest.approx(0.758039, abs=0.015)


def test_agreement_of_annotators_with_gaps_matches_published_value(openqa: tuple[Run, dict[str, Path]]) -> None:
    run, files = openqa
    import_rating_files(run, files["annotators"])
    experts = run_agreement_command(run, resamples=0)["experts"]["acceptable_to_annotator"]
    assert experts["krippendorff_alpha_nominal"] == pytest.approx(0.762862, abs=1e-6)
    assert experts["pairs"]["annotator1-annotator2"]["n"] == 732
    assert experts["pairs"]["annotator1-annotator2"]["cohen_kappa"] == pytest.approx(0.776392, abs=1e-6)


def test_repeated_import_stores_nothing_twice(openqa: tuple[Run, dict[str, Path]]) -> None:
    run, files = openqa
    import_rating_files(run, files["human"], files["gpt-4"])
    counts = Rating.objects.count(), Score.objects.count()
    summaries = import_rating_files(run, files["human"], files["gpt-4"])
    assert [(d["human"], d["judge"], d["unchanged"]) for d in summaries] == [(0, 0, 737), (0, 0, 737)]
    assert (Rating.objects.count(), Score.objects.count()) == counts


def test_dry_run_stores_nothing(openqa: tuple[Run, dict[str, Path]]) -> None:
    run, files = openqa
    (summary,) = import_rating_files(run, files["human"], dry_run=True)
    assert summary["human"] == 737
    assert not Rating.objects.exists()
