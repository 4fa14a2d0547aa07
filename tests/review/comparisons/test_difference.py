"""Two runs question by question, and many in order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO

import pytest
from django.core.management import call_command

from evaluation.core.roles import Role
from evaluation.core.samples import QuestionSpec
from evaluation.models import JudgeVersion, QuestionSet, Run
from evaluation.worker.lifecycle import RunConfig
from review.comparisons.comparison import compare, comparison_json
from review.comparisons.difference import difference
from review.comparisons.values import load_sides
from review.comparisons.verdict import judge_only_verdict
from review.models import Exposure
from review.reports.figure import plain
from review.statistics.paired_tests.gate import DifferenceVerdict
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_queue, make_user, unique
from tests.review.builders import FAILED, answer_rows, imported_rating, metric, run_over, score, score_all
from tests.review.clients import Caller
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db


def questions(count: int) -> QuestionSet:
    specs = [QuestionSpec(id=f"q{n}", category="a", text=f"Question {n}?") for n in range(1, count + 1)]
    return make_question_set(make_project(), specs)


def judge_of(asked: QuestionSet) -> JudgeVersion:
    """The one judge of the set's project."""
    return JudgeVersion.objects.filter(project=asked.project).first() or make_judge(asked.project)


def a_run(asked: QuestionSet, correctness: Sequence[float | str], judge: JudgeVersion | None = None) -> Run:
    """A run over new answers of a new system; everything but correctness is perfect."""
    texts = [f"{unique('system')} says {n}" for n in range(asked.questions.count())]
    return fill(run_over(make_answer_set(asked, texts=texts), judge=judge or judge_of(asked)), correctness)


@pytest.fixture
def pair() -> tuple[Run, Run]:
    asked = questions(5)
    return a_run(asked, [3, 3, 4, 5, 5]), a_run(asked, [5, 4, 4, 5, 3])


def test_the_difference_is_the_second_run_minus_the_first(pair: tuple[Run, Run]) -> None:
    (found,) = compare(pair).differences
    correctness = next(one for one in found.metrics if one.name == "correctness")
    # differences 2, 1, 0, 0, -2: mean 0.2; squares 9 - 5 x .04 = 8.8, x 5/4 / 25 = 0.44
    assert correctness.paired is not None
    assert correctness.paired.value == pytest.approx(0.2)
    assert correctness.paired.high == pytest.approx(0.2 + 2.776445 * 0.44**0.5, rel=1e-5)
    assert (correctness.paired.wins, correctness.paired.losses, correctness.paired.ties) == (2, 1, 2)
    # the overall score moves by .25 / 5 of it; all other parts are equal
    assert found.overall is not None
    assert found.overall.value == pytest.approx(0.2 * 0.05)
    assert found.overall.high == pytest.approx((0.2 + 2.776445 * 0.44**0.5) * 0.05, rel=1e-5)
    assert found.weight == pytest.approx(1.0)
    assert found.differs == {}
    assert [one.question_id for one in found.worse] == ["q5"]
    assert [one.question_id for one in found.better] == ["q1", "q2"]


def test_the_overall_difference_is_that_of_the_headlines_when_nothing_failed(pair: tuple[Run, Run]) -> None:
    found = compare(pair)
    first, second = (side.report.overall.judge_only.value for side in found.sides)
    assert found.differences[0].overall is not None
    assert found.differences[0].overall.value == pytest.approx((second or 0) - (first or 0))


def test_a_question_that_failed_in_one_run_is_compared_in_neither() -> None:
    asked = questions(3)
    found = compare([a_run(asked, [3, 3, 3]), a_run(asked, [4, 4, FAILED])]).differences[0]
    correctness = next(one for one in found.metrics if one.name == "correctness")
    assert correctness.paired is not None
    assert (correctness.paired.value, correctness.paired.n, correctness.paired.only_baseline) == (1.0, 2, 1)
    assert correctness.paired.low is None  # the same everywhere: nothing tells how it would vary


