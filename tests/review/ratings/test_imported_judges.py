"""Imported judges: their scores are the run's values when it has no judge of its own."""

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
from review.reports.figure import Figure, withheld_reason
from review.reports.gate import GateRequest
from review.reports.inputs import load_inputs
from review.statistics.sampling.member import Strategy
from tests.factories import make_user
from tests.review.builders import answer_rows, answers_to, make_report, metric, run_over, score_all
from tests.review.sampled import OTHER_SCORES

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[3] / "docs"

#: Judge, expert, answers: the first example of docs/correction.md.
REGRESSION = [(0, 0, 8), (0, 1, 2), (1, 0, 2), (1, 1, 8), (0, None, 6), (1, None, 14)]


def row(at: int, value: Any, rater: str = "judge", author: str = "gpt@1", name: str = "tone", **fields: Any) -> Any:
    return {"question_id": f"q{at}", "metric": name, "value": value, "rater": rater, "author": author} | fields


def import_rows(
    run: Run, rows: Sequence[dict[str, Any]], sampled: str = "unknown", scale: str = "bool"
) -> ImportedRatings:
    names = {record["metric"] for record in rows} - OTHER_SCORES.keys() - {"correctness"}
    data = "".join(json.dumps(record) + "\n" for record in rows).encode()
    return import_ratings(run, data, "r.jsonl", [f"{name}={scale}" for name in names], sampled)


def table_rows(table: Sequence[tuple[int, int | None, int]], **fields: Any) -> list[dict[str, Any]]:
    """Rows of a table of judge, expert and number of answers."""
    pairs = [(judge, expert) for judge, expert, count in table for _ in range(count)]
    judge = [row(at, value) for at, (value, _) in enumerate(pairs, start=1)]
    human = [
        row(at, value, "human", "e1", **fields) for at, (_, value) in enumerate(pairs, start=1) if value is not None
    ]
    return judge + human


def corrected_figure(run: Run, name: str = "tone") -> Figure:
    return correction_sheet(load_inputs(run)).estimates[name].corrected_this_run


@pytest.fixture
def run() -> Run:
    """Forty answers that no judge of this site has scored."""
    return run_over(answers_to(["a"] * 40), judged=False)


def test_figures_equal_the_worked_example(run: Run) -> None:
    import_rows(run, table_rows(REGRESSION), "uniform")
    estimates = correction_sheet(load_inputs(run)).estimates["tone"]
    assert estimates.judge_only.value == pytest.approx(0.6)
    assert [
        estimates.corrected_this_run.value,
        estimates.corrected_this_run.low,
        estimates.corrected_this_run.high,
    ] == pytest.approx([0.56, 0.415, 0.705], abs=0.0005)


def cells(text: str, marker: str) -> list[list[str]]:
    block = text.split(f"<!-- {marker} -->\n", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]


@pytest.mark.parametrize("language", [0, 1])
def test_file_probabilities_give_the_figures_of_the_docs(language: int) -> None:
    text = (DOCS / "correction.md").read_text(encoding="utf-8").split("\n# 한국어\n")[language]
    table = cells(text, "data: imported")
    answers = [
        (int(judge), rating, float(probability))
        for judge, probability, *counts in table
        for rating, count in zip((0, 1, None), counts, strict=True)
        for _ in range(int(count))
    ]
    run = run_over(answers_to(["a"] * len(answers)), judged=False)
    rows = [row(at, judge) for at, (judge, _, _) in enumerate(answers, start=1)]
    rows += [
        row(at, rating, "human", "e1", probability=probability)
        for at, (_, rating, probability) in enumerate(answers, start=1)
        if rating is not None
    ]
    import_rows(run, rows)
    estimates = correction_sheet(load_inputs(run)).estimates["tone"]
    figures = {
        "corrected": estimates.corrected_this_run.value,
        "low": estimates.corrected_this_run.low,
        "high": estimates.corrected_this_run.high,
        "lambda": estimates.corrected_this_run.extra["lambda"],
    }
    printed = {name.strip("`"): printed_value for name, printed_value, _ in cells(text, "tested: imported")}
    assert printed == {name: f"{value:.3f}" for name, value in figures.items()}


@pytest.mark.parametrize("probability", [None, 1.0, 0.05])
def test_withheld_figure_explains_how_to_import_a_sample(run: Run, probability: float | None) -> None:
    """20 of 40 are rated. With 1 the sum of 1/p is 20 and says nothing of the others; with .05 it is 400, sd 87."""
    import_rows(run, table_rows(REGRESSION, probability=probability))
    figure = corrected_figure(run)
    assert figure.withheld == "no_probability"
    assert "import their ratings again and state how" in withheld_reason(figure)
    assert correction_sheet(load_inputs(run)).estimates["tone"].judge_only.value == pytest.approx(0.6)


def test_ratings_of_all_answers_are_a_census(run: Run) -> None:
    import_rows(run, table_rows([(0, 1, 10), (1, 1, 10), (1, 0, 20)]), "all")
    figure = corrected_figure(run)
    assert (figure.value, figure.low, figure.high) == (0.5, 0.5, 0.5)


