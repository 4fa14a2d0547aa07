"""REST: retrieval truth that experts repair: making a pool, taking a passage, grading, and what came of it."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.routers import SimpleRouter
from rest_framework_dataclasses.serializers import DataclassSerializer

from contrib.retrieval_truth.accepting import accept_labels
from contrib.retrieval_truth.models import AcceptedLabels, PassageRating, RetrievalRepair
from contrib.retrieval_truth.pooling import MOST_SYSTEMS, make_repair
from contrib.retrieval_truth.rating import REPAIRS, PassageCard, card_of, rate, set_open
from contrib.retrieval_truth.results import (
    REPAIR_EXPORTS,
    RepairResult,
    export_repair,
    refuse_early,
    results_for,
)
from contrib.retrieval_truth.views import DEEPEST, LARGEST, LONGEST_NAME
from evaluation.accounts import access
from evaluation.accounts.access import LARGEST_ID
from evaluation.core.roles import Action
from evaluation.models import Run
from evaluation.rest.endpoints import StrictSerializer, ViewSet, part, person, verb, written_by
from evaluation.rest.fields import TOO_OFTEN, optional_text, row_id
from evaluation.rest.requests import Pages
from evaluation.runs.exports import download, take_export, take_figures
from review.queues.api import people_named


class RepairBody(StrictSerializer):
    """A repair of what the systems of ``runs`` retrieved. ``reviewers`` are user names; they read the name."""

    runs = serializers.ListField(child=row_id(), min_length=2, max_length=MOST_SYSTEMS)
    name = serializers.CharField(max_length=LONGEST_NAME)
    reviewers = serializers.ListField(child=serializers.CharField(max_length=150), min_length=1, max_length=500)
    size = serializers.IntegerField(min_value=1, max_value=LARGEST, default=200)
    k = serializers.IntegerField(min_value=1, max_value=DEEPEST, default=10)
    partly_counts = serializers.BooleanField(default=False)
    first_relevant = serializers.BooleanField(default=False)
    guideline = optional_text()
    seed = serializers.IntegerField(min_value=0, max_value=LARGEST_ID, required=False, allow_null=True, default=None)


class GradeBody(StrictSerializer):
    """What the caller says of a passage."""

    passage = row_id()
    grade = serializers.ChoiceField(choices=PassageRating.Grade.values)
    reason = optional_text()
    seconds = serializers.FloatField(required=False, allow_null=True, default=None, min_value=0, max_value=86_400)


class PassageQuery(StrictSerializer):
    """A passage that was drawn, to look at it again; without one the next."""

    passage = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=LARGEST_ID)


class RepairShown(serializers.ModelSerializer[RetrievalRepair]):
    """A repair as its reviewers see it: neither runs nor systems."""

    open = serializers.SerializerMethodField()

    class Meta:
        model = RetrievalRepair
        fields = ("id", "name", "guideline", "k", "partly_counts", "first_relevant", "size", "open", "created_at")

    def get_open(self, found: RetrievalRepair) -> bool:
        """Whether it takes ratings."""
        return found.closed_at is None


class PassageCardShown(serializers.Serializer[Any]):
    """A passage as this caller sees it; ``grade`` and ``reason`` are the caller's own so far."""

    passage = serializers.IntegerField(source="passage.pk")
    question = serializers.CharField()
    text = serializers.CharField(source="passage.text")
    grade = serializers.CharField()
    reason = serializers.CharField()
    rated = serializers.IntegerField()
    drawn = serializers.IntegerField()


class RepairResultShown(DataclassSerializer[RepairResult]):
    """Corrected precision, recall and nDCG at k by system (``minus`` empty) and by two systems, with intervals; hit and
    MRR where they are known."""

    class Meta:
        dataclass = RepairResult


class AcceptedShown(serializers.ModelSerializer[AcceptedLabels]):
    """The version of the question set that took the labels over."""

    class Meta:
        model = AcceptedLabels
        fields = ("question_set", "relevant", "unrated", "created_at")


class RepairExportQuery(StrictSerializer):
    """The format of the file."""

    format = serializers.ChoiceField(choices=REPAIR_EXPORTS.names, required=False, default="csv")


class RepairViewSet(ViewSet):
    """The repairs the caller leads or is named in."""

    pagination_class = Pages

    @written_by(RepairShown, paged=True)
    def list(self, request: Request) -> QuerySet[RetrievalRepair]:
        """One page, newest first."""
        return REPAIRS.of(request.user)

    @written_by(RepairShown, status=201, body=RepairBody)
    def create(self, request: Request) -> RetrievalRepair:
        """Pool what the runs' systems retrieved and draw the passages to rate."""
        body = self.body()
        runs = [
            access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk)
            for pk in dict.fromkeys(body.pop("runs"))
        ]
        people = people_named(body.pop("reviewers"), runs[0].project_id)
        return make_repair(runs, reviewers=people, by=person(request), **body)

    @written_by(RepairShown)
    def retrieve(self, request: Request, pk: int) -> RetrievalRepair:
        """The repair."""
        return REPAIRS.get(request.user, pk)

    @part(PassageCardShown, query=PassageQuery, others={204: None})
    def next(self, request: Request, pk: int) -> PassageCard | None:
        """The card; 204 when nothing is left for the caller."""
        found, wanted = REPAIRS.to_rate(request.user, pk), self.asked(request.query_params.dict())["passage"]
        card = card_of(found, person(request), wanted)
        if card is None and wanted:
            raise Http404
        return card

    @verb(REPAIRS.to_rate, PassageCardShown, body=GradeBody)
    def rate(self, found: RetrievalRepair, body: dict[str, Any]) -> PassageCard | None:
        """Store the grade: the passage as it stands now. The same one twice is one decision."""
        me, passage = person(self.request), found.passages.filter(pk=body.pop("passage"), sampled=True).first()
        if passage is None:
            raise Http404
        rate(found, passage, me, **body)
        return card_of(found, me, passage.pk)

    @part(RepairResultShown, others={429: TOO_OFTEN})
    def figures(self, request: Request, pk: int) -> RepairResult:
        """The corrected figures. A lead who rates too has to rate what is left first."""
        found = REPAIRS.for_lead(request.user, pk)
        take_figures(person(request))
        return results_for(found, person(request))

    @extend_schema(
        parameters=[RepairExportQuery],
        responses={
            (200, "application/json"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
            429: TOO_OFTEN,
        },
    )
    @action(detail=True, pagination_class=None, query=("format",))
    def export(self, request: Request, pk: int) -> StreamingHttpResponse:
        """The figures (``json``) or the pool with probabilities and ratings (``csv``)."""
        found, asked = REPAIRS.for_lead(request.user, pk), RepairExportQuery(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        refuse_early(found, person(request))
        take_export(person(request))
        return download(export_repair(found, asked.validated_data["format"]))

    @verb(REPAIRS.for_lead)
    def close(self, found: RetrievalRepair) -> None:
        """Close."""
        set_open(found, is_open=False, by=person(self.request))

    @verb(REPAIRS.for_lead)
    def reopen(self, found: RetrievalRepair) -> None:
        """Reopen."""
        set_open(found, is_open=True, by=person(self.request))

    @verb(REPAIRS.for_lead, AcceptedShown)
    def accept(self, found: RetrievalRepair) -> AcceptedLabels:
        """Take the labels over into a new version of the question set."""
        refuse_early(found, person(self.request))
        return accept_labels(found, by=person(self.request))


router = SimpleRouter(use_regex_path=False)
router.register("retrieval-repairs", RepairViewSet, "api-repairs")
urlpatterns = router.urls
