"""REST of answer sets and runs."""

from __future__ import annotations

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
    IntegerField,
    ListField,
    ModelSerializer,
    Serializer,
    SerializerMethodField,
    ValidationError,
)

from evaluation.accounts.access import Person, fetch, values_shown
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.core.samples import Status
from evaluation.datasets.api import ReadByMap, shape_from
from evaluation.formats.reading import read_answers
from evaluation.messages.sentences import explain_reason
from evaluation.models import Answer, AnswerSet, Context, Finding, QuestionSet, Run, Score
from evaluation.models.run_spec import ASKING, OPTIONS, RunSpec
from evaluation.rest.endpoints import (
    FILE_BODY,
    FileOfRows,
    RowsViewSet,
    StrictSerializer,
    UploadEndpoint,
    part,
    person,
    verb,
    written,
    written_by,
)
from evaluation.rest.errors import ProblemSerializer
from evaluation.rest.filters import AnswerFilter, AnswerSetFilter, RunFilter
from evaluation.rest.requests import MOST, PagesInOrder
from evaluation.runs.answer_files import import_answers, score_by_rules
from evaluation.runs.making import Asking, ask_for_run, cancel_run, pause_run, resume_run
from evaluation.runs.planning import planned
from evaluation.runs.progress import progress
from evaluation.runs.results import enters, primary_pairs, with_scores
from evaluation.runs.serializers import PlanSerializer, RunSerializer, RunState, RunSummarySerializer, RunWhole
from evaluation.specs.rest_fields import SettingsSerializer
from evaluation.systems.services import asked_version
from evaluation.worker.lifecycle import answers_in, retry_failed

AT_ONCE_SECONDS = 10.0  # what rules may take within a request; the workers do the rest
ANSWER_SETS = AnswerSet.objects.select_related("system_version__system").annotate(answer_count=Count("answers"))


class AnswerSetSerializer(ModelSerializer[AnswerSet]):
    """One asking of a system."""

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
    """What is said beside a file of answers."""

    question_set = IntegerField(min_value=1, help_text="id of one version of a question set")
    system = CharField(max_length=200)
    k = IntegerField(default=5, min_value=1, max_value=50)
    name = CharField(default="", max_length=300, help_text="of the run")
    accept_unknown_passages = BooleanField(
        default=False, help_text="import although none of the passages is among those that should be found"
    )


class AnswerForm(AnswerOptions):
    """A form with a file of answers."""

    file = FileOfRows()


class ImportedAnswersSerializer(Serializer[Any]):
    """What became of an answer file: its answer set, and the run with its rule metrics."""

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

    @written_by(
        ImportedAnswersSerializer,
        status=201,
        others={200: ImportedAnswersSerializer},
        body={"multipart/form-data": AnswerForm, **FILE_BODY},
        query=AnswerOptions,
    )
    def create(self, request: Request) -> Response:
        """Import the answers of one system: 201, or 200 where exactly these are there already; 400 with every
        problem of the file. Rules that take longer than a request should are done in the background."""
        body, options = self.upload()
        asked = fetch(QuestionSet.objects.all(), request.user, Action.EVALUATE, options["question_set"])
        limit = max(settings.CONCORD_UPLOAD_BYTES, len(body.content))
        imported = import_answers(
            asked,
            options["system"],
            read_answers(body.content, body.file_name, shape=shape_from(options), max_bytes=limit),
            data=body.sent,
            file_name=body.file_name,
            by=person(request),
            name=options["name"],
            k=options["k"],
            refuse_unknown_passages=not options["accept_unknown_passages"],
        )
        run = score_by_rules(imported.run, seconds=AT_ONCE_SECONDS)
        answer_set = ANSWER_SETS.get(pk=run.answer_set_id)
        found = {"answer_set": answer_set, "run": RunState.of(run, request), "imported": imported}
        return Response(found, status=201 if imported.created else 200)


class ContextSerializer(ModelSerializer[Context]):
    """A retrieved passage."""

    class Meta:
        model = Context
        fields = ("position", "chunk_id", "text", "score", "source", "metadata")
        read_only_fields = fields


class VerdictSerializer(ModelSerializer[Finding]):
    """A part of a score that a person can check: a claim, statement, context, nugget, keyword or flag, with what was
    found about it. ``start`` and ``end`` are offsets into the answer (``approximate`` where found by likeness),
    ``context`` is a position from 0, ``quote_start`` and ``quote_end`` are where ``quote`` stands in that passage."""

    class Meta:
        model = Finding
        fields = (
            *("kind", "position", "text", "verdict", "context", "start", "end", "approximate"),
            *("quote", "quote_start", "quote_end", "reason"),
        )
        read_only_fields = fields


class ScoreSerializer(ModelSerializer[Score]):
    """A result of one metric by one scorer. ``judge`` is null for rules; ``author`` names an imported judge.

    ``counts`` is true for those whose values enter the figures of the run: rules, the primary judge, and of imported
    judges the one that counts for its metric.
    """

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
        """Whether the offline baseline gave it, which is no real judge."""
        return bool(score.judge_version and score.judge_version.is_baseline)

    def get_rubric(self, score: Score) -> str | None:
        """Family, version and language."""
        return str(score.rubric_version) if score.rubric_version else None

    def get_reason(self, score: Score) -> str:
        """The scorer's own explanation, or the sentence that says why there is no value."""
        return score.reason if score.status == Status.SCORED else explain_reason(score.reason)

    def get_counts(self, score: Score) -> bool:
        """Whether the value enters the figures of the run."""
        return enters(score, self.context["primary"])


