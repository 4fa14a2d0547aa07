"""REST: machines that propose versions of judge prompts."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.serializers import (
    CharField,
    ChoiceField,
    DateTimeField,
    DecimalField,
    DictField,
    IntegerField,
    ListField,
    ModelSerializer,
    PrimaryKeyRelatedField,
    SerializerMethodField,
)

from evaluation.accounts.access import fetch
from evaluation.api.endpoints import RowsViewSet, StrictSerializer, person, written_by
from evaluation.core.roles import Action
from evaluation.models import JudgeVersion
from review.calibration.searching import MOST_ROUNDS, advance_search, ask_for_search, open_search
from review.gold.overview import families_in
from review.models import GoldSet, Search


class SearchAskedSerializer(StrictSerializer):
    """What to better: a family for the judges of a name, on the open labels of a gold set; ``rounds`` of a rewriting;
    ``budget`` in US dollars over all its calls."""

    gold_set = IntegerField(min_value=1)
    judge = IntegerField(min_value=1)
    family = CharField(max_length=100)
    strategy = ChoiceField(choices=Search.Strategy.choices)
    rounds = IntegerField(default=3, min_value=1, max_value=MOST_ROUNDS)
    budget = DecimalField(max_digits=12, decimal_places=4, min_value=0, default=None, allow_null=True)


class SearchSerializer(ModelSerializer[Search]):
    """A search: ``outcome`` is null while it is under way, ``waits_for`` then the code of why it stands still, where it
    does; ``version`` is the one it offered, ``figures`` what validation told of each version."""

    project = IntegerField(source="gold_set.project_id", read_only=True)
    gold_set = CharField(read_only=True)
    judge = CharField(source="judge_version.name", read_only=True)
    active = CharField(read_only=True)
    runs = SerializerMethodField()
    waits_for = CharField(default="", read_only=True)
    outcome = CharField(source="result.outcome", default=None, allow_null=True, read_only=True)
    version: Any = PrimaryKeyRelatedField(source="result.version", default=None, allow_null=True, read_only=True)
    figures = ListField(child=DictField(), source="result.figures", default=list, read_only=True)
    ended_at = DateTimeField(source="result.created_at", default=None, allow_null=True, read_only=True)

    class Meta:
        model = Search
        fields = (
            *("id", "project", "gold_set", "judge", "family", "strategy", "rounds", "budget", "active", "runs"),
            *("waits_for", "outcome", "version", "figures", "created_at", "ended_at"),
        )
        read_only_fields = fields

    def get_runs(self, search: Search) -> list[int]:
        """The runs in which it has versions judged, the oldest first."""
        return [one.run_id for one in search.runs.all()]


class SearchViewSet(RowsViewSet):
    """Searches for better judge prompts, newest first. A POST by an evaluator has workers go on one."""

    rows: ClassVar[QuerySet[Any]] = (
        Search.objects.select_related("gold_set", "judge_version", "active", "result__version")
        .prefetch_related("runs")
        .annotate(waits_for=advance_search.problem())
    )
    path = "gold_set__project_id"
    serializer_class = SearchSerializer

    @written_by(SearchSerializer, status=202, body=SearchAskedSerializer)
    def create(self, request: Request) -> Search:
        """Begin a search, or go on with the same one that stands still."""
        asked = self.body()
        rows = GoldSet.objects.select_related("project")
        gold_set = fetch(rows, request.user, Action.EVALUATE, asked["gold_set"], path="project_id")
        judges = JudgeVersion.objects.filter(project=gold_set.project_id).select_related("endpoint", "project")
        judge = judges.filter(pk=asked["judge"]).first()
        if judge is None:
            raise ValidationError({"judge": [_("The project has none with this id.")]})
        if asked["family"] not in families_in(gold_set):
            raise ValidationError({"family": [_("The gold set has no labels of such a rubric.")]})
        more = {"by": person(request), "rounds": asked["rounds"], "budget": asked["budget"] or None}
        search = open_search(gold_set, judge, asked["family"], asked["strategy"], **more)
        ask_for_search(search)
        made: Search = self.rows.get(pk=search.pk)
        return made
