"""``runs/``: starting, watching and steering runs, and their results in the shape of source 002."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import Person, fetch, values_shown
from evaluation.api.answer_serializers import AnswerSerializer, has_judged
from evaluation.api.endpoints import RowsViewSet, StrictSerializer, part, person, verb, written, written_by
from evaluation.api.filters import AnswerFilter, RunFilter
from evaluation.api.pages import MOST, PagesInOrder
from evaluation.api.run_serializers import RunSerializer, RunState, RunSummarySerializer, RunWhole
from evaluation.core.roles import Action
from evaluation.judging.formulas import JuryRule
from evaluation.models import AnswerSet, Run
from evaluation.profiles.spec import DEFAULT_PROFILE
from evaluation.runs.making import QuestionFilter, Wanted, ask_for_run, cancel_run, pause_run, resume_run
from evaluation.runs.progress import progress
from evaluation.runs.results import answers_in, primary_pairs, with_scores
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


class PageQuery(StrictSerializer):
    """Which page of a run's results."""

    cursor = serializers.CharField(required=False, help_text="The pagination cursor value.")
    page_size = serializers.IntegerField(
        required=False, min_value=1, max_value=MOST, help_text="Results per page, 1 to 500."
    )


def wanted_run(body: dict[str, Any]) -> Wanted:
    """The request as the lower floors take it."""
    names = ("categories", "tags", "question_ids", "limit")
    several = {name: tuple(body[name]) for name in ("beside", "metrics")}
    rest = {name: one for name, one in body.items() if name not in {"answer_set", *names}}
    return Wanted(questions=QuestionFilter(*(body[name] for name in names)), **(rest | several))


def _to_steer(user: Person, pk: int) -> Run:
    """A run for who may start one."""
    return fetch(RUNS, user, Action.EVALUATE, pk)


class RunViewSet(RowsViewSet):
    """Runs, newest first; a POST makes and starts one. Steering is refused with 409 where the state does not allow
    it."""

    rows = RUNS
    serializer_class = RunSummarySerializer
    filterset_class = RunFilter

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page."""
        runs = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(written(RunSummarySerializer, RunState.of_all(runs, request), many=True))

    @written_by(RunSummarySerializer, status=202, body=RunRequestSerializer)
    def create(self, request: Request) -> RunState:
        """Make and start a run: 202 with its id, status, progress and links."""
        wanted = self.body()
        rows = AnswerSet.objects.select_related("project", "question_set")
        asked = fetch(rows, request.user, Action.EVALUATE, wanted["answer_set"])
        return self._now(ask_for_run(asked, wanted_run(wanted), person(request)))

    @written_by(RunSerializer, query=PageQuery)
    def retrieve(self, request: Request, pk: int) -> RunWhole:
        """The run; ``results`` is one page, oldest first, and ``results_next`` leads to the next."""
        run, pages = self.get_object(), PagesInOrder()
        page = pages.paginate_queryset(answers_in(run).prefetch_related("contexts"), request, self) or []
        whole = RunWhole(run, progress(run), request, page, pages.get_next_link(), pages.get_previous_link())
        judged = [one.answer.pk for one in whole.results if one.judged]
        values_shown(request.user, judged, "api")
        return whole

    @part(AnswerSerializer, pages=PagesInOrder, filters=AnswerFilter)
    def answers(self, request: Request, pk: int) -> Response:
        """One page. Who still has to rate one of these answers is recorded as having seen the judges' values."""
        run = fetch(Run.objects.all(), request.user, Action.VIEW, pk)
        page = self.paginate_queryset(self.filter_queryset(with_scores(answers_in(run), run))) or []
        values_shown(request.user, [answer.pk for answer in page if has_judged(answer)], "api")
        shown = AnswerSerializer(page, many=True, context={"primary": primary_pairs(run)})
        return self.get_paginated_response(shown.data)

    @verb(_to_steer, RunSummarySerializer, body=None)
    def pause(self, run: Run) -> RunState:
        """Do it, and answer with the run as it is then."""
        return self._now(pause_run(run, person(self.request)))

    @verb(_to_steer, RunSummarySerializer, body=None)
    def resume(self, run: Run) -> RunState:
        """Do it, and answer with the run as it is then."""
        return self._now(resume_run(run, person(self.request)))

    @verb(_to_steer, RunSummarySerializer, body=None)
    def cancel(self, run: Run) -> RunState:
        """Do it, and answer with the run as it is then."""
        return self._now(cancel_run(run, person(self.request)))

    @verb(_to_steer, RunSummarySerializer, body=None)
    def retry_failed(self, run: Run) -> RunState:
        """Do it, and answer with the run as it is then."""
        retry_failed(run, person(self.request))
        return self._now(run)

    def _now(self, run: Run) -> RunState:
        return RunState.of(RUNS.get(pk=run.pk), self.request)