def test_yes_no_metrics_count_gains_and_losses() -> None:
    asked = questions(4)
    hits = [[1, 0, 0, 0], [1, 1, 1, 0]]
    runs = [run_over(make_answer_set(asked), judge=judge_of(asked)) for _ in hits]
    for run, values in zip(runs, hits, strict=True):
        score_all(run, {"keyword_hit": values})
    (hit,) = (one for one in compare(runs).differences[0].metrics if one.name == "keyword_hit")
    assert hit.passes is not None
    # two gained, none lost: 2 x 1/4
    assert (hit.passes.gained, hit.passes.lost, hit.passes.p_value) == (2, 0, 0.5)
    # differences 0, 1, 1, 0: mean 1/2, squares of their deviations 4 x 1/4, variance 1/3, error sqrt(1/12); t = sqrt(3)
    # with 3 degrees of freedom, p = 0.1817; the overall difference is of the same hits alone: without it no test
    assert hit.paired is not None
    assert hit.paired.deviation is not None
    assert hit.paired.deviation.p_value == pytest.approx(0.1817, abs=5e-4)
    assert not hit.tested


def test_less_is_better_where_the_metric_says_so() -> None:
    asked = questions(2)
    runs = [run_over(make_answer_set(asked), judge=judge_of(asked)) for _ in range(2)]
    for run, seconds in zip(runs, ([1.0, 2.0], [3.0, 5.0]), strict=True):
        score_all(run, {"latency": seconds})
    (latency,) = compare(runs).differences[0].metrics
    assert latency.lower_is_better
    assert latency.paired is not None
    assert (latency.paired.value, latency.paired.wins, latency.paired.losses) == (2.5, 0, 2)


def test_differing_versions_are_flagged() -> None:
    asked = questions(2)
    one, other = a_run(asked, [3, 4]), a_run(asked, [3, 4], make_judge(asked.project))
    Run.objects.filter(pk=other.pk).update(config=RunConfig(k=7).model_dump(mode="json"))
    other.refresh_from_db()
    found = compare([one, other]).differences[0]
    assert set(found.differs) == {"judge", "k"}
    assert found.differs["k"] == ["5", "7"]
    assert {m.name: m.differs for m in found.metrics}["correctness"] == ("judge",)
    assert {m.name: m.differs for m in found.metrics}["keyword_hit"] == ()


def test_corrected_scores_are_compared_only_where_both_were_rated() -> None:
    asked = questions(24)
    one, other = a_run(asked, [4] * 24), a_run(asked, [5, 4] * 12)
    assert compare([one, other]).differences[0].corrected.withheld == "not_reviewed"
    for answer in answer_rows(one):
        imported_rating(answer, metric("correctness"), "e1", 4)
    assert compare([one, other]).differences[0].corrected.withheld == "not_both_rated"
    for at, answer in enumerate(answer_rows(other)):
        imported_rating(answer, metric("correctness"), "e1", 2 + at % 2)
    found = compare([one, other]).differences[0]
    # experts: 2.5 of all answers against 4; overall -1.5 / 5 x .25
    assert found.corrected.value == pytest.approx(-0.075)
    assert found.corrected.target == "questions_like_these"
    assert found.corrected.low is not None


def test_several_answers_to_a_question_count_as_one(pair: tuple[Run, Run]) -> None:
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


def test_three_runs_are_ranked_and_the_weights_are_tried() -> None:
    asked = questions(6)
    runs = [a_run(asked, values) for values in ([3] * 6, [5] * 6, [4, 4, 4, 4, 4, 5])]
    found = compare(runs)
    assert found.order is not None
    assert [one.run for one in found.order.ranking.order] == [str(runs[at].pk) for at in (1, 2, 0)]
    assert found.order.sensitivity is not None
    assert found.order.sensitivity.holds == 1.0  # only correctness differs, so that its weight changes nothing
    assert len(found.differences) == 2


