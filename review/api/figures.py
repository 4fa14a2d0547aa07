"""REST: the figures of runs: report, agreement, comparison."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts import access
from evaluation.accounts.access import LARGEST_ID
from evaluation.api.endpoints import Endpoint, StrictSerializer, person
from evaluation.core.roles import Action
from evaluation.models import Run
from evaluation.runs.exports import download, take_export, take_figures
from review.api.requests import TOO_OFTEN, NothingBody
from review.comparisons.gating import GateAsked, gate_of, gates_of
from review.comparisons.values import MOST
from review.comparisons.whole import compare, comparison_json
from review.evidence.answers import expose
from review.plans.ahead import planned_review
from review.reports.estimates import three_ways
from review.reports.exporting import REPORT_EXPORTS, export
from review.reports.gate import GateOn
from review.reports.gathering import gather
from review.results.run_agreement import By, agreement_if_kept, kept_agreement
from review.web.pages.agreement import agreement_pictures

MOST_RESAMPLES = 10_000
OBJECT = OpenApiTypes.OBJECT


class GateQuery(StrictSerializer):
    """What a gate asks of a run."""

    fail_under = serializers.FloatField(required=False, allow_null=True, default=None, min_value=-1e6, max_value=1e6)
    max_drop = serializers.FloatField(required=False, allow_null=True, default=None, min_value=0, max_value=1e6)
    gate_on = serializers.ChoiceField(choices=[str(one) for one in GateOn], required=False, default="")
    strict = serializers.BooleanField(required=False, default=False)
    across_models = serializers.BooleanField(required=False, default=False)


class ReportQuery(GateQuery):
    """How a report is written, and the gate it tells of."""

    format = serializers.CharField(
        required=False, default="json", max_length=20, help_text=", ".join(REPORT_EXPORTS.names)
    )
    baseline = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=LARGEST_ID
    )


class ReportView(Endpoint):
    """The report of a run as a file."""

    serializer_class = NothingBody
    query = ("format", "fail_under", "baseline", "max_drop", "gate_on", "strict", "across_models")

    @extend_schema(
        parameters=[ReportQuery],
        responses={(200, "application/json"): OBJECT, (200, "text/csv"): OBJECT, 429: TOO_OFTEN},
    )
    def get(self, request: Request, pk: int) -> StreamingHttpResponse:
        """The report in the asked format; it tells the judge's values, so that reviewers who read it are recorded."""
        run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
        asked = _checked(ReportQuery, request)
        chosen = _gate(request, asked)
        REPORT_EXPORTS.checked(asked["format"])
        take_export(person(request))
        made = export(run, asked["format"], gate_of(run, chosen), pictures=agreement_pictures, planned=planned_review)
        expose(request.user, run, "report")
        return download(made)


def _gate(request: Request, asked: dict[str, Any]) -> GateAsked:
    """The gate that the parameters ask for; the baseline must be a run that the caller may see."""
    found = asked["baseline"]
    baseline = None if found is None else access.fetch(Run.objects.all(), request.user, Action.VIEW, found)
    return _gate_against(baseline, asked)


def _gate_against(baseline: Run | None, asked: dict[str, Any]) -> GateAsked:
    rules = ("fail_under", "max_drop", "strict", "across_models")
    return GateAsked(baseline=baseline, on=asked["gate_on"], **{rule: asked[rule] for rule in rules})


class AgreementQuery(StrictSerializer):
    """How intervals are made, and whether categories or periods of rating are told apart."""

    by = serializers.ChoiceField(choices=[str(By.CATEGORY), str(By.PERIOD)], required=False, default="")
    seed = serializers.IntegerField(required=False, default=0, min_value=0, max_value=LARGEST_ID)
    resamples = serializers.IntegerField(required=False, default=2000, min_value=0, max_value=MOST_RESAMPLES)


class AgreementView(Endpoint):
    """How far every judge of a run agrees with the experts, and the experts with each other."""

    serializer_class = NothingBody
    query = ("by", "seed", "resamples")

    @extend_schema(parameters=[AgreementQuery], responses={200: OBJECT, 429: TOO_OFTEN})
    def get(self, request: Request, pk: int) -> Response:
        """``judges`` by author and metric, ``experts`` by metric, as the ``agreement`` command prints them. What has
        been computed before does not count towards the limit."""
        run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
        asked = _checked(AgreementQuery, request)
        resamples, seed, by = asked["resamples"], asked["seed"], By(asked["by"])
        found = agreement_if_kept(run, resamples=resamples, seed=seed, by=by)
        if found is None:
            take_figures(person(request))
            found = kept_agreement(run, resamples=resamples, seed=seed, by=by)
        return Response(found)


class CorrectionQuery(StrictSerializer):
    """Whether categories are told apart."""

    by = serializers.ChoiceField(choices=["category"], required=False, default="")


class CorrectionView(Endpoint):
    """What the experts would have said of all answers of a run, beside what the judge said."""

    serializer_class = NothingBody
    query = ("by",)

    @extend_schema(parameters=[CorrectionQuery], responses={200: OBJECT, 429: TOO_OFTEN})
    def get(self, request: Request, pk: int) -> Response:
        """The three estimates of the overall score and of each metric, as the ``correct`` command prints them, and what
        reviewing more would bring."""
        run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
        asked = _checked(CorrectionQuery, request)
        take_figures(person(request))
        basis = gather(run)
        found = three_ways(basis, by_category=asked["by"] == "category").to_dict()
        return Response({**found, "next_review": planned_review(basis)})


class CompareQuery(GateQuery):
    """Which runs to put side by side, and the gate of those after the first."""

    runs = serializers.RegexField(r"^[0-9]{1,18}(,[0-9]{1,18})*$", help_text="ids, separated by commas")

    def validate_runs(self, value: str) -> list[int]:
        """The ids, each once, in the order given.

        :raises ValidationError: for more runs than can be shown.
        """
        wanted = list(dict.fromkeys(int(part) for part in value.split(",")))
        if len(wanted) > MOST:
            raise serializers.ValidationError(f"at most {MOST} runs")
        return wanted


class CompareView(Endpoint):
    """Several runs compared: each with the first, and all in order."""

    serializer_class = NothingBody
    query = ("runs", "fail_under", "max_drop", "gate_on", "strict", "across_models")

    @extend_schema(
        parameters=[OpenApiParameter("runs", str, required=True, description="ids, separated by commas"), GateQuery],
        responses={200: OBJECT, 429: TOO_OFTEN},
    )
    def get(self, request: Request) -> Response:
        """Scores of each run, versions in which they differ, differences from the first run, and the ranking. It tells
        how judges scored single questions, so that reviewers who read it are recorded."""
        asked = _checked(CompareQuery, request)
        runs = [access.fetch(Run.objects.all(), request.user, Action.VIEW, pk) for pk in asked["runs"]]
        take_figures(person(request))
        compared = compare(runs)
        found = comparison_json(compared, gates_of(compared, _gate_against(None, asked)))
        for run in runs:
            expose(request.user, run, "comparison")
        return Response(found)


def _checked(shape: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """The query parameters by their shape.

    :raises ValidationError: naming what does not fit.
    """
    found = shape(data=request.query_params.dict())
    found.is_valid(raise_exception=True)
    checked: dict[str, Any] = found.validated_data
    return checked
