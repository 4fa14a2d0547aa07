"""The published figures of three data sets come out of ratings imported through the commands."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Run, Score
from review.figure_cache.builders import build_requested
from tests.conversion import klue, llmjudge, openqa, summeval
from tests.factories import make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SIX_DIGITS = 1.01e-6
LOOSELY = 0.025  # intervals depend on the random stream
OUR_NAMES = {
    "kappa_unweighted": "cohen_kappa",
    "kappa_linear": "cohen_kappa_linear",
    "kappa_quadratic": "cohen_kappa_quadratic",
    "within_1": "within_one",
    "alpha_ordinal": "krippendorff_alpha_ordinal",
}


def imported(files: dict[str, Path], ratings: Sequence[str], definitions: Sequence[str]) -> Run:
    """A run over the answers of the files, with their ratings."""
    project = make_project()
    call_command("import_questions", str(files["questions"]), name="published", project=project.name, stdout=StringIO())
    out = StringIO()
    call_command(
        "import_answers", str(files["answers"]), questions="published", system="s", project=project.name, stdout=out
    )
    run = Run.objects.get(pk=re.findall(r"run (\d+)", out.getvalue())[0])
    for name in ratings:
        call_command("import_ratings", str(files[name]), run=run.pk, define=list(definitions), stdout=StringIO())
    return run


def agreement(run: Run, **options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("agreement", run.pk, format="json", stdout=out, **options)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def reference(data: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / "reference_values.json").read_text())[name]
    return found


def check(found: dict[str, Any], wanted: dict[str, Any], interval: str) -> None:
    for name, figure in wanted.items():
        ours = OUR_NAMES.get(name, name)
        assert found[ours] == pytest.approx(figure["value"], abs=SIX_DIGITS), name
        if figure[interval][0] < figure[interval][1]:
            assert found["intervals"][ours] == pytest.approx(figure[interval], abs=LOOSELY), name


def test_33_judges_at_once_and_scores_off_the_scale(sample_data: Path, tmp_path: Path, client: Any) -> None:
    files = llmjudge.convert(sample_data / "llmjudge_dl23", tmp_path)
    run = imported(files, ["human", "judges"], [llmjudge.DEFINITION])
    off = Score.objects.filter(run=run, status="failed", reason__startswith="scale")
    assert sorted(off.values_list("author", flat=True)) == ["RMITIR-llama70B", "h2oloo-zeroshot2"]

    wanted = reference(sample_data, "llmjudge_dl23")
    told = agreement(run, by="category")  # as the page has it: it is worked out once for both
    found = {author: of[llmjudge.METRIC] for author, of in told["judges"].items()}
    assert len(found) == len(wanted["kappa_alpha_all_judges"]) == 33
    for author, figures in wanted["kappa_alpha_all_judges"].items():
        assert found[author]["excluded"].get("judge_off_scale", 0) == figures["out_of_range"], author
        for name in ("kappa_unweighted", "kappa_quadratic", "alpha_ordinal", "mae", "bias"):
            assert found[author][OUR_NAMES.get(name, name)] == pytest.approx(figures[name], abs=SIX_DIGITS), author
    for author, figures in wanted["judges"].items():
        assert found[author]["confusion"] == figures["confusion"]["matrix"]
        for name, figure in figures["metrics"].items():
            ours = found[author]["intervals"][OUR_NAMES.get(name, name)]
            low, high = figure["ci_cluster"]
            # twelve queries: the ends of resamples differ by their own noise
            assert ours == pytest.approx([low, high], abs=0.02 + 0.15 * (high - low)), (author, name)

    client.force_login(make_user(Role.VIEWER, run.project))
    assert client.get(reverse("run-agreement", args=[run.pk])).status_code == 200
    build_requested()  # what a worker does: there is too much of it to be worked out while somebody waits
    page = client.get(reverse("run-agreement", args=[run.pk]))
    assert page.content.decode().count("Pictures: experts and ") == 33


@pytest.mark.parametrize("judge", openqa.JUDGES)
def test_every_figure_of_the_judges_of_answers(sample_data: Path, tmp_path: Path, judge: str) -> None:
    files = openqa.convert(sample_data / "openqa_nq301", tmp_path)
    run = imported(files, ["human", judge], openqa.DEFINITIONS)
    wanted = reference(sample_data, "openqa_nq301")["judges"][judge]
    found = agreement(run, resamples=1000)["judges"][judge]["acceptable"]
    assert (found["n"], found["excluded"].get("no_judge_value", 0)) == (wanted["n"], wanted["unparsed"])
    check(found, wanted["metrics"], "ci_cluster")
    for level, alpha in wanted["krippendorff_judge_vs_human_rounded"].items():
        check(found, {f"krippendorff_alpha_{level}": alpha}, "ci_cluster")
    for name in ("precision", "recall", "f1", "balanced_accuracy"):
        assert found[name] == pytest.approx(wanted["binary"][name], abs=SIX_DIGITS)


def test_the_alpha_of_annotators_with_gaps_has_the_published_interval(sample_data: Path, tmp_path: Path) -> None:
    run = imported(openqa.convert(sample_data / "openqa_nq301", tmp_path), ["annotators"], openqa.DEFINITIONS)
    wanted = reference(sample_data, "openqa_nq301")["inter_annotator"]["krippendorff_alpha"]
    found = agreement(run, resamples=1000)["experts"]["acceptable_to_annotator"]
    check(found, {"krippendorff_alpha_nominal": wanted}, "ci_cluster")


def test_three_experts_of_summaries(sample_data: Path, tmp_path: Path) -> None:
    files = summeval.convert(sample_data / "summeval_human", tmp_path)
    run = imported(files, ["experts"], summeval.DEFINITIONS)
    experts = agreement(run, resamples=1000)["experts"]
    for dimension, wanted in reference(sample_data, "summeval")["inter_annotator"].items():
        found = experts[f"summary_{dimension}"]
        for level, alpha in wanted["krippendorff_alpha"].items():
            check(found, {f"krippendorff_alpha_{level}": alpha}, "ci_cluster")
        assert found["fleiss_kappa"] == pytest.approx(wanted["irrCAC"]["fleiss_kappa"], abs=SIX_DIGITS)
        assert found["gwet_ac1"] == pytest.approx(wanted["irrCAC"]["gwet_ac1"], abs=SIX_DIGITS)
        assert found["gwet_ac2"] == pytest.approx(wanted["irrCAC"]["gwet_ac2_quadratic"], abs=SIX_DIGITS)
        for pair, figures in wanted["pairwise"].items():
            for name, value in figures.items():
                ours = {"unweighted": "cohen_kappa", "within_1": "within_one"}.get(name, name)
                ours = f"cohen_kappa_{name}" if name in {"linear", "quadratic"} else ours
                assert found["pairs"][pair][ours] == pytest.approx(value, abs=SIX_DIGITS), (pair, name)


def test_seventeen_annotators_in_changing_groups(sample_data: Path, tmp_path: Path) -> None:
    files = klue.convert(sample_data / "klue_sts_ko", tmp_path)
    wanted = reference(sample_data, "klue_sts_ko")
    found = agreement(imported(files, ["annotators"], [klue.DEFINITION]), resamples=1000)["experts"][klue.METRIC]
    assert (found["ratings"], len(found["raters"])) == (wanted["ratings"], wanted["annotators"])
    for level, alpha in wanted["krippendorff_alpha"].items():
        check(found, {f"krippendorff_alpha_{level}": alpha}, "ci_iid")
