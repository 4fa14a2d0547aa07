"""REST of answer sets and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

# mypy: disable-error-code="assignment"
# The REST framework has attributes named ``label``, ``source``, ``context`` and ``fields``; here they are fields.
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    DecimalField,
    DictField,
    FloatField,
    IntegerField,
    ListField,
    ModelSerializer,
    Serializer,
    SerializerMethodField,
    ValidationError,
)

from evaluation.accounts.access import UserOrAnonymous, announce_judge_values, fetch
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.core.samples import Status
from evaluation.datasets.api import ReadByMap, shape_from_options
from evaluation.formats.reading import read_answers
from evaluation.messages.explanations import explain_reason
from evaluation.models import Answer, AnswerSet, Context, Finding, QuestionSet, Run, Score
from evaluation.models.run_spec import ASK_OPTIONS, RUN_OPTIONS, RunSpec
from evaluation.rest.endpoints import (
    FILE_BODY,
    FormFileField,
    RowsViewSet,
    StrictSerializer,
    UploadEndpoint,
    detail_action,
    detail_view,
    request_user,
    responds_with,
    serialize,
)
from evaluation.rest.errors import ProblemSerializer
from evaluation.rest.filters import AnswerFilter, AnswerSetFilter, RunFilter
from evaluation.rest.requests import MAX_PAGE_SIZE, PagesOldestFirst
from evaluation.runs.answer_files import import_answers, score_by_rules
from evaluation.runs.call_log import LoggedCall, logged_calls
from evaluation.runs.creation import CollectionRequest, cancel_run, launch_run, pause_run, resume_run
from evaluation.runs.planning import plan_run
from evaluation.runs.progress import progress
from evaluation.runs.results import counts_in_figures, primary_pairs, with_scores
from evaluation.runs.serializers import PlanSerializer, RunDetail, RunSerializer, RunState, RunSummarySerializer
from evaluation.specs.rest_fields import SettingsSerializer
from evaluation.systems.services import connected_version
from evaluation.worker.lifecycle import retry_failed, run_answers

# Time limit for rules within a request; workers compute the rest.
REQUEST_RULE_SECONDS = 10.0
ANSWER_SETS = AnswerSet.objects.select_related("system_version__system").annotate(answer_count=Count("answers"))


class AnswerSetSerializer(ModelSerializer[AnswerSet]):
    """The answers of a system to a question set."""

    system = CharField(source="system_version.system.name", read_only=True)
    answers = IntegerField(source="answer_count", read_only=True)

    class Meta:
        model = AnswerSet
        fields = (
            "id",
            "project",
            "question_set",
            "system",
            "system_version",
            "k",
            "evaluation_type",
            "source",
            "content_hash",
            "answers",
            "created_at",
        )
        read_only_fields = fields


class AnswerOptions(ReadByMap):
    """Options of an uploaded answer file."""

    question_set = IntegerField(min_value=1, help_text="id of one version of a question set")
    system = CharField(max_length=200)
    k = IntegerField(default=5, min_value=1, max_value=50)
    name = CharField(default="", max_length=300, help_text="name of the run")
    accept_unknown_passages = BooleanField(
        default=False, help_text="import even if none of the passages is an expected one"
    )


class AnswerForm(AnswerOptions):
    """A form with a file of answers."""

    file = FormFileField()


class ImportedAnswersSerializer(Serializer[Any]):
    """The imported answer set, and the run with its rule metrics."""

    answer_set = AnswerSetSerializer()
    run = RunSummarySerializer()
    created = BooleanField(source="imported.created")
    missing = ListField(source="imported.missing", child=CharField(), help_text="ids of questions without an answer")
    remarks = ProblemSerializer(source="imported.remarks", many=True)


@extend_schema_view(retrieve=extend_schema(description="The answer set, with the number of its answers."))
class AnswerSetViewSet(UploadEndpoint, RowsViewSet):
    """Answer sets, newest first; a POST imports a file and scores it by rules."""

    rows = ANSWER_SETS
    serializer_class = AnswerSetSerializer
    filterset_class = AnswerSetFilter

    @responds_with(
        ImportedAnswersSerializer,
        status=201,
        other_responses={200: ImportedAnswersSerializer},
        body={"multipart/form-data": AnswerForm, **FILE_BODY},
        query=AnswerOptions,
    )
    def create(self, request: Request) -> Response:
        """Import the answers of one system: 201, or 200 if equal answers already exist; 400 with every problem of the
        file. Rules that take too long for a request are computed in the background."""
        body, options = self.upload()
        question_set = fetch(QuestionSet.objects.all(), request.user, Action.EVALUATE, options["question_set"])
        limit = max(settings.CONCORD_UPLOAD_BYTES, len(body.content))
        imported = import_answers(
            question_set,
            options["system"],
            read_answers(body.content, body.file_name, shape=shape_from_options(options), max_bytes=limit),
            data=body.original,
            file_name=body.file_name,
            by=request_user(request),
            name=options["name"],
            k=options["k"],
            refuse_unknown_passages=not options["accept_unknown_passages"],
        )
        run = score_by_rules(imported.run, seconds=REQUEST_RULE_SECONDS)
        answer_set = ANSWER_SETS.get(pk=run.answer_set_id)
        payload = {"answer_set": answer_set, "run": RunState.of(run, request), "imported": imported}
        return Response(payload, status=201 if imported.created else 200)


class ContextSerializer(ModelSerializer[Context]):
    """A retrieved passage."""

    class Meta:
        model = Context
        fields = ("position", "chunk_id", "text", "score", "source", "metadata")
        read_only_fields = fields


class VerdictSerializer(ModelSerializer[Finding]):
    """A checkable part of a score: a claim, statement, context, nugget, keyword or flag, with its verdict. ``start``
    and ``end`` are offsets into the answer (``approximate`` if found by similarity), ``context`` is a position from 0,
    ``quote_start`` and ``quote_end`` are offsets of ``quote`` in that passage."""

    class Meta:
        model = Finding
        fields = (
            *("kind", "position", "text", "verdict", "context", "start", "end", "approximate"),
            *("quote", "quote_start", "quote_end", "reason"),
        )
        read_only_fields = fields


class ScoreSerializer(ModelSerializer[Score]):
    """A result of one metric by one scorer. ``judge`` is null for rules; ``author`` names an imported judge.

    ``counts`` is true if the value counts in the run's figures: rules, the primary judge, and the imported judge that
    counts for the metric."""

    metric = CharField(source="metric.name", read_only=True)
    metric_version = IntegerField(source="metric.version", read_only=True)
    judge = SerializerMethodField()
    is_baseline = SerializerMethodField()
    rubric = SerializerMethodField()
    reason = SerializerMethodField()
    counts = SerializerMethodField()
    verdicts = VerdictSerializer(source="findings", many=True, read_only=True)

    class Meta:
        model = Score
        fields = (
            "id",
            "metric",
            "metric_version",
            "status",
            "value",
            "label",
            "reason",
            "judge",
            "is_baseline",
            "rubric",
            "author",
            "repeat",
            "round",
            "counts",
            "detail",
            "verdicts",
        )
        read_only_fields = fields

    def get_judge(self, score: Score) -> str | None:
        """Name and version."""
        return str(score.judge_version) if score.judge_version else None

    def get_is_baseline(self, score: Score) -> bool:
        """Return whether the offline baseline gave the score."""
        return bool(score.judge_version and score.judge_version.is_baseline)

    def get_rubric(self, score: Score) -> str | None:
        """Family, version and language."""
        return str(score.rubric_version) if score.rubric_version else None

    def get_reason(self, score: Score) -> str:
        """The scorer's explanation, or the reason for a missing value as a sentence."""
        return score.reason if score.status == Status.SCORED else explain_reason(score.reason)

    def get_counts(self, score: Score) -> bool:
        """Return whether the value counts in the run's figures."""
        return counts_in_figures(score, self.context["primary"])


