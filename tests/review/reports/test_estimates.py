"""Score estimates in the ``corrected_scores`` command and REST."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Answer, Run, Score
from evaluation.profiles.spec import shipped_profiles
from evaluation.storage import append_only
from review.reports.estimates import ESTIMATE_KEYS, correction_sheet
from review.reports.inputs import load_inputs
from tests.factories import make_profile, make_queue, make_user
from tests.review.builders import (
    FAILED,
    answer_rows,
    answers_to,
    assignment_of,
    draw_into,
    metric,
    queue_for,
    rate,
    rate_each,
    run_over,
)
from tests.review.clients import Caller
from tests.review.sampled import fill, rate_all, rate_half, rate_other_parts

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """40 answers, judged 5 and 3 by turns of two; for the 20 drawn, experts give 4 where the judge gives 5, else 2."""
    scored_run = fill(run_over(answers_to(["a"] * 20 + ["b"] * 20)), [5, 5, 3, 3] * 10)
    rate_half(scored_run, [4, 2] * 10)
    return scored_run


def run_command(*arguments: str) -> str:
    output = StringIO()
    call_command("corrected_scores", *arguments, stdout=output)
    return output.getvalue()


def estimates_json(run: Run, *arguments: str) -> Any:
    return json.loads(run_command(str(run.pk), "--format", "json", *arguments))


def test_the_judge_is_one_level_too_generous_everywhere(run: Run) -> None:
    report = estimates_json(run)
    # judged (5 + 3)/2 = 4, the experts always one below; overall .75 + .25 x 4/5 = .95 and .75 + .25 x 3/5 = .90
    assert report["metrics"]["correctness"]["judge_only"]["value"] == 4.0
    assert report["metrics"]["correctness"]["corrected"]["value"] == pytest.approx(3.0)
    assert report["overall"]["judge_only"]["value"] == pytest.approx(0.95)
    assert report["overall"]["corrected"]["value"] == pytest.approx(0.90)
    # half of the answers one level lower: (20 x 4 + 20 x 3) / 40 = 3.5
    assert report["metrics"]["correctness"]["reviewed"]["value"] == pytest.approx(3.5)


def test_every_estimate_is_complete_or_explains_its_absence(run: Run) -> None:
    report = estimates_json(run)
    for estimates in (report["overall"], *report["metrics"].values()):
        for name in ("judge_only", "reviewed", "corrected", "corrected_this_run"):
            assert set(ESTIMATE_KEYS) <= set(estimates[name]) or estimates[name]["withheld"]
    for estimates in (report["overall"], report["metrics"]["correctness"]):
        assert estimates["corrected"]["target"] == "questions_like_these"
        assert estimates["corrected_this_run"]["target"] == "this_run"
    assert report["overall"]["corrected"]["labels"] == 20
    assert report["metrics"]["faithfulness"]["corrected"]["withheld"] == "not_reviewed"


@pytest.mark.parametrize(("on_failure", "given_share"), [("exclude", 1.0), ("zero", 40 / 44)])
def test_answers_that_the_system_did_not_give_leave_a_corrected_score(on_failure: str, given_share: float) -> None:
    answers = answers_to(["a"] * 44)
    graphrag = next(profile for profile in shipped_profiles() if profile.name == "graphrag")
    spec = graphrag.model_dump(mode="json") | {"name": on_failure, "on_failure": on_failure}
    scored_run = run_over(answers, profile=make_profile(answers.project, spec))
    values: list[float | str | None] = [5, 3, 5, 3, FAILED, 5, 3, 5, 3, 5, 3] * 4
    fill(scored_run, values)
    given = answer_rows(scored_run)
    with append_only.suspended():
        for answer, value in zip(given, values, strict=True):
            if value == FAILED:
                Answer.objects.filter(pk=answer.pk).update(status="failed", reason="timeout", text="")
                Score.objects.filter(answer=answer).update(status="failed", reason="upstream: timeout", value=None)
    queue = make_queue(scored_run, strategy="uniform", size=20, metrics=["correctness"])
    sampled = [answer for answer in given if queue.items.filter(answer=answer).exists()]
    experts = [float(values[given.index(answer)] or 0) - 1 for answer in sampled]
    rate_each(queue, [metric("correctness")], sampled, {queue.members.get().reviewer: experts})
    overall = estimates_json(scored_run)["overall"]
    assert overall["judge_only"]["value"] == pytest.approx(given_share * (0.75 + 0.25 * 4 / 5))
    assert overall["corrected"]["value"] == pytest.approx(given_share * (0.75 + 0.25 * 3 / 5))


def test_interval_for_new_questions_is_wider_than_for_this_run(run: Run) -> None:
    overall = estimates_json(run)["overall"]
    narrow, wide = overall["corrected_this_run"], overall["corrected"]
    assert narrow["value"] == wide["value"]
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"] > 0


def test_categories_are_corrected_by_the_same_rules(run: Run) -> None:
    categories = estimates_json(run, "--by", "category")["by_category"]
    assert set(categories) == {"a", "b"}
    # 10 labels of 20 answers: too few by 10; the overall names the part that is missing
    assert categories["a"]["metrics"]["correctness"]["corrected"]["missing"] == {"labels": 10}
    assert categories["a"]["overall"]["corrected"]["withheld"] == "components_withheld"
    assert categories["a"]["metrics"]["correctness"]["reviewed"]["labels"] == 10
    assert "by_category" not in estimates_json(run)


def test_the_overall_score_of_a_large_category_is_corrected() -> None:
    scored_run = fill(run_over(answers_to(["a"] * 80 + ["b"] * 4)), [5, 5, 3, 3] * 21)
    rate_half(scored_run, [4, 2] * 21)
    of_a = correction_sheet(load_inputs(scored_run), by_category=True).by_category["a"]["overall"]
    assert of_a.judge_only.value == pytest.approx(0.95)
    assert of_a.corrected.value == pytest.approx(0.90)
    assert of_a.corrected.extra["labels"] == 40


def test_table_shows_figures_and_missing_ratings(run: Run) -> None:
    text = run_command(str(run.pk))
    assert "overall\tpartly corrected\t0.900" in text
    assert "No expert has rated it yet." in text


def test_unknown_run_is_a_usage_error() -> None:
    with pytest.raises(CommandError) as raised:
        run_command("999")
    assert raised.value.returncode == 2


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 200), (Role.REVIEWER, 403), (None, 404)])
def test_rest_returns_the_estimates_to_viewers(run: Run, role: Role | None, status: int) -> None:
    client = Caller(make_user(role, run.project))
    response = client.get(f"runs/{run.pk}/correction/?by=category")
    assert response.status_code == status
    if status == 200:
        assert response.json() == estimates_json(run, "--by", "category")
    assert client.get(f"runs/{run.pk}/correction/?by=question").status_code == (400 if status == 200 else status)


def test_census_is_exact_for_this_run_and_has_no_interval_for_others() -> None:
    scored_run = fill(run_over(answers_to(["a"] * 4)), [5] * 4)
    rate_all(scored_run, [4] * 4)
    rate_other_parts(scored_run)
    overall = estimates_json(scored_run)["overall"]
    # .75 + .25 x 4/5
    assert [overall["corrected_this_run"][name] for name in ("value", "low", "high")] == pytest.approx([0.95] * 3)
    assert [overall["corrected"][name] for name in ("low", "high")] == [None, None]
    assert overall["corrected"]["no_interval"] == "no_variation"
    output = StringIO()
    call_command(
        "results",
        str(scored_run.pk),
        "--fail-under",
        "0.9",
        "--allow-undecided",
        "--format",
        "json",
        stdout=output,
        stderr=StringIO(),
    )
    check = json.loads(output.getvalue())["gate"]["checks"][0]
    assert (check["verdict"], check["reason"]) == ("undecided", "no_variation")


def test_interval_holds_at_every_look_while_ratings_come_in() -> None:
    """30 of 40 drawn answers are rated: `any_time` is present until every drawn answer is rated."""
    run = fill(run_over(answers_to(["a"] * 80)), [5, 3] * 40)
    reviewer, row = make_user(), metric("correctness")
    queue = queue_for(run, [row], [reviewer])
    draw_into(queue, run, [("all", 0.5, at < 40) for at in range(80)])
    answers = answer_rows(run)
    for at, answer in enumerate(answers[:30]):
        rate(assignment_of(queue, answer, reviewer, run), row, 4 if at % 3 else 3)
    figure = correction_sheet(load_inputs(run)).estimates["correctness"].corrected_this_run
    ends = figure.extra["any_time"]
    assert ends["labels"] == 30
    assert 1 <= ends["low"] < (figure.low or 0) < (figure.high or 0) < ends["high"] <= 5
    assert "however often you check" in run_command(str(run.pk))
    client = Client()
    client.force_login(make_user("lead", run.project))
    assert "however often you check" in client.get(reverse("run", args=[run.pk])).content.decode()
    for answer in answers[30:40]:
        rate(assignment_of(queue, answer, reviewer, run), row, 4)
    assert "any_time" not in correction_sheet(load_inputs(run)).estimates["correctness"].corrected.extra
