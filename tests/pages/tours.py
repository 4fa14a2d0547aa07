"""Pages that the browser tests open over the demo, and a check that they cover every page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from urllib.parse import urlsplit
from uuid import UUID

from django.test import Client
from django.urls import URLPattern, URLResolver, resolve, reverse

from evaluation.extensions import features
from evaluation.models import Endpoint, JudgeVersion, MetricDefinition, QuestionSet, Run, User
from review.calibration.versions import freeze
from review.evidence.rating_input import RatingInput
from review.models import Assignment, GoldSet, ReviewQueue
from review.ratings.leases import next_assignment
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import escalate, queue_metrics, submit
from tests.factories import make_judge
from tests.installed import merged, sites
from tests.review.builders import imported_rating

#: Addresses that answer a GET and are no page of their own.
NO_PAGES = {
    "run-progress": "a part of the run page",
    "run-agreement-intervals": "a part of the agreement page",
    "run-agreement-over-time": "a part of the agreement page",
    "queue-preview": "a part of the form of a queue",
    "queue-export": "a file",
    "judge-card": "a file",
    "run-report": "a file",
    "run-records": "a file",
    "review-next": "the card of review-item at another address",
    "review-prefetch": "the card of review-item, fetched beforehand",
    **merged("NO_PAGES"),
}


def prepare_tour(users: dict[str, User]) -> None:
    """Add to the demo: a rated item, an escalated one, a comparison, and a gold set with a judge whose prompts are
    calibrated."""
    queue = ReviewQueue.objects.get(example=False)
    assignment = held_assignment(queue, users["reviewer1"])
    ratings = {row.metric.name: RatingInput(value=3) for row in queue_metrics(queue)}
    if submit(assignment, ratings, idempotency_key="tour", by=users["reviewer1"], active_ms=30_000).reveal:
        reveal(assignment)
        finalise(assignment, by=users["reviewer1"])
    escalate(held_assignment(queue, users["reviewer2"]), "Is this still the rule?")
    vector, graph = judged_runs()
    rated_metric = MetricDefinition.objects.filter(name="correctness").latest("pk")
    for number, answer in enumerate(graph.answer_set.answers.order_by("pk")[:12]):
        imported_rating(answer, rated_metric, "a", 1 + number % 5)
    freeze(graph, "Gold", by=users["lead"])
    make_judge(graph.project, "remote", endpoint=Endpoint.objects.create(name="e", base_url="http://127.0.0.1:9/v1"))
    for site in sites():
        if hasattr(site, "prepare"):
            site.prepare(vector, graph, users)
    cache_figures(vector, graph, users["lead"])


def cache_figures(vector: Run, graph: Run, lead: User) -> None:
    """Open the pages of many figures and the parts that they fetch, so that every later visit finds the figures."""
    client = Client()
    client.force_login(lead)
    names = ("run", "run-agreement", "run-agreement-intervals", "run-agreement-over-time")
    for path in (
        *(reverse(name, args=[graph.pk]) for name in names),
        f"{reverse('run-compare')}?runs={vector.pk},{graph.pk}",
    ):
        response = client.get(path)
        assert response.status_code == 200, path


def held_assignment(queue: ReviewQueue, reviewer: User) -> Assignment:
    """Return the item that the reviewer holds."""
    assignment = next_assignment(queue, reviewer)
    assert assignment is not None
    return assignment


def judged_runs() -> tuple[Run, Run]:
    """The demo's judged runs, the better one last."""
    vector, graph = (Run.objects.filter(name__contains=name).latest("pk") for name in ("vector", "graph"))
    return vector, graph


