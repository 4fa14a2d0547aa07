"""Imported judges are judges: their scores are the run's values where it has no judge of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from django.test import Client

from evaluation.judges.shipped import profile_row
from evaluation.models import ImportedJudge, Run
from evaluation.scoring.scores import counting_scores
from review.comparisons.difference import difference
from review.comparisons.gates import run_gate
from review.comparisons.values import differing_versions, load_sides
from review.evidence.scorers import answer_scores
from review.queues.draws import draw_strata, make_draw
from review.queues.planning import next_review
from review.ratings.import_files import ImportedRatings, import_ratings
from review.reports.estimates import correction_sheet
from review.reports.figure import Figure, why_withheld
from review.reports.gate import GateRequest
from review.reports.inputs import load_inputs
from review.statistics.sampling.member import Strategy
from tests.factories import make_user
from tests.review.builders import answer_rows, answers_to, make_report, metric, run_over, score_all
from tests.review.sampled import OTHERS

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[3] / "docs"

#: Judge, expert, answers: the first example of docs/correction.md.
REGRESSION = [(0, 0, 8), (0, 1, 2), (1, 0, 2), (1, 1, 8), (0, None, 6), (1, None, 14)]


def row(at: int, value: Any, rater: str = "judge", author: str = "gpt@1", name: str = "tone", **more: Any) -> Any:
    return {"question_id": f"q{at}", "metric": name, "value": value, "rater": rater, "author": author} | more


def bring(run: Run, rows: Sequence[dict[str, Any]], sampled: str = "unknown", scale: str = "bool") -> ImportedRatings:
    names = {one["metric"] for one in rows} - OTHERS.keys() - {"correctness"}
    data = "".join(json.dumps(one) + "\n" for one in rows).encode()
    return import_ratings(run, data, "r.jsonl", [f"{name}={scale}" for name in names], sampled)


def told(table: Sequence[tuple[int, int | None, int]], **more: Any) -> list[dict[str, Any]]:
    """The rows of a table of judge, expert and number of answers."""
    each = [(judge, expert) for judge, expert, count in table for _ in range(count)]
    judge = [row(at, said) for at, (said, _) in enumerate(each, start=1)]
    human = [row(at, said, "human", "e1", **more) for at, (_, said) in enumerate(each, start=1) if said is not None]
    return judge + human


def corrected(run: Run, name: str = "tone") -> Figure:
    return correction_sheet(load_inputs(run)).estimates[name].corrected_this_run


@pytest.fixture
def run() -> Run:
    """40 answers that no judge of ours has scored."""
    return run_over(answers_to(["a"] * 40), judged=False)


def test_the_figures_are_those_of_the_worked_example(run: Run) -> None:
    bring(run, told(REGRESSION), "uniform")
    found = correction_sheet(load_inputs(run)).estimates["tone"]
    assert found.judge_only.value == pytest.approx(0.6)
    assert [
        found.corrected_this_run.value,
        found.corrected_this_run.low,
        found.corrected_this_run.high,
    ] == pytest.approx([0.56, 0.415, 0.705], abs=0.0005)


def cells(text: str, marker: str) -> list[list[str]]:
    block = text.split(f"<!-- {marker} -->\n", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]


@pytest.mark.parametrize("language", [0, 1])
def test_probabilities_in_the_file_give_the_figures_of_the_docs(language: int) -> None:
    text = (DOCS / "correction.md").read_text(encoding="utf-8").split("\n# 한국어\n")[language]
    table = cells(text, "data: imported")
    run = run_over(answers_to(["a"] * sum(int(count) for *_, count in table)), judged=False)
    rows, at = [], 0
    for judge, expert, probability, count in table:
        for _ in range(int(count)):
            at += 1
            rows.append(row(at, int(judge)))
            if expert.isdigit():
                rows.append(row(at, int(expert), "human", "e1", probability=float(probability)))
    bring(run, rows)
    found = correction_sheet(load_inputs(run)).estimates["tone"]
    labels = [int(expert) for _, expert, _, count in table if expert.isdigit() for _ in range(int(count))]
    figures = {
        "judge_only": found.judge_only.value,
        "mean_of_labels": sum(labels) / len(labels),
        "corrected": found.corrected_this_run.value,
        "low": found.corrected_this_run.low,
        "high": found.corrected_this_run.high,
        "lambda": found.corrected_this_run.extra["lambda"],
    }
    printed = {name.strip("`"): shown for name, shown, _ in cells(text, "tested: imported")}
    assert printed == {name: f"{value:.3f}" for name, value in figures.items()}


@pytest.mark.parametrize("probability", [None, 1.0, 0.05])
def test_without_a_sample_of_all_it_says_what_to_do(run: Run, probability: float | None) -> None:
    """20 of 40 rated: with 1 the sum of 1/p is 20 and says nothing of the others, with .05 it is 400, sd 87."""
    bring(run, told(REGRESSION, probability=probability))
    found = corrected(run)
    assert found.withheld == "no_probability"
    assert "import their ratings again and say how" in why_withheld(found)
    assert correction_sheet(load_inputs(run)).estimates["tone"].judge_only.value == pytest.approx(0.6)


def test_ratings_of_everything_are_a_census(run: Run) -> None:
    bring(run, told([(0, 1, 10), (1, 1, 10), (1, 0, 20)]), "all")
    found = corrected(run)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


def test_the_first_judge_of_a_metric_counts_and_no_later_one_moves_a_figure(run: Run) -> None:
    bring(run, told(REGRESSION), "uniform")
    before = corrected(run)
    bring(run, [row(at, 0, author="other@1") for at in range(1, 41)])
    bring(run, [row(at, 5, author="other@1", name="style") for at in range(1, 41)], scale="1..5")
    assert corrected(run) == before
    assert set(ImportedJudge.objects.values_list("metric__name", "author")) == {("tone", "gpt@1"), ("style", "other@1")}
    report = make_report(run)
    assert report.provenance.imported_judges == {"style": "other@1", "tone": "gpt@1"}
    assert report.header.judges == ("other@1", "gpt@1")
    assert {author: of["tone"]["primary"] for author, of in report.agreement["judges"].items()} == {
        "gpt@1": True,
        "other@1": False,
    }
    bring(run, [row(1, 1)])  # a changed verdict supersedes: 25 of 40
    assert correction_sheet(load_inputs(run)).estimates["tone"].judge_only.value == pytest.approx(25 / 40)


def test_of_several_judges_in_one_file_the_first_counts(run: Run) -> None:
    bring(run, [row(at, 1, author=f"{name}@1") for at in range(1, 41) for name in ("m", "a", "z")])
    assert list(ImportedJudge.objects.values_list("author", flat=True)) == ["m@1"]


def test_another_version_of_a_metric_does_not_count_beside_the_first(run: Run) -> None:
    bring(run, told(REGRESSION))
    bring(run, [row(1, 4, author="late@1")], scale="1..5")
    assert list(ImportedJudge.objects.values_list("author", flat=True)) == ["gpt@1"]


def test_a_judge_of_the_run_and_its_rules_stay_what_counts() -> None:
    """Completeness was asked for and has no score yet; faithfulness has one, of no judge in the second run."""
    runs = [run_over(answers_to(["a"]), judged=judged) for judged in (True, False)]
    for run, names in zip(runs, [("completeness", "faithfulness", "keyword_hit"), ("faithfulness",)], strict=True):
        score_all(run, {"faithfulness": [2]})
        bring(run, [row(1, 1, name=name) for name in names])
    assert not ImportedJudge.objects.exists()
    assert {one.author for run in runs for one in counting_scores(run)} == {""}


def judged_elsewhere(run: Run, correctness: Sequence[int]) -> None:
    """Rules as computed here, the judged parts imported; experts rate correctness of every other answer, half
    of them two less, and everything else as the judge."""
    score_all(run, {name: [1.0] * 40 for name in ("keyword_hit", "keyword_coverage", "negative_detection")})
    bring(run, [row(at, value, name="correctness") for at, value in enumerate(correctness, start=1)])
    bring(run, [row(at, 5, name=name) for at in range(1, 41) for name in ("faithfulness", "completeness")])
    human = [row(at, correctness[at - 1] - at % 8 // 4 * 2, "human", "e1", "correctness") for at in range(1, 41, 2)]
    bring(run, human, "uniform")
    for name in ("faithfulness", "completeness"):
        bring(run, [row(at, 5, "human", "e1", name) for at in range(1, 41)], "all")


@pytest.fixture
def whole(run: Run) -> Run:
    """A run with an overall score from an imported judge."""
    judged_elsewhere(run, [5, 5, 3, 3] * 10)
    return run


def test_score_planner_and_gate_work_as_for_scores_made_here(whole: Run) -> None:
    """Overall .75 + .05 x correctness; the judge says 4 in mean, the experts 1 less: .95 and .9."""
    basis = load_inputs(whole)
    found = correction_sheet(basis).estimates["overall"]
    assert [found.judge_only.value, found.corrected.value] == pytest.approx([0.95, 0.9])
    assert not found.corrected.partly_corrected
    plan = next_review(basis)
    assert plan is not None
    assert not plan.guessed
    gate = run_gate(whole, GateRequest(fail_under=0.85))
    assert gate is not None
    assert (str(gate.on), [str(check.verdict) for check in gate.checks]) == ("corrected", ["pass"])


def test_scores_of_answers_follow_from_imported_parts() -> None:
    """RAGAS, all but the first in percent: .3 x .8 + .2 x 1 + .2 x .5 + .3 x .6 = .72; .15 less with .3 at first."""
    answers = answers_to(["a"])
    run = run_over(answers, judged=False, profile=profile_row(answers.project, "ragas"))

    def overall(claim_support: float) -> list[float | None]:
        parts = {"claim_support": claim_support, "context_precision": 100, "context_recall": 50, "answer_relevance": 60}
        data = "".join(json.dumps(row(1, value, name=name)) + "\n" for name, value in parts.items())
        import_ratings(run, data.encode(), "r.jsonl")
        return [one.value for one in counting_scores(run).filter(metric__name="answer_overall")]

    assert overall(0.8) == [pytest.approx(0.72)]
    assert overall(0.3) == [pytest.approx(0.57)]


def test_two_runs_of_one_judge_are_compared_and_of_two_judges_flagged(whole: Run) -> None:
    other = run_over(answers_to(["a"] * 40), judged=False)
    judged_elsewhere(other, [5, 5, 4, 4] * 10)  # the experts 3.5 in mean instead of 3
    ours, baseline = load_sides([other, whole])
    assert "judge" not in differing_versions([ours.report, baseline.report])
    found = difference(ours, baseline)
    (line,) = [one for one in found.metrics if one.name == "correctness"]
    assert line.corrected.value == pytest.approx(0.5)
    assert "judge" not in line.differs

    third = run_over(answers_to(["a"] * 40), judged=False)
    bring(third, [row(at, 4, name="correctness", author="late@1") for at in range(1, 41)])
    (differs,) = [
        one.differs for one in difference(load_sides([third])[0], baseline).metrics if one.name == "correctness"
    ]
    assert "judge" in differs
    assert differing_versions([make_report(third), baseline.report])["judge"][0] == "late@1 (correctness)"


def test_the_run_page_names_it_and_shows_how_far_to_trust_it(whole: Run, client: Client) -> None:
    client.force_login(make_user("lead", whole.project))
    page = client.get(f"/runs/{whole.pk}/", headers={"accept-language": "en"}).content.decode()
    assert "judge: gpt@1" in page
    assert re.search(r"Imported judge.*?gpt@1 · correctness", page, re.DOTALL)
    assert re.search(r'id="trust".*?Correctness', page, re.DOTALL)


def test_rest_says_that_its_values_enter_the_figures(whole: Run, client: Client) -> None:
    bring(whole, [row(1, 1, name="correctness", author="late@1")])
    client.force_login(make_user("lead", whole.project))
    scores = client.get(f"/api/v1/runs/{whole.pk}/answers/").json()["results"][0]["scores"]
    assert {one["author"]: one["counts"] for one in scores if one["metric"] == "correctness"} == {
        "gpt@1": True,
        "late@1": False,
    }


def test_its_values_steer_draws_and_are_what_a_reviewer_is_shown(whole: Run) -> None:
    drawn = make_draw(whole, Strategy.STRATIFIED, 10, 7)
    assert sorted(one.size for one in draw_strata(drawn)) == [20, 20]
    pk = metric("correctness").pk
    assert answer_scores(whole.pk, answer_rows(whole)[2].pk, [pk])[pk].by == "gpt@1"
    assert answer_scores(whole.pk, answer_rows(whole)[2].pk, [pk])[pk].value == 3


def real(rows: Sequence[tuple[str, Any, Any]], scale: str) -> tuple[Figure, float]:
    """Corrected from 200 uniform labels of (group, judge, expert), and the mean of all labels."""
    run = run_over(answers_to(["a"] * len(rows), [group for group, _, _ in rows]), judged=False)
    picked = Random(1).sample(range(len(rows)), 200)
    human = [row(at + 1, rows[at][2], "human", "e1") for at in picked]
    bring(run, [row(at, said) for at, (_, said, _) in enumerate(rows, start=1)] + human, "uniform", scale)
    return corrected(run), fmean(truth for *_, truth in rows)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_judge_of_real_passages(sample_data: Path) -> None:
    """llmjudge_dl23, 2,012 pairs, one of its judges off the scale in one place."""
    rows = read(sample_data / "llmjudge_dl23" / "judgements.jsonl")
    found, truth = real([(one["query_id"], one["judges"]["RMITIR-llama70B"], one["human"]) for one in rows], "0..3")
    assert found.low is not None
    assert found.high is not None
    assert found.low <= truth <= found.high
    assert found.extra["effective_labels"] > 200


def test_a_judge_of_real_answers(sample_data: Path) -> None:
    """openqa_nq301, 737 answers: GPT-4's verdicts beside the annotators'."""
    rows = read(sample_data / "openqa_nq301" / "items.jsonl")
    said = [(one["question_id"], one["judges"]["gpt-4"]["verdict"], one["human"]["acceptable"]) for one in rows]
    found, truth = real([one for one in said if None not in one], "bool")
    assert found.low is not None
    assert found.high is not None
    assert found.low <= truth <= found.high
    assert found.extra["effective_labels"] > 200


def test_an_annotator_in_the_place_of_a_judge_on_a_skewed_scale(sample_data: Path) -> None:
    """summeval_human has no judge: its first expert's fluency stands for one, the second's is to be found."""
    rows = read(sample_data / "summeval_human" / "items.jsonl")
    found, truth = real([(one["doc_id"], *one["human"]["fluency"][:2]) for one in rows], "1..5")
    assert found.low is not None
    assert found.high is not None
    assert found.low <= truth <= found.high