def test_first_judge_of_a_metric_counts_and_later_ones_change_nothing(run: Run) -> None:
    import_rows(run, table_rows(REGRESSION), "uniform")
    before = corrected_figure(run)
    import_rows(run, [row(at, 0, author="other@1") for at in range(1, 41)])
    import_rows(run, [row(at, 5, author="other@1", name="style") for at in range(1, 41)], scale="1..5")
    assert corrected_figure(run) == before
    assert set(ImportedJudge.objects.values_list("metric__name", "author")) == {("tone", "gpt@1"), ("style", "other@1")}
    report = make_report(run)
    assert report.provenance.imported_judges == {"style": "other@1", "tone": "gpt@1"}
    assert report.header.judges == ("other@1", "gpt@1")
    assert {author: of["tone"]["primary"] for author, of in report.agreement["judges"].items()} == {
        "gpt@1": True,
        "other@1": False,
    }
    import_rows(run, [row(1, 1)])  # a changed verdict supersedes: 25 of 40
    assert correction_sheet(load_inputs(run)).estimates["tone"].judge_only.value == pytest.approx(25 / 40)


def test_first_of_several_judges_in_a_file_counts(run: Run) -> None:
    import_rows(run, [row(at, 1, author=f"{name}@1") for at in range(1, 41) for name in ("m", "a", "z")])
    assert list(ImportedJudge.objects.values_list("author", flat=True)) == ["m@1"]


def test_another_version_of_a_metric_does_not_count(run: Run) -> None:
    import_rows(run, table_rows(REGRESSION))
    import_rows(run, [row(1, 4, author="late@1")], scale="1..5")
    assert list(ImportedJudge.objects.values_list("author", flat=True)) == ["gpt@1"]


def test_own_judge_and_rules_of_a_run_take_precedence() -> None:
    """Completeness is requested and has no score yet; faithfulness has one, from no judge in the second run."""
    runs = [run_over(answers_to(["a"]), judged=has_judge) for has_judge in (True, False)]
    for run, names in zip(runs, [("completeness", "faithfulness", "keyword_hit"), ("faithfulness",)], strict=True):
        score_all(run, {"faithfulness": [2]})
        import_rows(run, [row(1, 1, name=name) for name in names])
    assert not ImportedJudge.objects.exists()
    assert {score.author for run in runs for score in counting_scores(run)} == {""}


