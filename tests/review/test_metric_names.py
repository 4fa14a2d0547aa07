"""Metric names: a name that one command prints is accepted by every command."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from evaluation.core.roles import Role
from evaluation.judges.shipped import metric_names
from evaluation.models import Run
from review.decisions.overrides import find_metric, find_run_metric
from review.models import Rating, ReviewQueue
from review.ratings.import_files import import_ratings
from tests.factories import make_profile, make_project, make_scored_run, make_user
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db
SPEC = {
    "name": "named",
    "title": {"en": "Named", "ko": "이름"},
    "reported": ["correctness", "nugget_coverage"],
    "report_names": {"correctness": "avg_correctness", "nugget_coverage": "completeness"},
}


@pytest.fixture
def run() -> Run:
    return make_scored_run(metrics=["correctness"], profile=make_profile(make_project(), SPEC))


def test_report_name_means_the_metric_unless_it_is_scored_itself(run: Run) -> None:
    names = ["avg_correctness", "correctness", "completeness", "nobody"]
    assert metric_names([run], names) == ["correctness", "correctness", "nugget_coverage", "nobody"]
    other_run = make_scored_run(run.answer_set, metrics=["correctness", "completeness"], profile=run.profile_version)
    assert metric_names([other_run], names) == ["correctness", "correctness", "completeness", "nobody"]


def test_queues_are_made_by_report_name_over_command_and_rest(run: Run) -> None:
    make_user(Role.REVIEWER, run.project)
    call_command("make_queue", str(run.pk), "--metrics", "avg_correctness", stdout=StringIO())
    body = {"runs": [run.pk], "metrics": ["avg_correctness"], "size": 2, "strategy": "uniform", "reviewers": []}
    body["reviewers"] = [make_user(Role.REVIEWER, run.project).username]
    response = Caller(make_user(Role.LEAD, run.project)).post("review-queues/", body)
    assert response.status_code == 201, response.content
    for queue in ReviewQueue.objects.all():
        assert [queue_metric.metric.name for queue_metric in queue.metrics.all()] == ["correctness"]


def test_overrides_imports_and_filters_accept_report_names(run: Run) -> None:
    answer = run.answer_set.answers.order_by("pk").first()
    assert answer is not None
    assert find_metric(answer, "avg_correctness") == find_run_metric(run, "correctness")
    row = {"question_id": answer.question.external_id, "metric": "avg_correctness", "value": 2, "rater": "human"}
    import_ratings(run, (json.dumps(row | {"author": "e1"}) + "\n").encode(), "ratings.jsonl")
    assert Rating.objects.get().metric.name == "correctness"
    lead = Caller(make_user(Role.LEAD, run.project))
    for name, count in (("avg_correctness", 1), ("correctness", 1), ("faithfulness", 0)):
        assert len(lead.get(f"ratings/?metric={name}").json()["results"]) == count


def test_queue_takes_the_name_that_results_prints(run: Run) -> None:
    output = StringIO()
    call_command("results", str(run.pk), stdout=output)
    assert "avg_correctness\t" in output.getvalue()