def test_the_command_tells_the_same_as_json_and_as_tables(pair: tuple[Run, Run]) -> None:
    out = StringIO()
    call_command("compare", *(str(run.pk) for run in pair), "--format", "json", stdout=out)
    found = json.loads(out.getvalue())
    assert found["score"] == "judge_only"
    (one,) = found["differences"]
    assert (one["run"], one["baseline"]) == (pair[1].pk, pair[0].pk)
    assert one["overall"]["value"] == pytest.approx(0.01)
    assert one["metrics"]["correctness"]["difference"]["target"] == "questions_like_these"
    assert found["ranking"]["order"] == []  # two runs have a difference and no ranking
    text = StringIO()
    call_command("compare", *(str(run.pk) for run in pair), stdout=text)
    assert "overall\t+0.010" in text.getvalue()


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 200), (Role.REVIEWER, 403), (None, 404)])
def test_rest_compares_for_whoever_may_see_all_of_the_runs(
    pair: tuple[Run, Run], role: Role | None, status: int
) -> None:
    who = Caller(make_user(role, pair[0].project))
    response = who.get(f"runs/compare/?runs={pair[0].pk},{pair[1].pk}")
    assert response.status_code == status


def test_a_reviewer_who_reads_a_comparison_is_recorded(pair: tuple[Run, Run]) -> None:
    person = make_user(Role.LEAD, pair[0].project)
    make_queue(pair[1], [person], metrics=["correctness"])
    Caller(person).get(f"runs/compare/?runs={pair[0].pk},{pair[1].pk}")
    assert Exposure.objects.filter(user=person, via="comparison").exists()


def test_verdicts_and_intervals_are_those_of_the_tests_in_order() -> None:
    """Four runs against the first: every interval is wider than alone, and a verdict is what the wider one says."""
    asked = questions(30)
    base = [3, 4, 2, 5, 3] * 6
    runs = [a_run(asked, base)]
    for start in range(4):
        runs.append(a_run(asked, [min(5, value + (at % 4 == start)) for at, value in enumerate(base)]))
    found = compare(runs)
    assert (found.family.size, found.family.level) == (4, 0.0125)
    for one, run in zip(found.differences, load_sides(runs)[1:], strict=True):
        alone = difference(run, found.sides[0])
        assert one.overall is not None
        assert alone.overall is not None
        assert one.overall.confidence == found.family.confidence
        assert (one.overall.low or 0) < (alone.overall.low or 0)
        sure = judge_only_verdict(one).verdict is not DifferenceVerdict.CANNOT_TELL
        assert sure == (one.p_family is not None and one.p_family <= 0.05)
        assert {metric.tested for metric in one.metrics if metric.name == "correctness"} == {sure}
    told = comparison_json(found)
    assert told["family"] == {"size": found.family.size, "error": 0.05, "level_of_each": plain(found.family.level)}
    assert [set(row) for row in told["ranking"]["order"]] == [{"run", "mean", "places"}] * 5
    assert "holds" not in told["ranking"]
    assert all(1 <= place["places"][0] <= place["places"][1] <= 5 for place in told["ranking"]["order"])


@pytest.mark.parametrize(("better", "tested"), [(3, False), (24, True)])
def test_metrics_have_a_verdict_only_where_the_overall_score_differs(better: int, tested: bool) -> None:
    asked, base = questions(30), [3, 4, 2, 4, 3] * 6
    runs = [a_run(asked, base), a_run(asked, [value + (at < better) for at, value in enumerate(base)])]
    told = comparison_json(compare(runs))

    assert told["family"] == {"size": 1, "error": 0.05, "level_of_each": 0.05}
    (one,) = told["differences"]
    assert one["verdict"]["judge_only"]["verdict"] == ("better" if tested else "cannot_tell")
    metric = one["metrics"]["correctness"]
    assert (metric["tested"], metric["p_family"] is not None) == (tested, tested)
    assert metric["difference"]["low"] is not None