def import_judge_and_experts(run: Run, correctness: Sequence[int]) -> None:
    """Store rules as computed here and import the judged parts.

    Experts rate correctness of every other answer, half of them two less, and everything else as the judge."""
    score_all(run, {name: [1.0] * 40 for name in ("keyword_hit", "keyword_coverage", "negative_detection")})
    import_rows(run, [row(at, value, name="correctness") for at, value in enumerate(correctness, start=1)])
    import_rows(run, [row(at, 5, name=name) for at in range(1, 41) for name in ("faithfulness", "completeness")])
    human = [row(at, correctness[at - 1] - at % 8 // 4 * 2, "human", "e1", "correctness") for at in range(1, 41, 2)]
    import_rows(run, human, "uniform")
    for name in ("faithfulness", "completeness"):
        import_rows(run, [row(at, 5, "human", "e1", name) for at in range(1, 41)], "all")


@pytest.fixture
def imported_run(run: Run) -> Run:
    """A run with an overall score from an imported judge."""
    import_judge_and_experts(run, [5, 5, 3, 3] * 10)
    return run


def test_score_planner_and_gate_work_with_imported_judges(imported_run: Run) -> None:
    """Overall is .75 + .05 x correctness; the judge gives 4 in mean, the experts 1 less: .95 and .9."""
    basis = load_inputs(imported_run)
    estimates = correction_sheet(basis).estimates["overall"]
    assert [estimates.judge_only.value, estimates.corrected.value] == pytest.approx([0.95, 0.9])
    assert not estimates.corrected.partly_corrected
    plan = next_review(basis)
    assert plan is not None
    assert not plan.guessed
    gate = run_gate(imported_run, GateRequest(fail_under=0.85))
    assert gate is not None
    assert (str(gate.on), [str(check.verdict) for check in gate.checks]) == ("corrected", ["pass"])


def test_answer_scores_follow_from_imported_parts() -> None:
    """RAGAS, all but the first in percent: .3 x .8 + .2 x 1 + .2 x .5 + .3 x .6 = .72; .15 less with .3 at first."""
    answers = answers_to(["a"])
    run = run_over(answers, judged=False, profile=profile_row(answers.project, "ragas"))

    def overall(claim_support: float) -> list[float | None]:
        parts = {"claim_support": claim_support, "context_precision": 100, "context_recall": 50, "answer_relevance": 60}
        data = "".join(json.dumps(row(1, value, name=name)) + "\n" for name, value in parts.items())
        import_ratings(run, data.encode(), "r.jsonl")
        return [score.value for score in counting_scores(run).filter(metric__name="answer_overall")]

    assert overall(0.8) == [pytest.approx(0.72)]
    assert overall(0.3) == [pytest.approx(0.57)]


def test_runs_of_one_judge_are_compared_and_of_two_judges_flagged(imported_run: Run) -> None:
    other_run = run_over(answers_to(["a"] * 40), judged=False)
    import_judge_and_experts(other_run, [5, 5, 4, 4] * 10)  # the experts 3.5 in mean instead of 3
    candidate, baseline = load_sides([other_run, imported_run])
    assert "judge" not in differing_versions([candidate.report, baseline.report])
    comparison = difference(candidate, baseline)
    (line,) = [metric_difference for metric_difference in comparison.metrics if metric_difference.name == "correctness"]
    assert line.corrected.value == pytest.approx(0.5)
    assert "judge" not in line.differs

    third = run_over(answers_to(["a"] * 40), judged=False)
    import_rows(third, [row(at, 4, name="correctness", author="late@1") for at in range(1, 41)])
    (differs,) = [
        metric_difference.differs
        for metric_difference in difference(load_sides([third])[0], baseline).metrics
        if metric_difference.name == "correctness"
    ]
    assert "judge" in differs
    assert differing_versions([make_report(third), baseline.report])["judge"][0] == "late@1 (correctness)"


def test_run_page_names_the_imported_judge_and_its_trust(imported_run: Run, client: Client) -> None:
    client.force_login(make_user("lead", imported_run.project))
    page = client.get(f"/runs/{imported_run.pk}/", headers={"accept-language": "en"}).content.decode()
    assert "judge: gpt@1" in page
    assert re.search(r"Imported judge.*?gpt@1 · correctness", page, re.DOTALL)
    assert re.search(r'id="trust".*?Correctness', page, re.DOTALL)


def test_rest_marks_scores_that_count(imported_run: Run, client: Client) -> None:
    import_rows(imported_run, [row(1, 1, name="correctness", author="late@1")])
    client.force_login(make_user("lead", imported_run.project))
    scores = client.get(f"/api/v1/runs/{imported_run.pk}/answers/").json()["results"][0]["scores"]
    assert {score["author"]: score["counts"] for score in scores if score["metric"] == "correctness"} == {
        "gpt@1": True,
        "late@1": False,
    }


def test_imported_scores_steer_draws_and_are_shown_to_reviewers(imported_run: Run) -> None:
    draw = make_draw(imported_run, Strategy.STRATIFIED, 10, 7)
    assert sorted(stratum.size for stratum in draw_strata(draw)) == [20, 20]
    pk = metric("correctness").pk
    assert answer_scores(imported_run.pk, answer_rows(imported_run)[2].pk, [pk])[pk].by == "gpt@1"
    assert answer_scores(imported_run.pk, answer_rows(imported_run)[2].pk, [pk])[pk].value == 3


def corrected_sample(rows: Sequence[tuple[str, Any, Any]], scale: str) -> tuple[Figure, float]:
    """Corrected figure from 200 uniform labels of (group, judge, expert), and the mean of all labels."""
    run = run_over(answers_to(["a"] * len(rows), [group for group, _, _ in rows]), judged=False)
    positions = Random(1).sample(range(len(rows)), 200)
    human = [row(at + 1, rows[at][2], "human", "e1") for at in positions]
    import_rows(run, [row(at, score) for at, (_, score, _) in enumerate(rows, start=1)] + human, "uniform", scale)
    return corrected_figure(run), fmean(truth for *_, truth in rows)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_judge_of_real_passages(sample_data: Path) -> None:
    """llmjudge_dl23, 2,012 pairs, one of its judges off the scale in one place."""
    rows = read_lines(sample_data / "llmjudge_dl23" / "judgements.jsonl")
    figure, truth = corrected_sample(
        [(record["query_id"], record["judges"]["RMITIR-llama70B"], record["human"]) for record in rows], "0..3"
    )
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low <= truth <= figure.high
    assert figure.extra["effective_labels"] > 200


def test_judge_of_real_answers(sample_data: Path) -> None:
    """openqa_nq301, 737 answers: verdicts of GPT-4 and of the annotators."""
    rows = read_lines(sample_data / "openqa_nq301" / "items.jsonl")
    triples = [
        (record["question_id"], record["judges"]["gpt-4"]["verdict"], record["human"]["acceptable"]) for record in rows
    ]
    figure, truth = corrected_sample([record for record in triples if None not in record], "bool")
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low <= truth <= figure.high
    assert figure.extra["effective_labels"] > 200


def test_annotator_as_judge_on_a_skewed_scale(sample_data: Path) -> None:
    """summeval_human has no judge: the first expert's fluency serves as the judge's, and the second's is estimated."""
    rows = read_lines(sample_data / "summeval_human" / "items.jsonl")
    figure, truth = corrected_sample([(record["doc_id"], *record["human"]["fluency"][:2]) for record in rows], "1..5")
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low <= truth <= figure.high
