"""J8: runs of one answer, of one category, and judges that say one thing only, through every page and every file: each
figure has an interval, or the reason why there is none, and nothing that is no number is ever shown."""

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


def _kind(value: float) -> str:
    return "good" if value > 2 else "bad"


@pytest.fixture(params=CASES)
def run(request: pytest.FixtureRequest) -> Run:
    """All answers in one category."""
    judge, experts, people = CASES[request.param]
    made = fill(run_over(answers_to(["only"] * len(judge))), judge)
    used = made.judges.get()
    by_judge = {"judge_version_id": used.judge_version_id, "rubric_version_id": used.rubric_version_id}
    kind, yes = metric("kind", "class good|bad"), metric("yes", "bool")
    for answer, value in zip(answer_rows(made), judge, strict=True):
        score(made, answer, kind, _kind(value), **by_judge)
        score(made, answer, yes, float(value > 2), **by_judge)
    for person in range(people):
        for answer, value in zip(answer_rows(made), experts, strict=True):
            imported_rating(answer, metric("correctness"), f"e{person}", value)
            imported_rating(answer, kind, f"e{person}", _kind(value))
            imported_rating(answer, yes, f"e{person}", float(value > 2))
    return made


def again(run: Run) -> Run:
    """The same judge over other answers to the same questions, with the same scores."""
    answers = make_answer_set(run.answer_set.question_set, system="other")
    values = list(run.scores.filter(metric__name="correctness").order_by("id").values_list("value", flat=True))
    return fill(run_over(answers, judge=run.judges.get().judge_version), values)


def pages(run: Run, other: Run) -> Iterator[tuple[str, dict[str, str]]]:
    both = {"runs": f"{run.pk},{other.pk}"}
    for name in ("run", "run-answers", "run-agreement", "run-agreement-intervals", "run-agreement-over-time"):
        yield reverse(name, args=[run.pk]), {}
    yield reverse("run-agreement", args=[run.pk]), {}  # once more, with the intervals
    yield reverse("answer", args=[answer_rows(run)[0].pk]), {}
    yield reverse("judge", args=[run.judges.get().judge_version_id]), {}
    yield reverse("run-compare"), both
    yield reverse("run-compare-answers"), {**both, "question": "q1"}
    yield from ((reverse(name), {}) for name in ("home", "run-list", "judge-list"))
    yield reverse("queue-new"), {"run": str(run.pk)}
    for kind in REPORT_EXPORTS.names:
        yield reverse("api-run-report", args=[run.pk]), {"format": kind}
    gated = {"fail_under": "0.5", "max_drop": "0.1", "baseline": str(other.pk)}
    yield reverse("api-run-report", args=[run.pk]), {"format": "json", **gated}
    yield reverse("api-run-agreement", args=[run.pk]), {}
    yield reverse("api-run-correction", args=[run.pk]), {}
    yield reverse("api-run-compare"), both


def test_no_page_and_no_file_shows_what_is_no_number(run: Run) -> None:
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    for (address, query), language in zip(pages(run, again(run)), cycle(["ko", "en"]), strict=False):
        response = client.get(address, query, headers={"accept-language": language})
        assert response.status_code == 200, (address, query)
        body = b"".join(response.streaming_content) if response.streaming else response.content
        if body[:2] != b"PK":  # a workbook; its cells are those of the CSV
            assert not NO_NUMBER.search(body.decode()), (address, query)


def walked(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, part in value.items():
            yield from walked(part, f"{path}.{key}")
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from walked(part, f"{path}.{at}")


def test_every_figure_of_the_report_has_an_interval_or_the_reason_why_there_is_none(run: Run) -> None:
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    response = client.get(reverse("api-run-report", args=[run.pk]), {"format": "json"})
    report = json.loads(b"".join(response.streaming_content))
    figures = [(path, one) for path, one in walked(report) if {"value", "low", "high", "target"} <= one.keys()]
    assert len(figures) > 10
    for path, one in figures:
        if one["low"] is None or one["high"] is None:
            assert one.get("no_interval"), path
        else:
            assert one["low"] <= one["value"] <= one["high"], path


def test_every_statistic_has_a_value_or_a_reason_and_an_interval_or_a_reason(run: Run) -> None:
    found = cached_agreement(run, resamples=200)
    rated = Rating.objects.exists()
    assert {metric for judge in found["judges"].values() for metric in judge} == (MEASURED if rated else set())
    for judge in found["judges"].values():
        for figures in judge.values():
            for part in (figures, *figures.get("by_category", {}).values()):
                for name in STATISTIC_NAMES:
                    if part[name] is None:
                        assert part["undefined"].get(name), name
                    elif part is figures:
                        assert (name in part["intervals"]) != (f"intervals.{name}" in part["undefined"]), name
                for name, (low, high) in part["intervals"].items():
                    assert low < high, name


def test_a_comparison_of_equal_scores_cannot_tell(run: Run) -> None:
    (told,) = comparison_json(compare([run, again(run)]))["differences"]
    assert told["verdict"]["judge_only"]["verdict"] == "cannot_tell"
    assert told["verdict"]["judge_only"]["reason"] == "no_variation"
