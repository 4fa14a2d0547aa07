"""REST: side-by-side comparisons: create one, take a pair, store a preference, read figures."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from contrib.pairs.figures import PAIR_EXPORTS, export_pairs, figures_for, require_all_rated
from contrib.pairs.json_types import PairMetric
from contrib.pairs.models import PairSet
from contrib.pairs.services import (
    MAX_PREFERENCE,
    MIN_PREFERENCE,
    PAIR_SETS,
    PairCard,
    close_pairs,
    make_pairs,
    pair_card,
    reopen_pairs,
    store_preference,
)
from contrib.pairs.views import MAX_NAME_LENGTH, MAX_QUESTIONS
from evaluation.accounts import access
from evaluation.accounts.access import MAX_ID
from evaluation.core.roles import Action
from evaluation.models import Run
from evaluation.rest.endpoints import StrictSerializer, ViewSet, detail_action, detail_view, request_user, responds_with
from evaluation.rest.fields import RATE_LIMIT_RESPONSE, id_field, optional_text
from evaluation.rest.requests import Pages
from evaluation.rest.typed import TypedResponse, file_responses
from evaluation.runs.exports import count_export, count_figures, download_response
from review.queues.api import people_named
from review.reports.api import MAX_RESAMPLES
from review.statistics.agreement.bootstrap import Resampling


class PairSetBody(StrictSerializer):
    """A comparison of two runs. Each of ``reviewers`` (user names) rates every pair; they can read the name."""

    run_a = id_field()
    run_b = id_field()
    name = serializers.CharField(max_length=MAX_NAME_LENGTH)
    reviewers = serializers.ListField(child=serializers.CharField(max_length=150), min_length=1, max_length=500)
    size = serializers.IntegerField(min_value=1, max_value=MAX_QUESTIONS, default=30)
    guideline = optional_text()
    seed = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False, allow_null=True, default=None)


class PreferBody(StrictSerializer):
    """A preference as shown: -2 (left much better) to 2 (right much better)."""

    pair = id_field()
    value = serializers.IntegerField(min_value=MIN_PREFERENCE, max_value=MAX_PREFERENCE)
    reason = optional_text()
    seconds = serializers.FloatField(required=False, allow_null=True, default=None, min_value=0, max_value=86_400)


class PairQuery(StrictSerializer):
    """A rated pair to read again; without it the next pair."""

    pair = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=MAX_ID)


class PairFiguresQuery(StrictSerializer):
    """Resampling for intervals of agreement; 0 resamples for none."""

    seed = serializers.IntegerField(required=False, default=0, min_value=0, max_value=MAX_ID)
    resamples = serializers.IntegerField(required=False, default=2000, min_value=0, max_value=MAX_RESAMPLES)


class PairSetShown(serializers.ModelSerializer[PairSet]):
    """A comparison for its reviewers, without runs and systems."""

    open = serializers.SerializerMethodField()

    class Meta:
        model = PairSet
        fields: tuple[str, ...] = ("id", "name", "guideline", "open", "created_at")

    def get_open(self, pair_set: PairSet) -> bool:
        return pair_set.closed_at is None


class LedPairSetShown(PairSetShown):
    """A comparison for a lead who does not rate in it."""

    reviewers = serializers.SerializerMethodField()

    class Meta(PairSetShown.Meta):
        fields = (*PairSetShown.Meta.fields, "run_a", "run_b", "seed", "reviewers")

    def get_reviewers(self, pair_set: PairSet) -> list[str]:
        return [row.reviewer.get_username() for row in pair_set.members.select_related("reviewer").order_by("pk")]


class PairCardShown(serializers.Serializer[Any]):
    """A pair for the caller, always on equal sides; ``value`` and ``reason`` are the caller's current preference."""

    pair = serializers.IntegerField(source="pair.pk")
    question_id = serializers.CharField(source="pair.external_id")
    question = serializers.CharField(source="pair.question_text")
    reference = serializers.CharField(source="pair.reference")
    left = serializers.CharField()
    right = serializers.CharField()
    value = serializers.FloatField(source="preference", allow_null=True)
    reason = serializers.CharField()
    rated = serializers.IntegerField()
    pairs = serializers.IntegerField()


class PairExportQuery(StrictSerializer):
    """The format of the file."""

    format = serializers.ChoiceField(choices=PAIR_EXPORTS.names, required=False, default="jsonl")


