"""REST: gold sets, and the looks that were taken at their hold-outs. Of a hold-out nothing but its size is told."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    DictField,
    FloatField,
    IntegerField,
    ListField,
    ModelSerializer,
    Serializer,
)

from evaluation.accounts.access import Person, fetch
from evaluation.api.endpoints import RowsViewSet, StrictSerializer, part, person, verb, written_by
from evaluation.core.roles import Action
from evaluation.models import Run
from review.gold.freezing import LONGEST_NAME, freeze, grow
from review.gold.overview import GoldOverview, overview, shown_items
from review.models import GoldSet, Look


class GoldSetSerializer(ModelSerializer[GoldSet]):
    """A version of a gold set."""

    class Meta:
        model = GoldSet
        fields = ("id", "project", "name", "version", "content_hash", "created_at")
        read_only_fields = fields


class PartSerializer(Serializer[Any]):
    """Labels of a metric in one part."""

    answers = IntegerField()
    groups = IntegerField()
    seen = IntegerField()


class MetricInGoldSerializer(Serializer[Any]):
    """A metric of a gold set, what its hold-out lacks, and how near experts come to each other."""

    metric = CharField()
    parts = DictField(child=PartSerializer())
    lacks_groups = IntegerField()
    lacks_answers = IntegerField()
    several_raters = IntegerField()
    expert_loss = FloatField(allow_null=True)


class GoldOverviewSerializer(Serializer[Any]):
    """What a gold set holds and lacks, and what its looks have spent; ``changed`` is empty where it is as frozen."""

    name = CharField()
    version = IntegerField()
    content_hash = CharField()
    metrics = MetricInGoldSerializer(many=True)
    categories = DictField(child=IntegerField())
    looks = IntegerField()
    left = FloatField()
    changed = ListField(child=CharField())


class GoldLabelSerializer(Serializer[Any]):
    """A label of examples or validation."""

    split = CharField()
    question_id = CharField()
    question = CharField()
    answer_id = IntegerField()
    answer = CharField()
    category = CharField()
    group = CharField()
    metric = CharField()
    value = FloatField(source="label")
    raters = IntegerField()
    weight = FloatField()
    seen = BooleanField()


class FreezeSerializer(StrictSerializer):
    """Which ratings to freeze: those of a run's answers, of all metrics or of those named."""

    run = IntegerField(min_value=1)
    name = CharField(max_length=LONGEST_NAME)
    metrics = ListField(child=CharField(max_length=64), default=list, max_length=100)
    seed = IntegerField(default=0, min_value=0, max_value=2**32)


class GrowSerializer(StrictSerializer):
    """Whose ratings to add."""

    run = IntegerField(min_value=1)


class LookSerializer(ModelSerializer[Look]):
    """A look: what was tested, and whether it was accepted; ``outcome`` is null while it is under way."""

    judge = CharField(source="judge_version.name", read_only=True)
    candidate = CharField(read_only=True)
    active = CharField(read_only=True)
    gold_set = CharField(read_only=True)
    outcome = CharField(source="result.outcome", default=None, allow_null=True, read_only=True)
    ended_at = DateTimeField(source="result.created_at", default=None, allow_null=True, read_only=True)

    class Meta:
        model = Look
        fields = (
            *("id", "project", "gold_set", "number", "step", "judge", "candidate", "active", "claim", "outcome"),
            *("created_at", "ended_at"),
        )
        read_only_fields = fields


GOLD_SETS = GoldSet.objects.select_related("project")


def _for_lead(user: Person, pk: int) -> GoldSet:
    return fetch(GOLD_SETS, user, Action.MANAGE_REVIEW, pk, path="project_id")


def _run(user: Person, pk: int) -> Run:
    return fetch(Run.objects.select_related("project"), user, Action.MANAGE_REVIEW, pk)


class GoldSetViewSet(RowsViewSet):
    """Versions of gold sets, newest first. Leads freeze labels and let a set grow; evaluators read the open parts."""

    rows = GOLD_SETS
    path = "project_id"
    serializer_class = GoldSetSerializer

    @written_by(GoldSetSerializer, status=201, body=FreezeSerializer)
    def create(self, request: Request) -> GoldSet:
        """Freeze the blind first ratings of a run's answers, and split them for good."""
        asked = self.body()
        run = _run(request.user, asked.pop("run"))
        return freeze(run, by=person(request), **asked)

    @written_by(GoldOverviewSerializer)
    def retrieve(self, request: Request, pk: int) -> GoldOverview:
        """What it holds and lacks, and what its looks have spent."""
        return overview(self.get_object())

    @verb(_for_lead, GoldSetSerializer, body=GrowSerializer, status=201)
    def grow(self, gold_set: GoldSet, asked: dict[str, Any]) -> GoldSet:
        """The next version, with the labels of a run's answers that it does not hold yet."""
        return grow(_run(self.request.user, asked["run"]), gold_set.name, by=person(self.request))

    @part(GoldLabelSerializer, many=True)
    def export(self, request: Request, pk: int) -> list[dict[str, object]]:
        """The labels of examples and validation; those of the hold-out are not given."""
        return shown_items(fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id"))


class CalibrationViewSet(RowsViewSet):
    """Looks at hold-outs, newest first. They are taken by the command ``accept``."""

    rows: ClassVar[QuerySet[Any]] = Look.objects.select_related(
        "gold_set", "judge_version", "candidate", "active", "result"
    )
    path = "project_id"
    serializer_class = LookSerializer
