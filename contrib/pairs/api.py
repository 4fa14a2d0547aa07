"""REST: two systems' answers side by side: making a comparison, taking a pair, preferring, and what came of it."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from contrib.pairs.figures import PAIR_EXPORTS, export_pairs, figures_for, refuse_early
from contrib.pairs.making import (
    LEAST,
    MOST,
    PAIR_SETS,
    Card,
    card_of,
    close_pairs,
    make_pairs,
    prefer,
    reopen_pairs,
)
from contrib.pairs.models import PairSet
from contrib.pairs.views import LARGEST, LONGEST_NAME
from evaluation.accounts import access
from evaluation.accounts.access import LARGEST_ID
from evaluation.core.roles import Action
from evaluation.models import Run
from evaluation.rest.endpoints import StrictSerializer, ViewSet, part, person, verb, written_by
from evaluation.rest.fields import TOO_OFTEN, optional_text, row_id
from evaluation.rest.requests import Pages
from evaluation.runs.exports import download, take_export, take_figures
from review.queues.api import people_named
from review.reports.api import MOST_RESAMPLES
from review.statistics.agreement.bootstrap import Resampling


class PairSetBody(StrictSerializer):
    """A comparison of two runs. ``reviewers`` are user names, each of whom rates every pair; they read the name."""

    run_a = row_id()
    run_b = row_id()
    name = serializers.CharField(max_length=LONGEST_NAME)
    reviewers = serializers.ListField(child=serializers.CharField(max_length=150), min_length=1, max_length=500)
    size = serializers.IntegerField(min_value=1, max_value=LARGEST, default=30)
    guideline = optional_text()
    seed = serializers.IntegerField(min_value=0, max_value=LARGEST_ID, required=False, allow_null=True, default=None)


class PreferBody(StrictSerializer):
    """A preference as the pair was shown: -2 (left much better) to 2 (right much better)."""

    pair = row_id()
    value = serializers.IntegerField(min_value=LEAST, max_value=MOST)
    reason = optional_text()
    seconds = serializers.FloatField(required=False, allow_null=True, default=None, min_value=0, max_value=86_400)


class PairQuery(StrictSerializer):
    """A pair the caller has rated, to look at it again; without one the next."""

    pair = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=LARGEST_ID)


class PairFiguresQuery(StrictSerializer):
    """How intervals of agreement are made; 0 resamples for none."""

    seed = serializers.IntegerField(required=False, default=0, min_value=0, max_value=LARGEST_ID)
    resamples = serializers.IntegerField(required=False, default=2000, min_value=0, max_value=MOST_RESAMPLES)


class PairSetShown(serializers.ModelSerializer[PairSet]):
    """A comparison as its reviewers see it: neither runs nor systems."""

    open = serializers.SerializerMethodField()

    class Meta:
        model = PairSet
        fields: tuple[str, ...] = ("id", "name", "guideline", "open", "created_at")

    def get_open(self, found: PairSet) -> bool:
        """Whether it takes preferences."""
        return found.closed_at is None


class LedPairSetShown(PairSetShown):
    """A comparison as a lead who does not rate in it sees it."""

    reviewers = serializers.SerializerMethodField()

    class Meta(PairSetShown.Meta):
        fields = (*PairSetShown.Meta.fields, "run_a", "run_b", "seed", "reviewers")

    def get_reviewers(self, found: PairSet) -> list[str]:
        """The members by user name."""
        return [row.reviewer.get_username() for row in found.members.select_related("reviewer").order_by("pk")]


class PairCardShown(serializers.Serializer[Any]):
    """A pair as this caller sees it, always on the same sides; ``value`` and ``reason`` are the caller's own so far."""

    pair = serializers.IntegerField(source="pair.pk")
    question_id = serializers.CharField(source="pair.external_id")
    question = serializers.CharField(source="pair.question_text")
    reference = serializers.CharField(source="pair.reference")
    left = serializers.CharField()
    right = serializers.CharField()
    value = serializers.FloatField(source="chosen", allow_null=True)
    reason = serializers.CharField()
    rated = serializers.IntegerField()
    pairs = serializers.IntegerField()