class PairSetViewSet(ViewSet):
    """Comparisons that the caller leads or is a member of; runs and people are shown only to leads who do not rate."""

    pagination_class = Pages

    @responds_with(PairSetShown, paged=True)
    def list(self, request: Request) -> QuerySet[PairSet]:
        """One page, newest first."""
        return PAIR_SETS.visible_to(request.user)

    @responds_with(LedPairSetShown, status=201, body=PairSetBody)
    def create(self, request: Request) -> PairSet:
        """Draw questions that both runs answered and pair their answers."""
        body = self.body()
        run_a, run_b = (
            access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, body.pop(name))
            for name in ("run_a", "run_b")
        )
        people = people_named(body.pop("reviewers"), run_a.project_id)
        return make_pairs(run_a, run_b, reviewers=people, by=request_user(request), **body)

    @responds_with(LedPairSetShown, PairSetShown)
    def retrieve(self, request: Request, pk: int) -> PairSet | Response:
        """The comparison."""
        pair_set = PAIR_SETS.get(request.user, pk)
        is_rater = pair_set.members.filter(reviewer=request_user(request)).exists()
        return (
            pair_set
            if PAIR_SETS.leads(request.user, pair_set) and not is_rater
            else Response(PairSetShown(pair_set).data)
        )

    @detail_view(PairCardShown, query=PairQuery, other_responses={204: None})
    def next(self, request: Request, pk: int) -> PairCard | None:
        """Return the next pair; 204 if the caller has rated all."""
        pair_set, pair_id = (
            PAIR_SETS.for_rater(request.user, pk),
            self.validated_query(request.query_params.dict())["pair"],
        )
        card = pair_card(pair_set, request_user(request), pair_id)
        if card is None and pair_id:
            raise Http404
        return card

    @detail_action(PAIR_SETS.for_rater, PairCardShown, body=PreferBody)
    def prefer(self, pair_set: PairSet, body: dict[str, Any]) -> PairCard | None:
        """Store the preference and return the pair. A repeated preference has no effect."""
        user, pair = request_user(self.request), pair_set.pairs.filter(pk=body.pop("pair")).first()
        if pair is None:
            raise Http404
        store_preference(pair_set, pair, user, **body)
        return pair_card(pair_set, user, pair.pk)

    @extend_schema(
        parameters=[PairFiguresQuery],
        responses={200: TypedResponse(dict[str, PairMetric], "PairFigures"), 429: RATE_LIMIT_RESPONSE},
    )
    @action(detail=True, pagination_class=None, query=("seed", "resamples"))
    def figures(self, request: Request, pk: int) -> Response:
        """Figures by metric, as the ``pairs`` command prints them. A lead who rates must rate all pairs first."""
        pair_set, query = PAIR_SETS.for_lead(request.user, pk), PairFiguresQuery(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        resampling = Resampling(**query.validated_data) if query.validated_data["resamples"] else None
        count_figures(request_user(request))
        figures = figures_for(pair_set, request_user(request), resampling=resampling)
        return Response({name: metric_figures.to_dict() for name, metric_figures in figures.items()})

    @extend_schema(
        parameters=[PairExportQuery],
        responses={**file_responses(PAIR_EXPORTS), 429: RATE_LIMIT_RESPONSE},
    )
    @action(detail=True, pagination_class=None, query=("format",))
    def export(self, request: Request, pk: int) -> StreamingHttpResponse:
        """Export one row per counting preference. A lead who rates must rate all pairs first."""
        pair_set, query = PAIR_SETS.for_lead(request.user, pk), PairExportQuery(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        require_all_rated(pair_set, request_user(request))
        count_export(request_user(request))
        return download_response(export_pairs(pair_set, query.validated_data["format"]))

    @detail_action(PAIR_SETS.for_lead)
    def close(self, pair_set: PairSet) -> None:
        """Close the comparison."""
        close_pairs(pair_set, by=request_user(self.request))

    @detail_action(PAIR_SETS.for_lead)
    def reopen(self, pair_set: PairSet) -> None:
        """Reopen the comparison."""
        reopen_pairs(pair_set, by=request_user(self.request))


router = SimpleRouter(use_regex_path=False)
router.register("pair-sets", PairSetViewSet, "api-pairs")
urlpatterns = router.urls
