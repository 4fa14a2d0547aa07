"""Runs of one answer, of one category, and judges that give one value only, through every page and file: each figure
has an interval or a reason, and no NaN or infinity is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Run
from review.agreement.run_agreement import cached_agreement
from review.comparisons.comparison import compare, comparison_json
from review.models import Rating
from review.reports.exports import REPORT_EXPORTS
from review.statistics.agreement.catalogue import STATISTIC_NAMES
from tests.factories import make_answer_set, make_user
from tests.review.builders import answer_rows, answers_to, imported_rating, metric, run_over, score
from tests.review.sampled import fill

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MEASURED = {"correctness", "kind", "yes"}
NO_NUMBER = re.compile(r"\b(nan|inf|infinity)\b", re.IGNORECASE)

CASES: dict[str, tuple[Sequence[float], Sequence[float], int]] = {
    # what the judge says, what each expert says of the answers he rates, how many experts
    "one answer": ([3], [], 0),
    "one answer, one expert": ([3], [4], 1),
    "one answer, two experts": ([3], [4], 2),
    "two answers, both alike": ([3, 3], [3, 3], 1),
    "a judge that says one thing": ([3] * 24, [1, 2, 3, 4, 5, 4] * 4, 1),
    "experts who say one thing": ([1, 2, 3, 4, 5, 4] * 4, [3] * 24, 2),
    "judge and experts who say the same one thing": ([3] * 24, [3] * 24, 2),
    "judge and experts who say one other thing each": ([5] * 24, [1] * 24, 2),
    "the lowest of the scale throughout": ([1] * 24, [1] * 24, 1),
}


def _class_name(value: float) -> str:
    return "good" if value > 2 else "bad"


@pytest.fixture(params=CASES)
def run(request: pytest.FixtureRequest) -> Run:
    """A run with all answers in one category."""
    judge, experts, expert_count = CASES[request.param]
    degenerate_run = fill(run_over(answers_to(["only"] * len(judge))), judge)
    run_judge = degenerate_run.judges.get()
    by_judge = {"judge_version_id": run_judge.judge_version_id, "rubric_version_id": run_judge.rubric_version_id}
    class_metric, bool_metric = metric("kind", "class good|bad"), metric("yes", "bool")
    for answer, value in zip(answer_rows(degenerate_run), judge, strict=True):
        score(degenerate_run, answer, class_metric, _class_name(value), **by_judge)
        score(degenerate_run, answer, bool_metric, float(value > 2), **by_judge)
    for expert in range(expert_count):
        for answer, value in zip(answer_rows(degenerate_run), experts, strict=True):
            imported_rating(answer, metric("correctness"), f"e{expert}", value)
            imported_rating(answer, class_metric, f"e{expert}", _class_name(value))
            imported_rating(answer, bool_metric, f"e{expert}", float(value > 2))
    return degenerate_run


def repeat_with_other_answers(run: Run) -> Run:
    """Score other answers to the same questions with the same judge and the same values."""
    answers = make_answer_set(run.answer_set.question_set, system="other")
    values = list(run.scores.filter(metric__name="correctness").order_by("id").values_list("value", flat=True))
    return fill(run_over(answers, judge=run.judges.get().judge_version), values)


def page_queries(run: Run, other_run: Run) -> Iterator[tuple[str, dict[str, str]]]:
    comparison_query = {"runs": f"{run.pk},{other_run.pk}"}
    for name in ("run", "run-answers", "run-agreement", "run-agreement-intervals", "run-agreement-over-time"):
        yield reverse(name, args=[run.pk]), {}
    yield reverse("run-agreement", args=[run.pk]), {}  # once more, with the intervals
    yield reverse("answer", args=[answer_rows(run)[0].pk]), {}
    yield reverse("judge", args=[run.judges.get().judge_version_id]), {}
    yield reverse("run-compare"), comparison_query
    yield reverse("run-compare-answers"), {**comparison_query, "question": "q1"}
    yield from ((reverse(name), {}) for name in ("home", "run-list", "judge-list"))
    yield reverse("queue-new"), {"run": str(run.pk)}
    for format_name in REPORT_EXPORTS.names:
        yield reverse("api-run-report", args=[run.pk]), {"format": format_name}
    gated = {"fail_under": "0.5", "max_drop": "0.1", "baseline": str(other_run.pk)}
    yield reverse("api-run-report", args=[run.pk]), {"format": "json", **gated}
    yield reverse("api-run-agreement", args=[run.pk]), {}
    yield reverse("api-run-correction", args=[run.pk]), {}
    yield reverse("api-run-compare"), comparison_query


def test_pages_and_files_show_no_nan_or_infinity(run: Run) -> None:
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    for (address, query), language in zip(
        page_queries(run, repeat_with_other_answers(run)), cycle(["ko", "en"]), strict=False
    ):
        response = client.get(address, query, headers={"accept-language": language})
        assert response.status_code == 200, (address, query)
        body = b"".join(response.streaming_content) if response.streaming else response.content
        if body[:2] != b"PK":  # a workbook; its cells are those of the CSV
            assert not NO_NUMBER.search(body.decode()), (address, query)


def walk_dicts(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, child in value.items():
            yield from walk_dicts(child, f"{path}.{key}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from walk_dicts(child, f"{path}.{index}")


def test_every_report_figure_has_an_interval_or_a_reason(run: Run) -> None:
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    response = client.get(reverse("api-run-report", args=[run.pk]), {"format": "json"})
    report = json.loads(b"".join(response.streaming_content))
    figures = [
        (path, figure) for path, figure in walk_dicts(report) if {"value", "low", "high", "target"} <= figure.keys()
    ]
    assert len(figures) > 10
    for path, figure in figures:
        if figure["low"] is None or figure["high"] is None:
            assert figure.get("no_interval"), path
        else:
            assert figure["low"] <= figure["value"] <= figure["high"], path


def test_every_agreement_statistic_has_value_and_interval_or_reasons(run: Run) -> None:
    agreement = cached_agreement(run, resamples=200)
    has_ratings = Rating.objects.exists()
    assert {metric for judge in agreement["judges"].values() for metric in judge} == (
        MEASURED if has_ratings else set()
    )
    for judge in agreement["judges"].values():
        for figures in judge.values():
            for breakdown in (figures, *figures.get("by_category", {}).values()):
                for name in STATISTIC_NAMES:
                    if breakdown[name] is None:
                        assert breakdown["undefined"].get(name), name
                    elif breakdown is figures:
                        assert (name in breakdown["intervals"]) != (f"intervals.{name}" in breakdown["undefined"]), name
                for name, (low, high) in breakdown["intervals"].items():
                    assert low < high, name


def test_comparison_of_equal_scores_is_undecided(run: Run) -> None:
    (difference,) = comparison_json(compare([run, repeat_with_other_answers(run)]))["differences"]
    assert difference["verdict"]["judge_only"]["verdict"] == "cannot_tell"
    assert difference["verdict"]["judge_only"]["reason"] == "no_variation"