class AnswerSerializer(ModelSerializer[Answer]):
    """An answer. ``contexts`` is null if the system does not retrieve, empty if it found nothing."""

    question_id = CharField(source="question.external_id", read_only=True)
    question = CharField(source="question.text", read_only=True)
    category = CharField(source="question.category", read_only=True)
    answer = CharField(source="text", read_only=True)
    reason = SerializerMethodField()
    contexts = SerializerMethodField()
    scores = ScoreSerializer(source="run_scores", many=True, read_only=True)

    class Meta:
        model = Answer
        fields = (
            "id",
            "question_id",
            "question",
            "category",
            "sample",
            "status",
            "reason",
            "answer",
            "latency_seconds",
            "confidence",
            "retrieved_ids",
            "contexts",
            "metadata",
            "scores",
        )
        read_only_fields = fields

    def get_reason(self, answer: Answer) -> str:
        """The reason for a missing answer; empty if there is an answer."""
        return explain_reason(answer.reason) if answer.reason else ""

    @extend_schema(responses=ContextSerializer(many=True))
    def get_contexts(self, answer: Answer) -> list[dict[str, Any]] | None:
        """The retrieved passages in the order the system used them."""
        return list(ContextSerializer(answer.contexts.all(), many=True).data) if answer.retrieves else None


