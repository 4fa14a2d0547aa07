"""REST endpoints for the figures of runs, for overrides, and for monitoring."""

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

from evaluation.accounts.access import MAX_ID, UserOrAnonymous, fetch, projects_with
from evaluation.core.roles import Action
from evaluation.formats.export import ExportFile
from evaluation.formats.records import NATIVE, form_names
from evaluation.models import Run
from evaluation.rest.endpoints import StrictAPIView, StrictSerializer, ViewSet, detail_action, request_user
from evaluation.rest.fields import id_field, rate_limited_view
from evaluation.rest.typed import TypedResponse, file_responses
from evaluation.runs.exports import count_export, count_figures, download_response, refund_if_later
from evaluation.runs.monitoring import exposition
from evaluation.specs.rest_fields import SettingsSerializer
from review.agreement.json_types import Agreement
from review.agreement.pages import render_agreement_plots
from review.agreement.run_agreement import Breakdown, agreement_if_cached, cached_agreement
from review.comparisons.comparison import comparison_json, with_margin
from review.comparisons.gates import check_request
from review.comparisons.json_types import Comparison
from review.comparisons.values import MAX_RUNS
from review.decisions.assumptions import set_acceptance
from review.decisions.overrides import OverrideEffect, find_run_metric, override_many, preview_overrides
from review.decisions.serializers import ManyOverridesBody
from review.evidence.answers import record_exposure
from review.figure_cache.selectors import (
    current_agreement,
    current_comparison,
    current_correction,
    current_figures,
    current_gates,
    current_standing,
    listed_lines,
    report_file,
)
from review.queues.access import run_to_override
from review.queues.planning import plan_json
from review.reports.as_json import ReportJson
from review.reports.exports import BRIEF, PICTURED, REPORT_EXPORTS, export_cached
from review.reports.gate import GATE_SETTINGS, GateRequest
from review.reports.json_types import Correction
from review.reports.records import export_records
from review.standing.json_types import Standing
from review.standing.pages import score_sentence

MAX_RESAMPLES = 10_000
RUNS = OpenApiParameter("runs", str, required=True, description="ids, separated by commas")


class GateQuery(SettingsSerializer, StrictSerializer):
    settings = GATE_SETTINGS


class ReportQuery(GateQuery):
    format = CharField(default="json", max_length=20, help_text=", ".join(REPORT_EXPORTS.names))
    baseline = id_field(allow_null=True, default=None)


class RecordsQuery(StrictSerializer):
    form = ChoiceField(choices=list(form_names()), default=NATIVE)


class AgreementQuery(StrictSerializer):
    by = ChoiceField(choices=[str(Breakdown.CATEGORY), str(Breakdown.PERIOD)], default="")
    seed = IntegerField(default=0, min_value=0, max_value=MAX_ID)
    resamples = IntegerField(default=2000, min_value=0, max_value=MAX_RESAMPLES)


class CorrectionQuery(StrictSerializer):
    by = ChoiceField(choices=["category"], default="")


class CompareQuery(GateQuery):
    runs = RegexField(r"^[0-9]{1,18}(,[0-9]{1,18})*$")

    def validate_runs(self, value: str) -> list[int]:
        """Parse ids, without duplicates, in the given order.

        :raises ValidationError: for more runs than a comparison can show."""
        run_ids = list(dict.fromkeys(int(part) for part in value.split(",")))
        if len(run_ids) > MAX_RUNS:
            raise ValidationError(f"at most {MAX_RUNS} runs")
        return run_ids


class EffectShown(Serializer[OverrideEffect]):
    """Effect of an override. Of the answers that do not change it counts those with the value already, adjudicated
    ones, and those the caller may not change."""

    answers = ListField(child=IntegerField())
    same = IntegerField()
    adjudicated = IntegerField()
    forbidden = IntegerField()


class AssumptionBody(StrictSerializer):
    accepted = BooleanField()


def run_to_assume(user: UserOrAnonymous, pk: int) -> Run:
    return fetch(Run.objects.all(), user, Action.OVERRIDE, pk)


