"""REST of gold sets, prompt calibrations and searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DateTimeField,
    DecimalField,
    DictField,
    FloatField,
    IntegerField,
    ListField,
    ModelSerializer,
    PrimaryKeyRelatedField,
    Serializer,
    SerializerMethodField,
)
from rest_framework_dataclasses.serializers import DataclassSerializer

from evaluation.accounts.access import Person, fetch
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import LONGEST_REASON, rubrics_for
from evaluation.models import HoldOutOpening, JudgeVersion, RubricVersion, Run
from evaluation.rest.endpoints import RowsViewSet, StrictSerializer, part, person, verb, written, written_by
from evaluation.rest.requests import PagesInOrder
from review.calibration.accepting import MOST_REPEATS, Foreseen, foresee
from review.calibration.anchors import PROOFS, CheckTold, ask_for_check, told_of
from review.calibration.freezing import LONGEST_NAME, freeze, grow, secret_seed
from review.calibration.looking import ask_for_look
from review.calibration.opening import open_hold_outs, openings_of
from review.calibration.overview import GoldOverview, families_in, overview, shown_items
from review.calibration.retiring import HeldOut, hold_out_figures, retire
from review.calibration.searching import MOST_ROUNDS, ask_for_search, open_search
from review.models import AnchorCheck, GoldSet, Look, Search
from review.statistics.acceptance import Claim


class GoldSetSerializer(ModelSerializer[GoldSet]):
    """A version of a gold set."""

    class Meta:
        model = GoldSet
        fields = ("id", "project", "name", "version", "content_hash", "created_at")
        read_only_fields = fields


class GoldOverviewSerializer(DataclassSerializer[GoldOverview]):
    """What a gold set holds and lacks, and what its looks have spent; ``changed`` is empty where it is as frozen."""

    class Meta:
        dataclass = GoldOverview


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


class GrowSerializer(StrictSerializer):
    """Whose ratings to add."""

    run = IntegerField(min_value=1)


class ForWhomSerializer(StrictSerializer):
    """A version of a judge prompt for the judges of a name, by the id of one of their versions; ``added_since``: only
    groups that this version of the gold set or a later one brought."""

    rubric = IntegerField(min_value=1)
    judge = IntegerField(min_value=1)
    added_since = IntegerField(default=1, min_value=1)


class LookAskedSerializer(ForWhomSerializer):
    """A look to take: what the version is to show, and how often each answer is judged. ``beside``: a judge proved on
    the gold set, by the id of a version, from which this one must not fall off."""

    gold_set = IntegerField(min_value=1)
    claim = ChoiceField(choices=[str(one) for one in Claim], default=str(Claim.BETTER))
    repeat = IntegerField(default=1, min_value=1, max_value=MOST_REPEATS)
    beside = IntegerField(default=None, allow_null=True, min_value=1)


class ForeseenSerializer(DataclassSerializer[Foreseen]):
    """What the next look could tell of a metric, by verdicts on validation answers alone."""

    class Meta:
        dataclass = Foreseen


class RetireSerializer(StrictSerializer):
    """Why nobody is to look at it any more; kept for ever."""

    reason = CharField(max_length=LONGEST_REASON)


class OpeningSerializer(ModelSerializer[HoldOutOpening]):
    """A lead opened the sealed labels of a lineage. Until ``ended_at`` (null while the lineage is in use) this person
    may not draft or propose versions of the rubric ``families``."""

    opened_by = CharField(source="created_by.username", read_only=True)

    class Meta:
        model = HoldOutOpening
        fields = ("lineage", "opened_by", "families", "created_at", "ended_at")
        read_only_fields = fields


class HeldOutSerializer(DataclassSerializer[HeldOut]):
    """What a look saw of a metric, in squared units of its scale, with the 95% interval of ``lower_by``."""

    class Meta:
        dataclass = HeldOut


class CheckSerializer(DataclassSerializer[CheckTold]):
    """A check whether the judge moved since it was proved; ``number`` 0 is the reference. ``at`` is empty while it is
    under way, ``waits_for`` then the code of why it stands still, where it does."""

    class Meta:
        dataclass = CheckTold


class LookSerializer(ModelSerializer[Look]):
    """A look: what was tested, and whether it was accepted; ``outcome`` is null while it is under way;
    ``waits_for`` is then the code of why it stands still, where it does."""

    judge = CharField(source="judge_version.name", read_only=True)
    candidate = CharField(read_only=True)
    active = CharField(read_only=True)
    against = CharField(default=None, allow_null=True, read_only=True)
    gold_set = CharField(read_only=True)
    waits_for = CharField(source="turn.reason", default="", read_only=True)
    outcome = CharField(source="result.outcome", default=None, allow_null=True, read_only=True)
    ended_at = DateTimeField(source="result.created_at", default=None, allow_null=True, read_only=True)

    class Meta:
        model = Look
        fields = (
            *("id", "project", "gold_set", "number", "step", "judge", "candidate", "active", "claim", "against"),
            *("outcome", "waits_for", "created_at", "ended_at"),
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
        return freeze(run, by=person(request), seed=secret_seed(), **asked)

    @written_by(GoldOverviewSerializer)
    def retrieve(self, request: Request, pk: int) -> GoldOverview:
        """What it holds and lacks, and what its looks have spent."""
        return overview(self.get_object())

    @verb(_for_lead, GoldSetSerializer, body=GrowSerializer, status=201)
    def grow(self, gold_set: GoldSet, asked: dict[str, Any]) -> GoldSet:
        """The next version, with the labels of a run's answers that it does not hold yet."""
        return grow(_run(self.request.user, asked["run"]), gold_set.name, by=person(self.request))

    @verb(_for_lead, GoldOverviewSerializer, body=RetireSerializer)
    def retire(self, gold_set: GoldSet, asked: dict[str, Any]) -> GoldOverview:
        """Retire the lineage for good: no looks any more, and what they saw is told."""
        retire(gold_set, by=person(self.request), reason=asked["reason"])
        return overview(gold_set)

    @verb(_for_lead, OpeningSerializer, many=True)
    def open(self, gold_set: GoldSet) -> list[HoldOutOpening]:
        """Let the caller read sealed labels of the project, which is recorded and bars the caller from drafting and
        proposing prompts that prove themselves on them."""
        return open_hold_outs(gold_set.project, by=person(self.request))

    @part(OpeningSerializer, many=True)
    def openings(self, request: Request, pk: int) -> list[HoldOutOpening]:
        """Who opened the sealed labels of the lineage and when, newest first."""
        return list(openings_of(fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id")))

    @part(HeldOutSerializer, many=True)
    def hold_out(self, request: Request, pk: int) -> list[HeldOut]:
        """What the looks of a retired lineage saw of its hold-out; refused before."""
        return hold_out_figures(fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id"))

    @part(GoldLabelSerializer, many=True)
    def export(self, request: Request, pk: int) -> list[dict[str, object]]:
        """The labels of examples and validation; those of the hold-out are given once the lineage is retired."""
        return shown_items(fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id"))

    @part(ForeseenSerializer, many=True, query=ForWhomSerializer)
    def forecast(self, request: Request, pk: int) -> Sequence[Foreseen]:
        """What a look could tell of a version, before one is spent."""
        gold_set = fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id")
        asked = self.asked()
        return foresee(gold_set, *_for_whom(gold_set, asked), since=asked["added_since"])


def _for_whom(gold_set: GoldSet, asked: Mapping[str, Any]) -> tuple[JudgeVersion, RubricVersion]:
    """Judge and version of the gold set's project, which the caller may see.

    :raises ValidationError: naming the one that is not there.
    """
    judges = JudgeVersion.objects.filter(project=gold_set.project_id).select_related("endpoint", "project")
    judge = judges.filter(pk=asked["judge"]).first()
    rubric = rubrics_for([gold_set.project_id]).filter(pk=asked["rubric"]).first()
    if judge is None or rubric is None:
        missing = "judge" if judge is None else "rubric"
        raise ValidationError({missing: [_("The project has none with this id.")]})
    return judge, rubric


def _look_for_lead(user: Person, pk: int) -> Look:
    return fetch(Look.objects.select_related("candidate"), user, Action.ACTIVATE, pk, path="project_id")


class CalibrationViewSet(RowsViewSet):
    """Looks at hold-outs, newest first. A POST by a lead has a worker take one; ``outcome`` is what it answers."""

    rows: ClassVar[QuerySet[Any]] = Look.objects.select_related(
        "gold_set", "judge_version", "candidate", "active", "against", "result", "turn"
    )
    path = "project_id"
    serializer_class = LookSerializer

    @written_by(LookSerializer, status=202, body=LookAskedSerializer)
    def create(self, request: Request) -> Look:
        """Take a look, or go on with the same one that stands still. It counts from now on."""
        asked = self.body()
        gold_set = fetch(GOLD_SETS, request.user, Action.ACTIVATE, asked["gold_set"], path="project_id")
        judge, rubric = _for_whom(gold_set, asked)
        beside = None if asked["beside"] is None else _for_whom(gold_set, asked | {"judge": asked["beside"]})[0]
        about = {"claim": Claim(asked["claim"]), "repeat": asked["repeat"], "since": asked["added_since"]}
        look = ask_for_look(gold_set, judge, rubric, by=person(request), beside=beside, **about)
        made: Look = self.rows.get(pk=look.pk)
        return made

    @verb(_look_for_lead, CheckSerializer, status=202)
    def check(self, look: Look) -> CheckTold:
        """Have a worker judge the anchors of an acceptance again."""
        proof = PROOFS.filter(look=look).first()
        if proof is None:
            raise Refused("anchors_not_proved", rubric=str(look.candidate))
        begun = ask_for_check(proof, by=person(self.request))
        return told_of(AnchorCheck.objects.filter(pk=begun.pk))[0]

    @part(CheckSerializer, pages=PagesInOrder)
    def checks(self, request: Request, pk: int) -> Response:
        """One page of the checks whether the judge moved since, the reference first."""
        page = self.paginate_queryset(AnchorCheck.objects.filter(result__look=self.get_object())) or []
        found = told_of(AnchorCheck.objects.filter(pk__in=[one.pk for one in page]))
        return self.get_paginated_response(written(CheckSerializer, found, many=True))


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
    waits_for = CharField(source="turn.reason", default="", read_only=True)
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

    rows: ClassVar[QuerySet[Any]] = Search.objects.select_related(
        "gold_set", "judge_version", "active", "result__version", "turn"
    ).prefetch_related("runs")
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