def has_judged(answer: Any) -> bool:
    """Return whether a real or imported judge scored the answer."""
    return any(score.judge_version_id or score.author for score in answer.run_scores)


RUNS = Run.objects.select_related(*Run.LIST_RELATIONS)


class RunRequestSerializer(SettingsSerializer, StrictSerializer):
    """A run to create: of an ``answer_set``, or of answers to collect from ``system``. Without ``judge``, the project's
    default or only judge, or else the offline baseline; null for none."""

    settings = (*ASK_OPTIONS.values(), *RUN_OPTIONS.values())

    answer_set = IntegerField(default=None, min_value=1, allow_null=True)
    dataset_id = IntegerField(default=None, min_value=1, allow_null=True, help_text="question set to ask the system")
    system = CharField(
        default="", allow_blank=True, max_length=220, help_text="name or NAME@VERSION of a system with a connector"
    )
    dry_run = BooleanField(default=False, help_text="only estimate the run")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        collects = bool(attrs["dataset_id"] and attrs["system"])
        if collects == bool(attrs["answer_set"]) or bool(attrs["dataset_id"]) != bool(attrs["system"]):
            raise ValidationError(gettext("Give an answer_set, or a dataset_id and a system."))
        return attrs


class ResumeSerializer(SettingsSerializer, StrictSerializer):
    """Options for resuming a run."""

    settings = (
        replace(RUN_OPTIONS["budget"], body="limit for the total cost of its calls in US dollars; null keeps it"),
    )


class PageQuery(StrictSerializer):
    """A page of a run's results."""

    cursor = CharField(required=False, help_text="The pagination cursor value.")
    page_size = IntegerField(
        required=False, min_value=1, max_value=MAX_PAGE_SIZE, help_text="Results per page, 1 to 500."
    )


class CallQuery(StrictSerializer):
    """The answer whose calls are listed."""

    answer = IntegerField(min_value=1, help_text="id of an answer of the run")


class LoggedCallSerializer(Serializer[Any]):
    """A judge call and its reply. ``messages`` is null if the request cannot be built again; ``raw`` is empty once it
    was purged."""

    judge = CharField(help_text="judge version")
    messages = ListField(child=DictField(child=CharField()), allow_null=True)
    request_hash = CharField(source="reply.request_hash")
    raw = CharField(source="reply.raw")
    outcome = CharField(source="reply.outcome")
    http_status = IntegerField(source="reply.http_status", allow_null=True)
    model_returned = CharField(source="reply.model_returned")
    tokens_in = IntegerField(source="reply.tokens_in", allow_null=True)
    tokens_out = IntegerField(source="reply.tokens_out", allow_null=True)
    cost = DecimalField(source="reply.cost", max_digits=14, decimal_places=8, allow_null=True)
    elapsed_seconds = FloatField(source="reply.elapsed_seconds", allow_null=True)
    created_at = DateTimeField(source="reply.created_at")


def _answer_source(user: UserOrAnonymous, body: dict[str, Any]) -> AnswerSet | CollectionRequest:
    if body["answer_set"]:
        rows = AnswerSet.objects.select_related("project", "question_set")
        return fetch(rows, user, Action.EVALUATE, body["answer_set"])
    questions = fetch(QuestionSet.objects.select_related("project"), user, Action.EVALUATE, body["dataset_id"])
    version = connected_version(questions.project, body["system"])
    if version is None:
        raise DomainError("not_asked", system=body["system"])
    return CollectionRequest(question_set=questions, version=version, **{name: body[name] for name in ASK_OPTIONS})