class RunViewSet(ViewSet):
    """Figures of visible runs, and overrides of a metric for many answers by leads and assigned experts."""

    @rate_limited_view(ReportQuery, file_responses(REPORT_EXPORTS, json=TypedResponse(ReportJson)))
    def report(self, request: Request, pk: int) -> StreamingHttpResponse:
        """Return the report in the requested format. It reveals the judge's values, so access is recorded."""
        run, query = self._run(pk), self.validated_query(request.query_params.dict())
        gate_request = _gate_request(query, None if query["baseline"] is None else self._run(query["baseline"]))
        REPORT_EXPORTS.check_name(query["format"])
        with refund_if_later(count_export(request_user(request))):
            export = _export_report(run, query["format"], check_request(gate_request))
        record_exposure(request.user, run, "report")
        return download_response(export)

    @rate_limited_view(
        RecordsQuery, {(200, "application/jsonl"): OpenApiTypes.STR, (200, "application/json"): OpenApiTypes.ANY}
    )
    def records(self, request: Request, pk: int) -> StreamingHttpResponse:
        """Return questions, answers, scores and ratings in another tool's format, for leads. Access is recorded."""
        run = fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk)
        form = self.validated_query(request.query_params.dict())["form"]
        count_export(request_user(request))
        record_exposure(request.user, run, "records")
        return download_response(export_records(run, form))

    @rate_limited_view(AgreementQuery, {200: TypedResponse(Agreement)})
    def agreement(self, request: Request, pk: int) -> Response:
        """Return ``judges`` by author and metric and ``experts`` by metric, as the ``agreement`` command prints them.
        Cached results do not count towards the rate limit."""
        run, query = self._run(pk), self.validated_query(request.query_params.dict())
        options = {"resamples": query["resamples"], "seed": query["seed"], "by": Breakdown(query["by"])}
        agreement = agreement_if_cached(run, **options)
        if agreement is None:
            count_figures(request_user(request))
            agreement = cached_agreement(run, **options)
        return Response(agreement)

    @rate_limited_view(CorrectionQuery, {200: TypedResponse(Correction)})
    def correction(self, request: Request, pk: int) -> Response:
        """Return the three estimates of the overall score and each metric, as the ``corrected_scores`` command prints
        them, and what more reviewing would bring."""
        run, query = self._run(pk), self.validated_query(request.query_params.dict())
        with refund_if_later(count_figures(request_user(request))):
            entry = current_correction(run)
        figures = {key: figure for key, figure in entry.value.figures.items() if key != "by_category" or query["by"]}
        return _dated_response({**figures, "next_review": plan_json(entry.value.plan)}, entry.built_at)

    @rate_limited_view(StrictSerializer, {200: TypedResponse(Standing)}, schema_parameters=[])
    def standing(self, request: Request, pk: int) -> Response:
        """Return the standing score of each release of the run's system over its question set, with its cost, the test
        for tuning, and the drift of repeated ratings. ``sentence`` is about the newest release."""
        run = self._run(pk)
        self.validated_query(request.query_params.dict())
        with refund_if_later(count_figures(request_user(request))):
            entry = current_standing(run)
        return _dated_response({**entry.value.to_dict(), "sentence": score_sentence(entry.value)}, entry.built_at)

    @rate_limited_view(
        CompareQuery, {200: TypedResponse(Comparison)}, detail=False, schema_parameters=[RUNS, GateQuery]
    )
    def compare(self, request: Request) -> Response:
        """Return scores, differing versions, differences from the first run, and the ranking. They reveal judge values,
        so access is recorded."""
        query = self.validated_query(request.query_params.dict())
        runs = [self._run(pk) for pk in query["runs"]]
        with refund_if_later(count_figures(request_user(request))):
            gates = current_gates(
                runs, _gate_request(query | ({} if query["max_drop"] is not None else {"margin": None}), None)
            )
            entry = current_comparison(runs)
            comparison = with_margin(entry.value, query["margin"])
        for run in runs:
            record_exposure(request.user, run, "comparison")
        return _dated_response(comparison_json(comparison, gates), entry.built_at)

    @detail_action(run_to_assume, body=AssumptionBody)
    def assumption(self, run: Run, body: dict[str, Any]) -> None:
        """Accept or withdraw the assumption that the judge's bias on unrated parts equals that on rated ones. The
        report and ``correction/`` name who accepted it."""
        set_acceptance(run, accepted=body["accepted"], by=request_user(self.request))

    @detail_action(run_to_override, EffectShown, body=ManyOverridesBody, other_responses={201: EffectShown})
    def override(self, run: Run, body: dict[str, Any]) -> OverrideEffect | Response:
        """Store a decision for each answer. A dry run returns 200."""
        metric, answers = find_run_metric(run, body["metric"]), body["answers"]
        decision = {"value": body["value"], "label": body["label"], "by": request_user(self.request)}
        if body["dry_run"]:
            return preview_overrides(run, metric, answers, **decision)
        return Response(override_many(run, metric, answers, reason=body["reason"], **decision), status=201)

    def _run(self, pk: int) -> Run:
        return fetch(Run.objects.all(), self.request.user, Action.VIEW, pk)


def _export_report(run: Run, format_name: str, gate_request: GateRequest) -> ExportFile:
    """Build the report. Brief formats use only cached figures."""
    if format_name not in BRIEF:
        return report_file(run, format_name, gate_request)
    figures, gate = current_figures(run), current_gates(gate_request.runs(run), gate_request).get(run.pk)
    content, with_charts = figures.value, format_name in PICTURED
    lines, pictures = (
        (listed_lines(run), render_agreement_plots(run, current_agreement(run).value.figures))
        if with_charts
        else ((), "")
    )
    export = export_cached(
        run, format_name, content.report, lines, gate, plan=plan_json(content.plan), pictures=pictures
    )
    return replace(export, made_at=figures.built_at)


def _dated_response(figures: dict[str, Any], made_at: datetime | None) -> Response:
    """Set ``Last-Modified`` to the time of computation if the figures are cached."""
    return Response(figures, headers={"Last-Modified": http_date(made_at.timestamp())} if made_at else None)


def _gate_request(query: dict[str, Any], baseline: Run | None) -> GateRequest:
    return GateRequest(baseline=baseline, **{setting.name: query[setting.name] for setting in GATE_SETTINGS})


class MetricsView(StrictAPIView):
    """Installation metrics in Prometheus text format for the projects that the caller administers."""

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request) -> HttpResponse:
        """Return all current metrics.

        :raises PermissionDenied: if the caller administers no project."""
        projects = list(projects_with(request.user, Action.ADMINISTER).values_list("pk", flat=True))
        if not projects:
            raise PermissionDenied
        return HttpResponse(exposition(projects), content_type=CONTENT_TYPE_LATEST)