def pages_of_a_lead() -> list[str]:
    """Return the addresses of all pages a lead sees."""
    vector, run = judged_runs()
    answer = run.answer_set.answers.order_by("pk")[0]
    queues = [queue.pk for queue in ReviewQueue.objects.order_by("pk")]
    item_id = Assignment.objects.get(state=Assignment.State.FLAGGED).item_id
    comparison_query = f"runs={vector.pk},{run.pk}"
    return [
        reverse("home"),
        reverse("run-list"),
        reverse("search") + "?q=LRK",
        reverse("run", args=[run.pk]),
        reverse("run-agreement", args=[run.pk]),
        reverse("run-answers", args=[run.pk]),
        f"{reverse('run-compare')}?{comparison_query}",
        f"{reverse('run-compare-answers')}?{comparison_query}&question={answer.question.external_id}",
        f"{reverse('answer', args=[answer.pk])}?run={run.pk}",
        f"{reverse('answer-calls', args=[answer.pk])}?run={run.pk}",
        reverse("judge-list"),
        *(reverse("judge", args=[judge.pk]) for judge in JudgeVersion.objects.order_by("pk")[:1]),
        reverse("calibration-list"),
        reverse("calibration", args=[GoldSet.objects.get().pk]),
        reverse("queue-list"),
        *(reverse(name, args=[pk]) for name in ("queue", "queue-people", "queue-items") for pk in queues),
        reverse("queue-questions", args=[queues[-1]]),
        f"{reverse('queue-new')}?run={run.pk}",
        reverse("adjudication"),
        reverse("adjudication-case", args=[item_id]),
        reverse("adjudication-question", args=[item_id]),
        reverse("adjudication-rubric", args=[item_id, "correctness"]),
        *(page for site in sites() if hasattr(site, "lead_pages") for page in site.lead_pages(vector, run)),
        reverse("run-retrieval", args=[run.pk]),
        reverse("run-standing", args=[run.pk]),
        reverse("intervals"),
        reverse("question-set-list"),
        reverse("question-set", args=[QuestionSet.objects.latest("pk").pk]),
        reverse("set-quality", args=[QuestionSet.objects.latest("pk").pk]),
        reverse("question-set-upload"),
        reverse("evaluation-new"),
    ]


def pages_of_a_reviewer(reviewer: User) -> list[str]:
    """Return the addresses of all pages a reviewer sees."""
    queue = ReviewQueue.objects.get(example=False)
    rated_assignment = Assignment.objects.get(item__queue=queue, reviewer=reviewer, state=Assignment.State.FINISHED)
    return [
        reverse("home"),
        reverse("queue-list"),
        reverse("queue", args=[queue.pk]),
        reverse("review-item", args=[held_assignment(queue, reviewer).pk]),
        reverse("account"),
        reverse("kept"),
        reverse("my-ratings"),
        reverse("review-item", args=[rated_assignment.pk]),
        reverse("review-rerate", args=[rated_assignment.pk]),
        reverse("review-keys"),
        *(page for site in sites() if hasattr(site, "reviewer_pages") for page in site.reviewer_pages(queue.project)),
    ]


def uncovered_pages(paths: Iterable[str], lead: User) -> list[str]:
    """Return names of review routes that answer a GET and are neither opened nor listed in ``NO_PAGES``."""
    opened_routes = {resolve(urlsplit(path).path).url_name for path in paths}
    client = Client()
    client.force_login(lead)
    uncovered = []
    for pattern in addresses():
        if pattern.name in opened_routes or pattern.name in NO_PAGES:
            continue
        arguments = {name: CONVERTER_VALUES.get(type(part).__name__, 0) for name, part in _url_parameters(pattern)}
        acts_only = hasattr(pattern.callback, "acts_only")
        if not acts_only and client.get(reverse(pattern.name, kwargs=arguments)).status_code != 405:
            uncovered.append(str(pattern.name))
    return uncovered


CONVERTER_VALUES = {"StringConverter": "x", "UUIDConverter": UUID(int=0)}


def addresses() -> list[URLPattern]:
    """Return the URL patterns of the review app and of the installed features."""
    modules = ["review.urls", *(feature.urls for feature in features() if feature.urls)]
    return [pattern for module in modules for pattern in flatten(import_module(module).urlpatterns)]


def flatten(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    """Flatten the URL patterns, with those of included modules in place."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from flatten(pattern.url_patterns)
        else:
            yield pattern


def _url_parameters(pattern: URLPattern) -> Iterable[tuple[str, object]]:
    return pattern.pattern.converters.items()
