"""REST: the figures of runs (report, agreement, correction, comparison) and overriding them, and those for a monitoring
system."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.http import http_date
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from prometheus_client import CONTENT_TYPE_LATEST
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    IntegerField,
    ListField,
    RegexField,
    Serializer,
    ValidationError,
)

from evaluation.accounts.access import LARGEST_ID, Person, fetch, projects_with
from evaluation.core.roles import Action
from evaluation.formats.export import ExportFile
from evaluation.formats.records import OWN, forms
from evaluation.models import Run
from evaluation.rest.endpoints import Endpoint, StrictSerializer, ViewSet, person, verb
from evaluation.rest.fields import limited, row_id
from evaluation.runs.exports import download, take_export, take_figures, uncounted_if_later
from evaluation.runs.monitoring import exposition
from evaluation.specs.rest_fields import SettingsSerializer
from review.agreement.pages import agreement_pictures
from review.agreement.run_agreement import By, agreement_if_kept, kept_agreement
from review.comparisons.gating import checked
from review.comparisons.values import MOST
from review.comparisons.whole import comparison_json, with_margin
from review.decisions.assumptions import set_accepted
from review.decisions.overrides import Effect, effect_of, metric_of_run, override_many
from review.decisions.serializers import ManyOverridesBody
from review.evidence.answers import expose
from review.figure_cache.reading import (
    agreement_now,
    compared_now,
    correction_now,
    figures_now,
    gates_now,
    listed_lines,
    report_file,
)
from review.queues.access import run_to_override
from review.queues.planning import plan_json
from review.reports.exporting import BRIEF, PICTURED, REPORT_EXPORTS, export_kept
from review.reports.gate import GATE_SETTINGS, GateAsked
from review.reports.records import export_records

MOST_RESAMPLES = 10_000
OBJECT = OpenApiTypes.OBJECT
RUNS = OpenApiParameter("runs", str, required=True, description="ids, separated by commas")


class GateQuery(SettingsSerializer, StrictSerializer):
    """What a gate asks of a run."""

    settings = GATE_SETTINGS


class ReportQuery(GateQuery):
    """How a report is written, and the gate it tells of."""

    format = CharField(default="json", max_length=20, help_text=", ".join(REPORT_EXPORTS.names))
    baseline = row_id(allow_null=True, default=None)


class RecordsQuery(StrictSerializer):
    """Whose form the records have."""

    form = ChoiceField(choices=list(forms()), default=OWN)


class AgreementQuery(StrictSerializer):
    """How intervals are made, and whether categories or periods of rating are told apart."""

    by = ChoiceField(choices=[str(By.CATEGORY), str(By.PERIOD)], default="")
    seed = IntegerField(default=0, min_value=0, max_value=LARGEST_ID)
    resamples = IntegerField(default=2000, min_value=0, max_value=MOST_RESAMPLES)


class CorrectionQuery(StrictSerializer):
    """Whether categories are told apart."""

    by = ChoiceField(choices=["category"], default="")


class CompareQuery(GateQuery):
    """Which runs to put side by side, and the gate of those after the first."""

    runs = RegexField(r"^[0-9]{1,18}(,[0-9]{1,18})*$")

    def validate_runs(self, value: str) -> list[int]:
        """The ids, each once, in the order given.

        :raises ValidationError: for more runs than can be shown.
        """
        wanted = list(dict.fromkeys(int(part) for part in value.split(",")))
        if len(wanted) > MOST:
            raise ValidationError(f"at most {MOST} runs")
        return wanted


class EffectShown(Serializer[Effect]):
    """The answers that get the value; of the others how many stand there already, are adjudicated, or are not the
    caller's."""

    answers = ListField(child=IntegerField())
    same = IntegerField()
    adjudicated = IntegerField()
    forbidden = IntegerField()


class AssumptionBody(StrictSerializer):
    """Whether the assumption is accepted."""

    accepted = BooleanField()


def run_to_assume(user: Person, pk: int) -> Run:
    """A run of which the person may decide values."""
    return fetch(Run.objects.all(), user, Action.OVERRIDE, pk)


