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


def import_run(files: dict[str, Path], ratings: Sequence[str], definitions: Sequence[str]) -> Run:
    """A run over the answers of the files, with their ratings."""
    project = make_project()
    call_command("import_questions", str(files["questions"]), name="published", project=project.name, stdout=StringIO())
    output = StringIO()
    call_command(
        "import_answers", str(files["answers"]), questions="published", system="s", project=project.name, stdout=output
    )
    run = Run.objects.get(pk=re.findall(r"run (\d+)", output.getvalue())[0])
    for name in ratings:
        call_command("import_ratings", str(files[name]), run=run.pk, define=list(definitions), stdout=StringIO())
    return run


def run_agreement_command(run: Run, **options: Any) -> dict[str, Any]:
    output = StringIO()
    call_command("agreement", run.pk, format="json", stdout=output, **options)
    report: dict[str, Any] = json.loads(output.getvalue())
    return report


def load_reference(data: Path, name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((data / "reference_values.json").read_text())[name]
    return values


def assert_matches_reference(computed: dict[str, Any], expected: dict[str, Any], interval: str) -> None:
    for name, figure in expected.items():
        our_name = OUR_NAMES.get(name, name)
        assert computed[our_name] == pytest.approx(figure["value"], abs=SIX_DIGITS), name
        if figure[interval][0] < figure[interval][1]:
            assert computed["intervals"][our_name] == pytest.approx(figure[interval], abs=LOOSELY), name


def test_33_judges_and_off_scale_scores_match_reference(sample_data: Path, tmp_path: Path, client: Any) -> None:
    files = llmjudge.convert(sample_data / "llmjudge_dl23", tmp_path)
    run = import_run(files, ["human", "judges"], [llmjudge.DEFINITION])
    off_scale_scores = Score.objects.filter(run=run, status="failed", reason__startswith="scale")
    assert sorted(off_scale_scores.values_list("author", flat=True)) == ["RMITIR-llama70B", "h2oloo-zeroshot2"]

    expected = load_reference(sample_data, "llmjudge_dl23")
    report = run_agreement_command(run, by="category")  # as the page has it: it is worked out once for both
    computed = {author: metrics[llmjudge.METRIC] for author, metrics in report["judges"].items()}
    assert len(computed) == len(expected["kappa_alpha_all_judges"]) == 33
    for author, figures in expected["kappa_alpha_all_judges"].items():
        assert computed[author]["excluded"].get("judge_off_scale", 0) == figures["out_of_range"], author
        for name in ("kappa_unweighted", "kappa_quadratic", "alpha_ordinal", "mae", "bias"):
            assert computed[author][OUR_NAMES.get(name, name)] == pytest.approx(figures[name], abs=SIX_DIGITS), author
    for author, figures in expected["judges"].items():
        assert computed[author]["confusion"] == figures["confusion"]["matrix"]
        for name, figure in figures["metrics"].items():
            interval = computed[author]["intervals"][OUR_NAMES.get(name, name)]
            low, high = figure["ci_cluster"]
            # twelve queries: the ends of resamples differ by their own noise
            assert interval == pytest.approx([low, high], abs=0.02 + 0.15 * (high - low)), (author, name)

    client.force_login(make_user(Role.VIEWER, run.project))
    assert client.get(reverse("run-agreement", args=[run.pk])).status_code == 200
    build_requested()  # what a worker does: there is too much of it to be worked out while somebody waits
    page = client.get(reverse("run-agreement", args=[run.pk]))
    assert page.content.decode().count("Plots: experts and ") == 33


@pytest.mark.parametrize("judge", openqa.JUDGES)
def test_all_answer_judge_statistics_match_reference(sample_data: Path, tmp_path: Path, judge: str) -> None:
    files = openqa.convert(sample_data / "openqa_nq301", tmp_path)
    run = import_run(files, ["human", judge], openqa.DEFINITIONS)
    expected = load_reference(sample_data, "openqa_nq301")["judges"][judge]
    computed = run_agreement_command(run, resamples=1000)["judges"][judge]["acceptable"]
    assert (computed["n"], computed["excluded"].get("no_judge_value", 0)) == (expected["n"], expected["unparsed"])
    assert_matches_reference(computed, expected["metrics"], "ci_cluster")
    for level, alpha in expected["krippendorff_judge_vs_human_rounded"].items():
        assert_matches_reference(computed, {f"krippendorff_alpha_{level}": alpha}, "ci_cluster")
    for name in ("precision", "recall", "f1", "balanced_accuracy"):
        assert computed[name] == pytest.approx(expected["binary"][name], abs=SIX_DIGITS)


def test_alpha_of_annotators_with_gaps_has_published_interval(sample_data: Path, tmp_path: Path) -> None:
    run = import_run(openqa.convert(sample_data / "openqa_nq301", tmp_path), ["annotators"], openqa.DEFINITIONS)
    expected_alpha = load_reference(sample_data, "openqa_nq301")["inter_annotator"]["krippendorff_alpha"]
    computed = run_agreement_command(run, resamples=1000)["experts"]["acceptable_to_annotator"]
    assert_matches_reference(computed, {"krippendorff_alpha_nominal": expected_alpha}, "ci_cluster")


def test_agreement_of_three_summary_experts_matches_reference(sample_data: Path, tmp_path: Path) -> None:
    files = summeval.convert(sample_data / "summeval_human", tmp_path)
    run = import_run(files, ["experts"], summeval.DEFINITIONS)
    experts = run_agreement_command(run, resamples=1000)["experts"]
    for dimension, expected in load_reference(sample_data, "summeval")["inter_annotator"].items():
        computed = experts[f"summary_{dimension}"]
        for level, alpha in expected["krippendorff_alpha"].items():
            assert_matches_reference(computed, {f"krippendorff_alpha_{level}": alpha}, "ci_cluster")
        assert computed["fleiss_kappa"] == pytest.approx(expected["irrCAC"]["fleiss_kappa"], abs=SIX_DIGITS)
        assert computed["gwet_ac1"] == pytest.approx(expected["irrCAC"]["gwet_ac1"], abs=SIX_DIGITS)
        assert computed["gwet_ac2"] == pytest.approx(expected["irrCAC"]["gwet_ac2_quadratic"], abs=SIX_DIGITS)
        for pair, figures in expected["pairwise"].items():
            for name, value in figures.items():
                our_name = {"unweighted": "cohen_kappa", "within_1": "within_one"}.get(name, name)
                our_name = f"cohen_kappa_{name}" if name in {"linear", "quadratic"} else our_name
                assert computed["pairs"][pair][our_name] == pytest.approx(value, abs=SIX_DIGITS), (pair, name)


def test_agreement_of_17_annotators_in_changing_groups_matches_reference(sample_data: Path, tmp_path: Path) -> None:
    files = klue.convert(sample_data / "klue_sts_ko", tmp_path)
    expected = load_reference(sample_data, "klue_sts_ko")
    computed = run_agreement_command(import_run(files, ["annotators"], [klue.DEFINITION]), resamples=1000)["experts"][
        klue.METRIC
    ]
    assert (computed["ratings"], len(computed["raters"])) == (expected["ratings"], expected["annotators"])
    for level, alpha in expected["krippendorff_alpha"].items():
        assert_matches_reference(computed, {f"krippendorff_alpha_{level}": alpha}, "ci_iid")
