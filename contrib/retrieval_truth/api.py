"""REST: retrieval repairs: create a pool, get and rate passages, results."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.routers import SimpleRouter
from rest_framework_dataclasses.serializers import DataclassSerializer

from contrib.retrieval_truth.acceptance import accept_labels
from contrib.retrieval_truth.models import AcceptedLabels, PassageRating, RetrievalRepair
from contrib.retrieval_truth.pooling import MAX_SYSTEMS, make_repair
from contrib.retrieval_truth.rating import REPAIRS, PassageCard, next_card, rate_passage, set_open
from contrib.retrieval_truth.results import (
    REPAIR_EXPORTS,
    RepairResult,
    export_repair,
    refuse_unfinished_rater,
    results_for,
)
from contrib.retrieval_truth.views import MAX_DEPTH, MAX_NAME_LENGTH, MAX_SIZE
from evaluation.accounts import access
from evaluation.accounts.access import MAX_ID
from evaluation.core.roles import Action
from evaluation.models import Run
from evaluation.rest.endpoints import StrictSerializer, ViewSet, detail_action, detail_view, request_user, responds_with
from evaluation.rest.fields import RATE_LIMIT_RESPONSE, id_field, optional_text
from evaluation.rest.requests import Pages
from evaluation.rest.typed import file_responses
from evaluation.runs.exports import count_export, count_figures, download_response
from review.queues.api import people_named


class RepairBody(StrictSerializer):
    """Body of a new repair of the systems of ``runs``. ``reviewers`` are user names; they see the name."""

    runs = serializers.ListField(child=id_field(), min_length=2, max_length=MAX_SYSTEMS)
    name = serializers.CharField(max_length=MAX_NAME_LENGTH)
    reviewers = serializers.ListField(child=serializers.CharField(max_length=150), min_length=1, max_length=500)
    size = serializers.IntegerField(min_value=1, max_value=MAX_SIZE, default=200)
    k = serializers.IntegerField(min_value=1, max_value=MAX_DEPTH, default=10)
    partly_counts = serializers.BooleanField(default=False)
    first_relevant = serializers.BooleanField(default=False)
    guideline = optional_text()
    seed = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False, allow_null=True, default=None)


class GradeBody(StrictSerializer):
    """The caller's grade of a passage."""

    passage = id_field()
    grade = serializers.ChoiceField(choices=PassageRating.Grade.values)
    reason = optional_text()
    seconds = serializers.FloatField(required=False, allow_null=True, default=None, min_value=0, max_value=86_400)


class PassageQuery(StrictSerializer):
    """A drawn passage to view again; without it the next one."""

    passage = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=MAX_ID)


class RepairShown(serializers.ModelSerializer[RetrievalRepair]):
    """A repair as reviewers see it, without runs and systems."""

    open = serializers.SerializerMethodField()

    class Meta:
        model = RetrievalRepair
        fields = ("id", "name", "guideline", "k", "partly_counts", "first_relevant", "size", "open", "created_at")

    def get_open(self, repair: RetrievalRepair) -> bool:
        return repair.closed_at is None


class PassageCardShown(serializers.Serializer[Any]):
    """A passage as the caller sees it; ``grade`` and ``reason`` are the caller's own."""

    passage = serializers.IntegerField(source="passage.pk")
    question = serializers.CharField()
    text = serializers.CharField(source="passage.text")
    grade = serializers.CharField()
    reason = serializers.CharField()
    rated = serializers.IntegerField()
    drawn = serializers.IntegerField()


class RepairResultShown(DataclassSerializer[RepairResult]):
    """Corrected precision, recall and nDCG at k by system (``minus`` empty) and by pair of systems, with intervals; hit
    and MRR where known."""

    class Meta:
        dataclass = RepairResult


class AcceptedShown(serializers.ModelSerializer[AcceptedLabels]):
    """The version of the question set that accepted the labels."""

    class Meta:
        model = AcceptedLabels
        fields = ("question_set", "relevant", "unrated", "created_at")