class RunViewSet(ViewSet):
    """The figures of runs that the caller may see, and overriding a metric of many answers with one reason, for leads
    and assigned experts."""

    @limited(ReportQuery, {(200, kind): OpenApiTypes.ANY for kind in REPORT_EXPORTS.media_types})
    def report(self, request: Request, pk: int) -> StreamingHttpResponse:
        """The report in the asked format; it tells the judge's values, so that reviewers who read it are recorded."""
        run, asked = self._run(pk), self.asked(request.query_params.dict())
        chosen = _gate(asked, None if asked["baseline"] is None else self._run(asked["baseline"]))
        REPORT_EXPORTS.checked(asked["format"])
        with uncounted_if_later(take_export(person(request))):
            made = _written(run, asked["format"], checked(chosen))
        expose(request.user, run, "report")
        return download(made)

    @limited(RecordsQuery, {(200, "application/jsonl"): OBJECT, (200, "application/json"): OBJECT})
    def records(self, request: Request, pk: int) -> StreamingHttpResponse:
        """Questions, answers, scores and ratings in the form of another tool, for leads. It tells what judges and
        people said, so that reviewers who read it are recorded."""
        run = fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk)
        form = self.asked(request.query_params.dict())["form"]
        take_export(person(request))
        expose(request.user, run, "records")
        return download(export_records(run, form))

    @limited(AgreementQuery)
    def agreement(self, request: Request, pk: int) -> Response:
        """``judges`` by author and metric, ``experts`` by metric, as the ``agreement`` command prints them. What has
        been computed before does not count towards the limit."""
        run, asked = self._run(pk), self.asked(request.query_params.dict())
        how = {"resamples": asked["resamples"], "seed": asked["seed"], "by": By(asked["by"])}
        found = agreement_if_kept(run, **how)
        if found is None:
            take_figures(person(request))
            found = kept_agreement(run, **how)
        return Response(found)

    @limited(CorrectionQuery)
    def correction(self, request: Request, pk: int) -> Response:
        """The three estimates of the overall score and of each metric, as the ``correct`` command prints them, and what
        reviewing more would bring."""
        run, asked = self._run(pk), self.asked(request.query_params.dict())
        with uncounted_if_later(take_figures(person(request))):
            kept = correction_now(run)
        figures = {key: one for key, one in kept.value.figures.items() if key != "by_category" or asked["by"]}
        return _dated({**figures, "next_review": plan_json(kept.value.plan)}, kept.made_at)

    @limited(CompareQuery, detail=False, shown=[RUNS, GateQuery])
    def compare(self, request: Request) -> Response:
        """Scores of each run, versions in which they differ, differences from the first run, and the ranking. It tells
        how judges scored single questions, so that reviewers who read it are recorded."""
        asked = self.asked(request.query_params.dict())
        runs = [self._run(pk) for pk in asked["runs"]]
        with uncounted_if_later(take_figures(person(request))):
            gates = gates_now(runs, _gate(asked | ({} if asked["max_drop"] is not None else {"margin": None}), None))
            kept = compared_now(runs)
            found = with_margin(kept.value, asked["margin"])
        for run in runs:
            expose(request.user, run, "comparison")
        return _dated(comparison_json(found, gates), kept.made_at)

    @verb(run_to_assume, body=AssumptionBody)
    def assumption(self, run: Run, body: dict[str, Any]) -> None:
        """Accept for the judged parts that nobody rated that the judge is off as where it was rated, or take that
        back; the report and ``correction/`` name who accepted it."""
        set_accepted(run, accepted=body["accepted"], by=person(self.request))

    @verb(run_to_override, EffectShown, body=ManyOverridesBody, others={201: EffectShown})
    def override(self, run: Run, body: dict[str, Any]) -> Effect | Response:
        """Store a decision for each answer; 200 where it was a dry run."""
        metric, answers = metric_of_run(run, body["metric"]), body["answers"]
        said = {"value": body["value"], "label": body["label"], "by": person(self.request)}
        if body["dry_run"]:
            return effect_of(run, metric, answers, **said)
        return Response(override_many(run, metric, answers, reason=body["reason"], **said), status=201)

    def _run(self, pk: int) -> Run:
        return fetch(Run.objects.all(), self.request.user, Action.VIEW, pk)


def _written(run: Run, format_name: str, asked: GateAsked) -> ExportFile:
    """The report in a format; where it says little of single answers, of what is kept."""
    if format_name not in BRIEF:
        return report_file(run, format_name, asked)
    figures, gate = figures_now(run), gates_now(asked.runs(run), asked).get(run.pk)
    kept, drawn = figures.value, format_name in PICTURED
    lines, pictures = (
        (listed_lines(run), agreement_pictures(run, agreement_now(run).value.figures)) if drawn else ((), "")
    )
    made = export_kept(run, format_name, kept.report, lines, gate, plan=plan_json(kept.plan), pictures=pictures)
    return replace(made, made_at=figures.made_at)


def _dated(figures: dict[str, Any], made_at: datetime | None) -> Response:
    """``Last-Modified`` is when a worker made them, where they are not of this moment."""
    return Response(figures, headers={"Last-Modified": http_date(made_at.timestamp())} if made_at else None)


def _gate(asked: dict[str, Any], baseline: Run | None) -> GateAsked:
    return GateAsked(baseline=baseline, **{one.name: asked[one.name] for one in GATE_SETTINGS})


class MetricsView(Endpoint):
    """The machine's figures, with the calls about pairs, in the Prometheus text format, over the projects that the
    caller administers."""

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request) -> HttpResponse:
        """All figures, read now.

        :raises PermissionDenied: for anybody who administers no project.
        """
        projects = list(projects_with(request.user, Action.ADMINISTER).values_list("pk", flat=True))
        if not projects:
            raise PermissionDenied
        return HttpResponse(exposition(projects), content_type=CONTENT_TYPE_LATEST)
