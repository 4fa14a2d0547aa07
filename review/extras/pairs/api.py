"""REST: two systems' answers side by side: making a comparison, taking a pair, preferring, and what came of it."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts import access
from evaluation.accounts.access import LARGEST_ID
from evaluation.api.endpoints import Endpoint, StrictSerializer, person
from evaluation.api.requests import Pages
from evaluation.core.roles import Action
from evaluation.models import Run
from evaluation.runs.exports import download, take_export, take_figures
from review.api.figures import MOST_RESAMPLES
from review.api.queues import people_named
from review.api.requests import TOO_OFTEN, optional_text, row_id
from review.extras.pairs.figures import PAIR_EXPORTS, export_pairs, figures_for, refuse_early
from review.extras.pairs.making import (
    LEAST,
    MOST,
    Card,
    card_of,
    close_pairs,
    leads_pairs,
    make_pairs,
    pair_set_for,
    pair_set_for_lead,
    pair_sets_of,
    prefer,
    reopen_pairs,
)
from review.extras.pairs.views import LARGEST, LONGEST_NAME
from review.models import Pair, PairSet
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


class PairSetListView(Endpoint):
    """The comparisons the caller leads or is named in."""

    serializer_class = PairSetBody
    pagination_class: Any = Pages

    @extend_schema(responses=PairSetShown(many=True))
    def get(self, request: Request) -> Response:
        """One page, newest first."""
        page = self.paginate_queryset(pair_sets_of(request.user))
        return self.get_paginated_response(PairSetShown(page, many=True).data)

    @extend_schema(responses={201: LedPairSetShown})
    def post(self, request: Request) -> Response:
        """Draw questions that both runs answered and pair their answers."""
        body = self.body()
        one, other = (
            access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, body.pop(name))
            for name in ("run_a", "run_b")
        )
        people = people_named(body.pop("reviewers"), one.project_id)
        made = make_pairs(one, other, reviewers=people, by=person(request), **body)
        return Response(LedPairSetShown(made).data, status=201)


class PairSetView(Endpoint):
    """A comparison; runs and people only for a lead who does not rate in it."""

    serializer_class = StrictSerializer

    @extend_schema(responses=LedPairSetShown)
    def get(self, request: Request, pk: int) -> Response:
        """The comparison."""
        found = pair_set_for(request.user, pk)
        rates = found.members.filter(reviewer=person(request)).exists()
        shown = LedPairSetShown if leads_pairs(request.user, found) and not rates else PairSetShown
        return Response(shown(found).data)


class NextPairView(Endpoint):
    """The pair to compare now."""

    serializer_class = StrictSerializer
    query = ("pair",)

    @extend_schema(parameters=[PairQuery], responses={200: PairCardShown, 204: None})
    def get(self, request: Request, pk: int) -> Response:
        """The card; 204 when the caller has rated all."""
        found, asked = _to_rate(request, pk), PairQuery(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data["pair"]
        card = card_of(found, person(request), wanted)
        if card is None and wanted:
            raise Http404
        return Response(status=204) if card is None else Response(PairCardShown(card).data)


class PreferView(Endpoint):
    """Say which side is better, or change one's mind."""

    serializer_class = PreferBody

    @extend_schema(responses=PairCardShown)
    def post(self, request: Request, pk: int) -> Response:
        """Store the preference: the pair as it stands now. The same one twice is one decision."""
        found, body, me = _to_rate(request, pk), self.body(), person(request)
        pair = found.pairs.filter(pk=body["pair"]).first()
        if pair is None:
            raise Http404
        prefer(found, pair, me, body["value"], reason=body["reason"], seconds=body["seconds"])
        return Response(PairCardShown(_card(found, pair, request)).data)


class PairFiguresView(Endpoint):
    """What people and judges prefer, and how far each judge agrees with the people and, over both orders, itself."""

    serializer_class = StrictSerializer
    query = ("seed", "resamples")

    @extend_schema(parameters=[PairFiguresQuery], responses={200: OpenApiTypes.OBJECT, 429: TOO_OFTEN})
    def get(self, request: Request, pk: int) -> Response:
        """By metric, as the ``pairs`` command prints it. A lead who rates too has to rate all pairs first."""
        found, asked = pair_set_for_lead(request.user, pk), PairFiguresQuery(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        resamples, seed = asked.validated_data["resamples"], asked.validated_data["seed"]
        resampling = Resampling(resamples=resamples, seed=seed) if resamples else None
        take_figures(person(request))
        figures = figures_for(found, person(request), resampling=resampling)
        return Response({name: one.to_dict() for name, one in figures.items()})


class PairExportQuery(StrictSerializer):
    """The format of the file."""

    format = serializers.ChoiceField(choices=PAIR_EXPORTS.names, required=False, default="jsonl")


class PairExportView(Endpoint):
    """The preferences of a comparison as a file."""

    serializer_class = StrictSerializer
    query = ("format",)

    @extend_schema(
        parameters=[PairExportQuery],
        responses={
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
            429: TOO_OFTEN,
        },
    )
    def get(self, request: Request, pk: int) -> StreamingHttpResponse:
        """One row for each preference that counts. A lead who rates too has to rate all pairs first."""
        found, asked = pair_set_for_lead(request.user, pk), PairExportQuery(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        refuse_early(found, person(request))
        take_export(person(request))
        made = export_pairs(found, asked.validated_data["format"])
        return download(made)


class ClosePairsView(Endpoint):
    """Take no further preferences."""

    serializer_class = StrictSerializer

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Close."""
        found, _ = pair_set_for_lead(request.user, pk), self.body()
        close_pairs(found, by=person(request))
        return Response(status=204)


class ReopenPairsView(Endpoint):
    """Take preferences again."""

    serializer_class = StrictSerializer

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Reopen."""
        found, _ = pair_set_for_lead(request.user, pk), self.body()
        reopen_pairs(found, by=person(request))
        return Response(status=204)


def _to_rate(request: Request, pk: int) -> PairSet:
    """A comparison for those named in it.

    :raises PermissionDenied: for a lead who is not.
    """
    found = pair_set_for(request.user, pk)
    if not found.members.filter(reviewer=person(request)).exists():
        raise PermissionDenied
    return found


def _card(found: PairSet, pair: Pair, request: Request) -> Card:
    card = card_of(found, person(request), pair.pk)
    if card is None:
        raise Http404
    return card