class PairExportQuery(StrictSerializer):
    """The format of the file."""

    format = serializers.ChoiceField(choices=PAIR_EXPORTS.names, required=False, default="jsonl")


class PairSetViewSet(ViewSet):
    """The comparisons the caller leads or is named in; runs and people only for a lead who does not rate in one."""

    pagination_class = Pages

    @written_by(PairSetShown, paged=True)
    def list(self, request: Request) -> QuerySet[PairSet]:
        """One page, newest first."""
        return PAIR_SETS.of(request.user)

    @written_by(LedPairSetShown, status=201, body=PairSetBody)
    def create(self, request: Request) -> PairSet:
        """Draw questions that both runs answered and pair their answers."""
        body = self.body()
        one, other = (
            access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, body.pop(name))
            for name in ("run_a", "run_b")
        )
        people = people_named(body.pop("reviewers"), one.project_id)
        return make_pairs(one, other, reviewers=people, by=person(request), **body)

    @written_by(LedPairSetShown, PairSetShown)
    def retrieve(self, request: Request, pk: int) -> PairSet | Response:
        """The comparison."""
        found = PAIR_SETS.get(request.user, pk)
        rates = found.members.filter(reviewer=person(request)).exists()
        return found if PAIR_SETS.leads(request.user, found) and not rates else Response(PairSetShown(found).data)

    @part(PairCardShown, query=PairQuery, others={204: None})
    def next(self, request: Request, pk: int) -> Card | None:
        """The card; 204 when the caller has rated all."""
        found, wanted = PAIR_SETS.to_rate(request.user, pk), self.asked(request.query_params.dict())["pair"]
        card = card_of(found, person(request), wanted)
        if card is None and wanted:
            raise Http404
        return card

    @verb(PAIR_SETS.to_rate, PairCardShown, body=PreferBody)
    def prefer(self, found: PairSet, body: dict[str, Any]) -> Card | None:
        """Store the preference: the pair as it stands now. The same one twice is one decision."""
        me, pair = person(self.request), found.pairs.filter(pk=body.pop("pair")).first()
        if pair is None:
            raise Http404
        prefer(found, pair, me, **body)
        return card_of(found, me, pair.pk)

    @extend_schema(parameters=[PairFiguresQuery], responses={200: OpenApiTypes.OBJECT, 429: TOO_OFTEN})
    @action(detail=True, pagination_class=None, query=("seed", "resamples"))
    def figures(self, request: Request, pk: int) -> Response:
        """By metric, as the ``pairs`` command prints it. A lead who rates too has to rate all pairs first."""
        found, asked = PAIR_SETS.for_lead(request.user, pk), PairFiguresQuery(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        resampling = Resampling(**asked.validated_data) if asked.validated_data["resamples"] else None
        take_figures(person(request))
        figures = figures_for(found, person(request), resampling=resampling)
        return Response({name: one.to_dict() for name, one in figures.items()})

    @extend_schema(
        parameters=[PairExportQuery],
        responses={
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
            429: TOO_OFTEN,
        },
    )
    @action(detail=True, pagination_class=None, query=("format",))
    def export(self, request: Request, pk: int) -> StreamingHttpResponse:
        """One row for each preference that counts. A lead who rates too has to rate all pairs first."""
        found, asked = PAIR_SETS.for_lead(request.user, pk), PairExportQuery(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        refuse_early(found, person(request))
        take_export(person(request))
        return download(export_pairs(found, asked.validated_data["format"]))

    @verb(PAIR_SETS.for_lead)
    def close(self, found: PairSet) -> None:
        """Close."""
        close_pairs(found, by=person(self.request))

    @verb(PAIR_SETS.for_lead)
    def reopen(self, found: PairSet) -> None:
        """Reopen."""
        reopen_pairs(found, by=person(self.request))


router = SimpleRouter(use_regex_path=False)
router.register("pair-sets", PairSetViewSet, "api-pairs")
urlpatterns = router.urls
