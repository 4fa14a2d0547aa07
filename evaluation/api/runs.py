"""``runs/``: starting, watching and steering runs, and their results in the shape of source 002."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.accounts.exposure_hook import values_shown
from evaluation.api.endpoints import Endpoint, ListEndpoint, StrictSerializer, person
from evaluation.api.filters import RunFilter
from evaluation.api.pages import PagesInOrder
from evaluation.api.run_json import (
    RunSerializer,
    RunSummarySerializer,
    results_json,
    run_json,
    run_summaries,
    run_summary,
)
from evaluation.core.roles import Action
from evaluation.judging.jury import JuryRule
from evaluation.models import AnswerSet, Run, User
from evaluation.profiles.spec import DEFAULT_PROFILE
from evaluation.runs.asking import Wanted, ask_for_run, cancel_run, pause_run, resume_run
from evaluation.runs.making import QuestionFilter
from evaluation.runs.results import answers_in
from evaluation.work.lifecycle import retry_failed

RUNS = Run.objects.select_related("answer_set__question_set", "profile_version")


class RunRequestSerializer(StrictSerializer):
    """What a run should be. Without ``judge`` the project's own judges, else the offline baseline; null is none."""

    answer_set = serializers.IntegerField(min_value=1)
    profile = serializers.CharField(required=False, default=DEFAULT_PROFILE, max_length=100)
    judge = serializers.CharField(required=False, default="", allow_null=True, allow_blank=True, max_length=120)
    beside = serializers.ListField(
        child=serializers.CharField(max_length=120),
        required=False,
        default=list,
        help_text="further judges, compared only; with `jury` its other members",
    )
    baseline = serializers.BooleanField(required=False, default=True, help_text="the offline baseline judges as well")
    jury = serializers.ChoiceField(choices=[*JuryRule], required=False, default="", allow_blank=True)
    embeddings = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=120,
        help_text="name of an endpoint that embeds, `local` or `none`; else the judge's own, else the first that does",
    )
    metrics = serializers.ListField(
        child=serializers.CharField(max_length=64),
        required=False,
        default=list,
        max_length=100,
        help_text="metrics and criteria beside the profile's",
    )
    name = serializers.CharField(required=False, default="", allow_blank=True, max_length=300)
    categories = serializers.ListField(child=serializers.CharField(max_length=200), required=False, default=list)
    tags = serializers.ListField(child=serializers.CharField(max_length=200), required=False, default=list)
    question_ids = serializers.ListField(child=serializers.CharField(max_length=200), required=False, default=list)
    limit = serializers.IntegerField(required=False, default=None, min_value=1, max_value=10**6, allow_null=True)
    repeat = serializers.IntegerField(required=False, default=1, min_value=1, max_value=50)
    max_concurrency = serializers.IntegerField(required=False, default=32, min_value=1, max_value=1000)
    use_cache = serializers.BooleanField(required=False, default=True)
    batch = serializers.BooleanField(
        required=False, default=False, help_text="hand calls over in batches where the judge's endpoint takes them"
    )
    budget = serializers.DecimalField(
        max_digits=12, decimal_places=4, min_value=0, required=False, default=None, allow_null=True
    )
    start_token = serializers.UUIDField(
        required=False, default=None, allow_null=True, help_text="chosen by the caller; asking twice makes one run"
    )

    def wanted(self) -> Wanted:
        """The request as the lower floors take it."""
        given = dict(self.validated_data)
        questions = QuestionFilter(given["categories"], given["tags"], given["question_ids"], given["limit"])
        names = (
            "profile",
            "judge",
            "jury",
            "baseline",
            "embeddings",
            "name",
            "repeat",
            "max_concurrency",
            "use_cache",
            "batch",
            "budget",
            "start_token",
        )
        several: dict[str, Any] = {name: tuple(given[name]) for name in ("beside", "metrics")}
        return Wanted(questions=questions, **several, **{name: given[name] for name in names})


class RunList(ListEndpoint):
    """Runs, newest first; a POST makes and starts one."""

    rows = RUNS
    serializer_class = RunSummarySerializer
    filterset_class = RunFilter

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page of summaries."""
        runs = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(run_summaries(runs, request))

    @extend_schema(request=RunRequestSerializer, responses={202: RunSummarySerializer})
    def post(self, request: Request) -> Response:
        """Make and start a run: 202 with its id, status, progress and links."""
        asked = RunRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        answers = fetch(
            AnswerSet.objects.select_related("project", "question_set"),
            request.user,
            Action.EVALUATE,
            asked.validated_data["answer_set"],
        )
        run = ask_for_run(answers, asked.wanted(), person(request))
        return Response(run_summary(RUNS.get(pk=run.pk), request), status=202)


class RunDetail(Endpoint):
    """One run with its means and a page of its results."""

    serializer_class = RunSerializer
    pagination_class = PagesInOrder

    def get(self, request: Request, pk: int) -> Response:
        """The run; ``results`` is one page, oldest first, and ``results_next`` leads to the next."""
        run = fetch(RUNS, request.user, Action.VIEW, pk)
        pages = PagesInOrder()
        answers = pages.paginate_queryset(answers_in(run).prefetch_related("contexts"), request, self) or []
        results = results_json(run, answers)
        judged = [one["id"] for one in results if {one["faithfulness"], one["answer_relevancy"]} != {None}]
        values_shown(request.user, judged, "api")
        links = {"results_next": pages.get_next_link(), "results_previous": pages.get_previous_link()}
        return Response(run_json(run, request) | {"results": results} | links)


def _retry(run: Run, by: User) -> Run:
    retry_failed(run, by)
    return run


STEERING: dict[str, Callable[[Run, User], Run]] = {
    "pause": pause_run,
    "resume": resume_run,
    "cancel": cancel_run,
    "retry-failed": _retry,
}


class RunSteering(Endpoint):
    """Pause, resume, cancel or retry a run: 409 where its state does not allow it."""

    serializer_class = RunSummarySerializer
    verb = ""

    @extend_schema(request=None)
    def post(self, request: Request, pk: int) -> Response:
        """Do it, and answer with the run as it is then."""
        run = fetch(RUNS, request.user, Action.EVALUATE, pk)
        steered = STEERING[self.verb](run, person(request))
        return Response(run_summary(RUNS.get(pk=steered.pk), request))