class RepairExportQuery(StrictSerializer):
    """The format of the file."""

    format = serializers.ChoiceField(choices=REPAIR_EXPORTS.names, required=False, default="csv")


class RepairViewSet(ViewSet):
    """Repairs that the caller leads or rates in."""

    pagination_class = Pages

    @responds_with(RepairShown, paged=True)
    def list(self, request: Request) -> QuerySet[RetrievalRepair]:
        """One page, newest first."""
        return REPAIRS.visible_to(request.user)

    @responds_with(RepairShown, status=201, body=RepairBody)
    def create(self, request: Request) -> RetrievalRepair:
        """Pool the passages that the runs' systems retrieved, and draw those to rate."""
        body = self.body()
        runs = [
            access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk)
            for pk in dict.fromkeys(body.pop("runs"))
        ]
        people = people_named(body.pop("reviewers"), runs[0].project_id)
        return make_repair(runs, reviewers=people, by=request_user(request), **body)

    @responds_with(RepairShown)
    def retrieve(self, request: Request, pk: int) -> RetrievalRepair:
        """The repair."""
        return REPAIRS.get(request.user, pk)

    @detail_view(PassageCardShown, query=PassageQuery, other_responses={204: None})
    def next(self, request: Request, pk: int) -> PassageCard | None:
        """Return the next passage; 204 if none is left for the caller."""
        repair, passage_id = (
            REPAIRS.for_rater(request.user, pk),
            self.validated_query(request.query_params.dict())["passage"],
        )
        card = next_card(repair, request_user(request), passage_id)
        if card is None and passage_id:
            raise Http404
        return card

    @detail_action(REPAIRS.for_rater, PassageCardShown, body=GradeBody)
    def rate(self, repair: RetrievalRepair, body: dict[str, Any]) -> PassageCard | None:
        """Store the grade and return the updated passage. Repeating a grade changes nothing."""
        user, passage = request_user(self.request), repair.passages.filter(pk=body.pop("passage"), sampled=True).first()
        if passage is None:
            raise Http404
        rate_passage(repair, passage, user, **body)
        return next_card(repair, user, passage.pk)

    @detail_view(RepairResultShown, other_responses={429: RATE_LIMIT_RESPONSE})
    def figures(self, request: Request, pk: int) -> RepairResult:
        """Return the corrected figures. A lead who also rates must first rate the remaining passages."""
        repair = REPAIRS.for_lead(request.user, pk)
        count_figures(request_user(request))
        return results_for(repair, request_user(request))

    @extend_schema(
        parameters=[RepairExportQuery],
        responses={**file_responses(REPAIR_EXPORTS, json=RepairResultShown), 429: RATE_LIMIT_RESPONSE},
    )
    @action(detail=True, pagination_class=None, query=("format",))
    def export(self, request: Request, pk: int) -> StreamingHttpResponse:
        """Export the figures (``json``) or the pool with probabilities and ratings (``csv``)."""
        repair, query = REPAIRS.for_lead(request.user, pk), RepairExportQuery(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        refuse_unfinished_rater(repair, request_user(request))
        count_export(request_user(request))
        return download_response(export_repair(repair, query.validated_data["format"]))

    @detail_action(REPAIRS.for_lead)
    def close(self, repair: RetrievalRepair) -> None:
        """Close."""
        set_open(repair, is_open=False, by=request_user(self.request))

    @detail_action(REPAIRS.for_lead)
    def reopen(self, repair: RetrievalRepair) -> None:
        """Reopen."""
        set_open(repair, is_open=True, by=request_user(self.request))

    @detail_action(REPAIRS.for_lead, AcceptedShown)
    def accept(self, repair: RetrievalRepair) -> AcceptedLabels:
        """Copy the labels into a new version of the question set."""
        refuse_unfinished_rater(repair, request_user(self.request))
        return accept_labels(repair, by=request_user(self.request))


router = SimpleRouter(use_regex_path=False)
router.register("retrieval-repairs", RepairViewSet, "api-repairs")
urlpatterns = router.urls