def _get_steerable_run(user: UserOrAnonymous, pk: int) -> Run:
    return fetch(RUNS, user, Action.EVALUATE, pk)


class RunViewSet(RowsViewSet):
    """Runs, newest first; POST creates and starts one. Actions that the state does not allow are refused with 409."""

    rows = RUNS
    serializer_class = RunSummarySerializer
    filterset_class = RunFilter

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        runs = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(serialize(RunSummarySerializer, RunState.of_all(runs, request), many=True))

    @responds_with(RunSummarySerializer, status=202, body=RunRequestSerializer, other_responses={200: PlanSerializer})
    def create(self, request: Request) -> RunState | Response:
        """Create and start a run: 202 with its id, status, progress and links. A dry run returns 200 with the
        estimate."""
        body = self.body()
        spec = RunSpec(**{name: body[name] for name in RUN_OPTIONS})
        request_parts = _answer_source(request.user, body), spec, request_user(request)
        if body["dry_run"]:
            return Response(PlanSerializer(plan_run(*request_parts)).data)
        return self._current_state(launch_run(*request_parts))

    @responds_with(RunSerializer, query=PageQuery)
    def retrieve(self, request: Request, pk: int) -> RunDetail:
        """The run; ``results`` is one page, oldest first, and ``results_next`` links to the next."""
        detail = self.run_detail(pk)
        judged = [answer_result.answer.pk for answer_result in detail.results if answer_result.has_judge_value]
        announce_judge_values(request.user, judged, "api")
        return detail

    @detail_view(AnswerSerializer, pages=PagesOldestFirst, filters=AnswerFilter)
    def answers(self, request: Request, pk: int) -> Response:
        """One page of answers. Reviewers who still have to rate one of them are recorded as having seen the judge's
        values."""
        run = fetch(Run.objects.all(), request.user, Action.VIEW, pk)
        page = self.paginate_queryset(self.filter_queryset(with_scores(run_answers(run), run))) or []
        announce_judge_values(request.user, [answer.pk for answer in page if has_judged(answer)], "api")
        serializer = AnswerSerializer(page, many=True, context={"primary": primary_pairs(run)})
        return self.get_paginated_response(serializer.data)

    @detail_view(LoggedCallSerializer, many=True, query=CallQuery)
    def calls(self, request: Request, pk: int) -> Sequence[LoggedCall]:
        """Judge calls for an answer, oldest first: request as sent, raw reply, model, tokens, time and cost."""
        run = fetch(Run.objects.all(), request.user, Action.VIEW, pk)
        answer = fetch(run_answers(run), request.user, Action.VIEW, self.validated_query()["answer"])
        announce_judge_values(request.user, [answer.pk], "api")
        return logged_calls(run, answer)

    @detail_action(_get_steerable_run, RunSummarySerializer, body=None)
    def pause(self, run: Run) -> RunState:
        """Pause the run."""
        return self._current_state(pause_run(run, request_user(self.request)))

    @detail_action(_get_steerable_run, RunSummarySerializer, body=ResumeSerializer)
    def resume(self, run: Run, body: dict[str, Any]) -> RunState:
        """Resume the run."""
        return self._current_state(resume_run(run, request_user(self.request), body["budget"]))

    @detail_action(_get_steerable_run, RunSummarySerializer, body=None)
    def cancel(self, run: Run) -> RunState:
        """Cancel the run."""
        return self._current_state(cancel_run(run, request_user(self.request)))

    @detail_action(_get_steerable_run, RunSummarySerializer, body=None)
    def retry_failed(self, run: Run) -> RunState:
        """Retry the failed units of the run."""
        retry_failed(run, request_user(self.request))
        return self._current_state(run)

    def run_detail(self, pk: int) -> RunDetail:
        """The run with the requested page of its answers."""
        run, paginator = fetch(RUNS, self.request.user, Action.VIEW, pk), PagesOldestFirst()
        page = paginator.paginate_queryset(run_answers(run).prefetch_related("contexts"), self.request, self) or []
        return RunDetail(
            run, progress(run), self.request, page, paginator.get_next_link(), paginator.get_previous_link()
        )

    def _current_state(self, run: Run) -> RunState:
        return RunState.of(RUNS.get(pk=run.pk), self.request)