class AnswerSerializer(ModelSerializer[Answer]):
    """An answer. ``contexts`` is null where the system does not retrieve, empty where it found nothing."""

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
        """Why the system gave no answer; empty where it did."""
        return explain_reason(answer.reason) if answer.reason else ""

    @extend_schema(responses=ContextSerializer(many=True))
    def get_contexts(self, answer: Answer) -> list[dict[str, Any]] | None:
        """The retrieved passages in the order the system used them."""
        return list(ContextSerializer(answer.contexts.all(), many=True).data) if answer.retrieves else None


def has_judged(answer: Any) -> bool:
    """Whether a judge's value is among the scores shown, be it an imported one."""
    return any(score.judge_version_id or score.author for score in answer.run_scores)


RUNS = Run.objects.select_related("answer_set__question_set", "profile_version")


class RunRequestSerializer(SettingsSerializer, StrictSerializer):
    """What a run should be: of an ``answer_set``, or of the answers that ``system`` is asked for. Without ``judge`` the
    project's default or only one, else the offline baseline; null is none."""

    settings = (*ASKING.values(), *OPTIONS.values())

    answer_set = IntegerField(default=None, min_value=1, allow_null=True)
    dataset_id = IntegerField(
        default=None, min_value=1, allow_null=True, help_text="question set whose questions the system is asked"
    )
    system = CharField(
        default="", allow_blank=True, max_length=220, help_text="name or NAME@VERSION of a system with a connector"
    )
    dry_run = BooleanField(default=False, help_text="only say what it would take")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Answers that are there, or a system to ask."""
        asks = bool(attrs["dataset_id"] and attrs["system"])
        if asks == bool(attrs["answer_set"]) or bool(attrs["dataset_id"]) != bool(attrs["system"]):
            raise ValidationError(gettext("Name an answer_set, or a dataset_id and the system that is to be asked."))
        return attrs


class ResumeSerializer(SettingsSerializer, StrictSerializer):
    """Under what a paused run goes on."""

    settings = (replace(OPTIONS["budget"], body="US dollars that its calls may cost in all; null leaves it as it is"),)


class PageQuery(StrictSerializer):
    """Which page of a run's results."""

    cursor = CharField(required=False, help_text="The pagination cursor value.")
    page_size = IntegerField(required=False, min_value=1, max_value=MOST, help_text="Results per page, 1 to 500.")


def _source(user: Person, body: dict[str, Any]) -> AnswerSet | Asking:
    if body["answer_set"]:
        rows = AnswerSet.objects.select_related("project", "question_set")
        return fetch(rows, user, Action.EVALUATE, body["answer_set"])
    questions = fetch(QuestionSet.objects.select_related("project"), user, Action.EVALUATE, body["dataset_id"])
    version = asked_version(questions.project, body["system"])
    if version is None:
        raise Refused("not_asked", system=body["system"])
    return Asking(question_set=questions, version=version, **{name: body[name] for name in ASKING})


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

    @written_by(RunSummarySerializer, status=202, body=RunRequestSerializer, others={200: PlanSerializer})
    def create(self, request: Request) -> RunState | Response:
        """Make and start a run: 202 with its id, status, progress and links; 200 with what it would take for a dry
        run."""
        body = self.body()
        spec = RunSpec(**{name: body[name] for name in OPTIONS})
        asked = _source(request.user, body), spec, person(request)
        if body["dry_run"]:
            return Response(PlanSerializer(planned(*asked)).data)
        return self._now(ask_for_run(*asked))

    @written_by(RunSerializer, query=PageQuery)
    def retrieve(self, request: Request, pk: int) -> RunWhole:
        """The run; ``results`` is one page, oldest first, and ``results_next`` leads to the next."""
        whole = self.whole(pk)
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

    @verb(_to_steer, RunSummarySerializer, body=ResumeSerializer)
    def resume(self, run: Run, body: dict[str, Any]) -> RunState:
        """Do it, and answer with the run as it is then."""
        return self._now(resume_run(run, person(self.request), body["budget"]))

    @verb(_to_steer, RunSummarySerializer, body=None)
    def cancel(self, run: Run) -> RunState:
        """Do it, and answer with the run as it is then."""
        return self._now(cancel_run(run, person(self.request)))

    @verb(_to_steer, RunSummarySerializer, body=None)
    def retry_failed(self, run: Run) -> RunState:
        """Do it, and answer with the run as it is then."""
        retry_failed(run, person(self.request))
        return self._now(run)

    def whole(self, pk: int) -> RunWhole:
        """The run, for who may see it, with the page of its answers that is asked for."""
        run, pages = fetch(RUNS, self.request.user, Action.VIEW, pk), PagesInOrder()
        page = pages.paginate_queryset(answers_in(run).prefetch_related("contexts"), self.request, self) or []
        return RunWhole(run, progress(run), self.request, page, pages.get_next_link(), pages.get_previous_link())

    def _now(self, run: Run) -> RunState:
        return RunState.of(RUNS.get(pk=run.pk), self.request)
