"""Two runs compared question by question, and rankings of several runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO

import pytest
from django.core.management import call_command

from evaluation.core.metric_specs import Direction
from evaluation.core.roles import Role
from evaluation.core.samples import QuestionSpec
from evaluation.models import JudgeVersion, QuestionSet, Run
from evaluation.worker.lifecycle import RunConfig
from review.comparisons.comparison import compare, comparison_json
from review.comparisons.difference import difference
from review.comparisons.values import load_sides
from review.comparisons.verdict import judge_only_verdict, next_sentence
from review.models import Exposure
from review.reports.figure import plain
from review.statistics.paired_tests.gate import DifferenceVerdict
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_queue, make_user, unique
from tests.review.builders import FAILED, answer_rows, imported_rating, metric, run_over, score, score_all
from tests.review.clients import Caller
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db


def make_questions(count: int) -> QuestionSet:
    specs = [QuestionSpec(id=f"q{n}", category="a", text=f"Question {n}?") for n in range(1, count + 1)]
    return make_question_set(make_project(), specs)


def judge_for(question_set: QuestionSet) -> JudgeVersion:
    return JudgeVersion.objects.filter(project=question_set.project).first() or make_judge(question_set.project)


def create_run(question_set: QuestionSet, correctness: Sequence[float | str], judge: JudgeVersion | None = None) -> Run:
    """Create a run of a new system with these correctness scores; all other metrics are perfect."""
    texts = [f"{unique('system')} says {n}" for n in range(question_set.questions.count())]
    return fill(
        run_over(make_answer_set(question_set, texts=texts), judge=judge or judge_for(question_set)), correctness
    )


@pytest.fixture
def pair() -> tuple[Run, Run]:
    question_set = make_questions(5)
    return create_run(question_set, [3, 3, 4, 5, 5]), create_run(question_set, [5, 4, 4, 5, 3])


def test_difference_is_second_run_minus_first(pair: tuple[Run, Run]) -> None:
    (difference,) = compare(pair).differences
    correctness = next(row for row in difference.metrics if row.name == "correctness")
    # differences 2, 1, 0, 0, -2: mean 0.2; squares 9 - 5 x .04 = 8.8, x 5/4 / 25 = 0.44
    assert correctness.paired is not None
    assert correctness.paired.value == pytest.approx(0.2)
    assert correctness.paired.high == pytest.approx(0.2 + 2.776445 * 0.44**0.5, rel=1e-5)
    assert (correctness.paired.wins, correctness.paired.losses, correctness.paired.ties) == (2, 1, 2)
    # the overall score moves by .25 / 5 of it; all other parts are equal
    assert difference.overall is not None
    assert difference.overall.value == pytest.approx(0.2 * 0.05)
    assert difference.overall.high == pytest.approx((0.2 + 2.776445 * 0.44**0.5) * 0.05, rel=1e-5)
    assert difference.weight == pytest.approx(1.0)
    assert difference.differs == {}
    assert [row.question_id for row in difference.worse] == ["q5"]
    assert [row.question_id for row in difference.better] == ["q1", "q2"]


def test_overall_difference_equals_the_headline_difference_without_failures(pair: tuple[Run, Run]) -> None:
    comparison = compare(pair)
    first, second = (side.report.overall.judge_only.value for side in comparison.sides)
    assert comparison.differences[0].overall is not None
    assert comparison.differences[0].overall.value == pytest.approx((second or 0) - (first or 0))


def test_question_that_failed_in_one_run_is_compared_in_neither() -> None:
    question_set = make_questions(3)
    difference = compare([create_run(question_set, [3, 3, 3]), create_run(question_set, [4, 4, FAILED])]).differences[0]
    correctness = next(row for row in difference.metrics if row.name == "correctness")
    assert correctness.paired is not None
    assert (correctness.paired.value, correctness.paired.n, correctness.paired.only_baseline) == (1.0, 2, 1)
    assert correctness.paired.low is None  # the same everywhere: nothing tells how it would vary


def test_yes_no_metrics_count_gains_and_losses() -> None:
    question_set = make_questions(4)
    hits = [[1, 0, 0, 0], [1, 1, 1, 0]]
    runs = [run_over(make_answer_set(question_set), judge=judge_for(question_set)) for _ in hits]
    for run, values in zip(runs, hits, strict=True):
        score_all(run, {"keyword_hit": values})
    (hit,) = (row for row in compare(runs).differences[0].metrics if row.name == "keyword_hit")
    assert hit.passes is not None
    # two gained, none lost: 2 x 1/4
    assert (hit.passes.gained, hit.passes.lost, hit.passes.p_value) == (2, 0, 0.5)
    # differences 0, 1, 1, 0: mean 1/2, squares of their deviations 4 x 1/4, variance 1/3, error sqrt(1/12); t = sqrt(3)
    # with 3 degrees of freedom, p = 0.1817; the overall difference is of the same hits alone: without it no test
    assert hit.paired is not None
    assert hit.paired.deviation is not None
    assert hit.paired.deviation.p_value == pytest.approx(0.1817, abs=5e-4)
    assert not hit.tested


def test_lower_values_win_where_the_metric_says_so() -> None:
    question_set = make_questions(2)
    runs = [run_over(make_answer_set(question_set), judge=judge_for(question_set)) for _ in range(2)]
    for run, seconds in zip(runs, ([1.0, 2.0], [3.0, 5.0]), strict=True):
        score_all(run, {"latency": seconds})
    (latency,) = compare(runs).differences[0].metrics
    assert latency.direction == Direction.LOWER
    assert latency.paired is not None
    assert (latency.paired.value, latency.paired.wins, latency.paired.losses) == (2.5, 0, 2)


def test_differing_versions_are_flagged() -> None:
    question_set = make_questions(2)
    first_run, second_run = (
        create_run(question_set, [3, 4]),
        create_run(question_set, [3, 4], make_judge(question_set.project)),
    )
    Run.objects.filter(pk=second_run.pk).update(config=RunConfig(k=7).model_dump(mode="json"))
    second_run.refresh_from_db()
    difference = compare([first_run, second_run]).differences[0]
    assert set(difference.differs) == {"judge", "k"}
    assert difference.differs["k"] == ["5", "7"]
    assert {m.name: m.differs for m in difference.metrics}["correctness"] == ("judge",)
    assert {m.name: m.differs for m in difference.metrics}["keyword_hit"] == ()


def test_corrected_scores_are_compared_only_when_both_runs_are_rated() -> None:
    question_set = make_questions(24)
    first_run, second_run = create_run(question_set, [4] * 24), create_run(question_set, [5, 4] * 12)
    assert compare([first_run, second_run]).differences[0].corrected.withheld == "not_reviewed"
    for answer in answer_rows(first_run):
        imported_rating(answer, metric("correctness"), "e1", 4)
    difference = compare([first_run, second_run]).differences[0]
    assert difference.corrected.withheld == "not_both_rated"
    assert next_sentence(difference, {}) == "Next: ask experts to rate the changed answers of both runs."
    for index, answer in enumerate(answer_rows(second_run)):
        imported_rating(answer, metric("correctness"), "e1", 2 + index % 2)
    difference = compare([first_run, second_run]).differences[0]
    # experts: 2.5 of all answers against 4; overall -1.5 / 5 x .25
    assert difference.corrected.value == pytest.approx(-0.075)
    assert difference.corrected.target == "questions_like_these"
    assert difference.corrected.low is not None


def test_several_answers_to_one_question_count_as_one(pair: tuple[Run, Run]) -> None:
    baseline, run = pair
    extra = answer_rows(run)[0]
    extra.pk, extra.sample, extra.text_hash = None, 2, "x"
    extra._state.adding = True
    extra.save()
    judge = run.judges.get()
    score(
        run,
        extra,
        metric("correctness"),
        1,
        judge_version_id=judge.judge_version_id,
        rubric_version_id=judge.rubric_version_id,
    )
    (correctness,) = (m for m in compare([baseline, run]).differences[0].metrics if m.name == "correctness")
    # question 1: (5 + 1) / 2 = 3 instead of 5, so 0 in place of 2
    assert correctness.paired is not None
    assert (correctness.paired.value, correctness.paired.n) == (pytest.approx(-0.2), 5)


def test_three_runs_are_ranked_with_weight_sensitivity() -> None:
    question_set = make_questions(6)
    runs = [create_run(question_set, values) for values in ([3] * 6, [5] * 6, [4, 4, 4, 4, 4, 5])]
    comparison = compare(runs)
    assert comparison.order is not None
    assert [ranked.run for ranked in comparison.order.ranking.order] == [str(runs[index].pk) for index in (1, 2, 0)]
    assert comparison.order.sensitivity is not None
    assert comparison.order.sensitivity.holds == 1.0  # only correctness differs, so that its weight changes nothing
    assert len(comparison.differences) == 2


def test_command_prints_the_comparison_as_json_and_tables(pair: tuple[Run, Run]) -> None:
    out = StringIO()
    call_command("compare", *(str(run.pk) for run in pair), "--format", "json", stdout=out)
    report = json.loads(out.getvalue())
    assert report["score"] == "judge_only"
    (row,) = report["differences"]
    assert (row["run"], row["baseline"]) == (pair[1].pk, pair[0].pk)
    assert row["overall"]["value"] == pytest.approx(0.01)
    assert row["metrics"]["correctness"]["difference"]["target"] == "questions_like_these"
    assert report["ranking"]["order"] == []  # two runs have a difference and no ranking
    text = StringIO()
    call_command("compare", *(str(run.pk) for run in pair), stdout=text)
    assert "overall\t+0.010" in text.getvalue()


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 200), (Role.REVIEWER, 403), (None, 404)])
def test_rest_compares_for_users_who_may_see_all_runs(pair: tuple[Run, Run], role: Role | None, status: int) -> None:
    caller = Caller(make_user(role, pair[0].project))
    response = caller.get(f"runs/compare/?runs={pair[0].pk},{pair[1].pk}")
    assert response.status_code == status


def test_reading_a_comparison_is_recorded_as_exposure(pair: tuple[Run, Run]) -> None:
    person = make_user(Role.LEAD, pair[0].project)
    make_queue(pair[1], [person], metrics=["correctness"])
    Caller(person).get(f"runs/compare/?runs={pair[0].pk},{pair[1].pk}")
    assert Exposure.objects.filter(user=person, via="comparison").exists()


def test_family_intervals_are_wider_and_decide_the_verdicts() -> None:
    """Four runs against the first: every interval is wider than for a single comparison, and it decides the verdict."""
    question_set = make_questions(30)
    base = [3, 4, 2, 5, 3] * 6
    runs = [create_run(question_set, base)]
    for start in range(4):
        runs.append(
            create_run(question_set, [min(5, value + (index % 4 == start)) for index, value in enumerate(base)])
        )
    comparison = compare(runs)
    assert (comparison.family.size, comparison.family.level) == (4, 0.0125)
    for run_difference, run in zip(comparison.differences, load_sides(runs)[1:], strict=True):
        single = difference(run, comparison.sides[0])
        assert run_difference.overall is not None
        assert single.overall is not None
        assert run_difference.overall.confidence == comparison.family.confidence
        assert (run_difference.overall.low or 0) < (single.overall.low or 0)
        is_decided = judge_only_verdict(run_difference).verdict is not DifferenceVerdict.CANNOT_TELL
        assert is_decided == (run_difference.p_family is not None and run_difference.p_family <= 0.05)
        assert {metric.tested for metric in run_difference.metrics if metric.name == "correctness"} == {is_decided}
    report = comparison_json(comparison)
    assert report["family"] == {
        "size": comparison.family.size,
        "error": 0.05,
        "level_of_each": plain(comparison.family.level),
    }
    assert [set(row) for row in report["ranking"]["order"]] == [{"run", "mean", "places"}] * 5
    assert "holds" not in report["ranking"]
    assert all(1 <= place["places"][0] <= place["places"][1] <= 5 for place in report["ranking"]["order"])


@pytest.mark.parametrize(("better_count", "tested"), [(3, False), (24, True)])
def test_metrics_are_tested_only_where_the_overall_score_differs(better_count: int, tested: bool) -> None:
    question_set, base = make_questions(30), [3, 4, 2, 4, 3] * 6
    runs = [
        create_run(question_set, base),
        create_run(question_set, [value + (index < better_count) for index, value in enumerate(base)]),
    ]
    report = comparison_json(compare(runs))

    assert report["family"] == {"size": 1, "error": 0.05, "level_of_each": 0.05}
    (row,) = report["differences"]
    assert row["verdict"]["judge_only"]["verdict"] == ("better" if tested else "cannot_tell")
    metric = row["metrics"]["correctness"]
    assert (metric["tested"], metric["p_family"] is not None) == (tested, tested)
    assert metric["difference"]["low"] is not None
