"""REST API of gold sets, hold-out tests and searches."""

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

from evaluation.accounts.access import UserOrAnonymous, fetch
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import MAX_REASON_LENGTH, usable_rubrics
from evaluation.models import HoldOutOpening, JudgeVersion, RubricVersion, Run
from evaluation.rest.endpoints import (
    RowsViewSet,
    StrictSerializer,
    detail_action,
    detail_view,
    request_user,
    responds_with,
    serialize,
)
from evaluation.rest.requests import PagesOldestFirst
from review.calibration.anchors import PASSED_RESULTS, CheckSummary, request_check, summarize_checks
from review.calibration.holdout_rules import MAX_REPEATS, HoldoutForecast, forecast_holdout_test
from review.calibration.holdout_tests import advance_holdout_test, request_holdout_test
from review.calibration.openings import hold_out_openings, open_hold_outs
from review.calibration.overview import GoldOverview, labelled_families, overview, readable_labels
from review.calibration.retirement import HoldoutResult, holdout_results, retire
from review.calibration.search import MAX_ROUNDS, advance_search, open_search, request_search
from review.calibration.versions import MAX_NAME_CHARS, freeze, grow, secret_seed
from review.models import AnchorCheck, GoldSet, HoldoutTest, Search
from review.statistics.acceptance import Claim


class GoldSetSerializer(ModelSerializer[GoldSet]):
    """A version of a gold set."""

    class Meta:
        model = GoldSet
        fields = ("id", "project", "name", "version", "content_hash", "created_at")
        read_only_fields = fields


class GoldOverviewSerializer(DataclassSerializer[GoldOverview]):
    """Content, shortfall and test count of a gold set; ``changed`` is empty if it is as frozen."""

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
    """Ratings to freeze: those of a run's answers, of all metrics or of the named ones."""

    run = IntegerField(min_value=1)
    name = CharField(max_length=MAX_NAME_CHARS)
    metrics = ListField(child=CharField(max_length=64), default=list, max_length=100)


class GrowSerializer(StrictSerializer):
    """Run whose ratings are added."""

    run = IntegerField(min_value=1)


class JudgeRubricSerializer(StrictSerializer):
    """A rubric version and a judge, by the id of any of its versions.

    ``added_since``: use only groups added by this version of the gold set or later."""

    rubric = IntegerField(min_value=1)
    judge = IntegerField(min_value=1)
    added_since = IntegerField(default=1, min_value=1)


class HoldoutTestRequestSerializer(JudgeRubricSerializer):
    """A hold-out test: its claim, and how often each answer is judged.

    ``beside``: id of a judge version proven on the gold set, which this judge must not fall below."""

    gold_set = IntegerField(min_value=1)
    claim = ChoiceField(choices=[str(claim) for claim in Claim], default=str(Claim.BETTER))
    repeat = IntegerField(default=1, min_value=1, max_value=MAX_REPEATS)
    beside = IntegerField(default=None, allow_null=True, min_value=1)


class HoldoutForecastSerializer(DataclassSerializer[HoldoutForecast]):
    """Forecast of the next hold-out test on a metric, from verdicts on validation only."""

    class Meta:
        dataclass = HoldoutForecast


class RetireSerializer(StrictSerializer):
    """Reason for retiring a gold set; it is stored permanently."""

    reason = CharField(max_length=MAX_REASON_LENGTH)


class OpeningSerializer(ModelSerializer[HoldOutOpening]):
    """A lead's opening of the sealed labels of a lineage.

    Until ``ended_at`` (null while the lineage is in use) this person may not draft or propose versions of the rubric
    ``families``."""

    opened_by = CharField(source="created_by.username", read_only=True)

    class Meta:
        model = HoldOutOpening
        fields = ("lineage", "opened_by", "families", "created_at", "ended_at")
        read_only_fields = fields


class HoldoutResultSerializer(DataclassSerializer[HoldoutResult]):
    """Result of a hold-out test on a metric, in squared units of its scale, with the 95% interval of ``lower_by``."""

    class Meta:
        dataclass = HoldoutResult


class AnchorCheckSerializer(DataclassSerializer[CheckSummary]):
    """A drift check of a judge; ``number`` 0 is the reference.

    ``at`` is empty while it is under way; ``waits_for`` is the code of the reason if it is stalled."""

    class Meta:
        dataclass = CheckSummary


class HoldoutTestSerializer(ModelSerializer[HoldoutTest]):
    """A hold-out test and its outcome.

    ``outcome`` is null while it is under way; ``waits_for`` is the code of the reason if it is stalled."""

    judge = CharField(source="judge_version.name", read_only=True)
    candidate = CharField(read_only=True)
    active = CharField(read_only=True)
    against = CharField(default=None, allow_null=True, read_only=True)
    gold_set = CharField(read_only=True)
    waits_for = CharField(default="", read_only=True)
    outcome = CharField(source="result.outcome", default=None, allow_null=True, read_only=True)
    ended_at = DateTimeField(source="result.created_at", default=None, allow_null=True, read_only=True)

    class Meta:
        model = HoldoutTest
        fields = (
            *("id", "project", "gold_set", "number", "step", "judge", "candidate", "active", "claim", "against"),
            *("outcome", "waits_for", "created_at", "ended_at"),
        )
        read_only_fields = fields


GOLD_SETS = GoldSet.objects.select_related("project")


def _fetch_as_lead(user: UserOrAnonymous, pk: int) -> GoldSet:
    return fetch(GOLD_SETS, user, Action.MANAGE_REVIEW, pk, path="project_id")


def _fetch_run(user: UserOrAnonymous, pk: int) -> Run:
    return fetch(Run.objects.select_related("project"), user, Action.MANAGE_REVIEW, pk)


class GoldSetViewSet(RowsViewSet):
    """Versions of gold sets, newest first. Leads freeze labels and let a set grow; evaluators read the open parts."""

    rows = GOLD_SETS
    path = "project_id"
    serializer_class = GoldSetSerializer

    @responds_with(GoldSetSerializer, status=201, body=FreezeSerializer)
    def create(self, request: Request) -> GoldSet:
        """Freeze the blind first ratings of a run's answers, and split them for good."""
        fields = self.body()
        run = _fetch_run(request.user, fields.pop("run"))
        return freeze(run, by=request_user(request), seed=secret_seed(), **fields)

    @responds_with(GoldOverviewSerializer)
    def retrieve(self, request: Request, pk: int) -> GoldOverview:
        """Content and shortfall of the gold set, and its number of hold-out tests."""
        return overview(self.get_object())

    @detail_action(_fetch_as_lead, GoldSetSerializer, body=GrowSerializer, status=201)
    def grow(self, gold_set: GoldSet, fields: dict[str, Any]) -> GoldSet:
        """Create the next version with additional labels of a run's answers."""
        return grow(_fetch_run(self.request.user, fields["run"]), gold_set.name, by=request_user(self.request))

    @detail_action(_fetch_as_lead, GoldOverviewSerializer, body=RetireSerializer)
    def retire(self, gold_set: GoldSet, fields: dict[str, Any]) -> GoldOverview:
        """Retire the lineage permanently, and reveal the results of its hold-out tests."""
        retire(gold_set, by=request_user(self.request), reason=fields["reason"])
        return overview(gold_set)

    @detail_action(_fetch_as_lead, OpeningSerializer, many=True)
    def open(self, gold_set: GoldSet) -> list[HoldOutOpening]:
        """Let the caller read sealed labels of the project.

        It is recorded, and bars the caller from drafting and proposing prompts that are tested on them."""
        return open_hold_outs(gold_set.project, by=request_user(self.request))

    @detail_view(OpeningSerializer, many=True)
    def openings(self, request: Request, pk: int) -> list[HoldOutOpening]:
        """Openings of the lineage's sealed labels, newest first."""
        return list(hold_out_openings(fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id")))

    @detail_view(HoldoutResultSerializer, many=True)
    def hold_out(self, request: Request, pk: int) -> list[HoldoutResult]:
        """Results of the hold-out tests of a retired lineage; refused before it is retired."""
        return holdout_results(fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id"))

    @detail_view(GoldLabelSerializer, many=True)
    def export(self, request: Request, pk: int) -> list[dict[str, object]]:
        """Labels of examples and validation; also those of the hold-out once the lineage is retired."""
        return readable_labels(fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id"))

    @detail_view(HoldoutForecastSerializer, many=True, query=JudgeRubricSerializer)
    def forecast(self, request: Request, pk: int) -> Sequence[HoldoutForecast]:
        """Forecast a hold-out test of a version."""
        gold_set = fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id")
        parameters = self.validated_query()
        return forecast_holdout_test(
            gold_set, *_fetch_judge_and_rubric(gold_set, parameters), since=parameters["added_since"]
        )


def _fetch_judge_and_rubric(gold_set: GoldSet, fields: Mapping[str, Any]) -> tuple[JudgeVersion, RubricVersion]:
    """Fetch the judge and version from the gold set's project.

    :raises ValidationError: naming the field whose id does not exist."""
    judges = JudgeVersion.objects.filter(project=gold_set.project_id).select_related("endpoint", "project")
    judge = judges.filter(pk=fields["judge"]).first()
    rubric = usable_rubrics([gold_set.project_id]).filter(pk=fields["rubric"]).first()
    if judge is None or rubric is None:
        missing = "judge" if judge is None else "rubric"
        raise ValidationError({missing: [_("This project has no item with this ID.")]})
    return judge, rubric


def _fetch_test_as_lead(user: UserOrAnonymous, pk: int) -> HoldoutTest:
    return fetch(HoldoutTest.objects.select_related("candidate"), user, Action.ACTIVATE, pk, path="project_id")


class CalibrationViewSet(RowsViewSet):
    """Hold-out tests, newest first. A POST by a lead requests one from a worker."""

    rows: ClassVar[QuerySet[Any]] = HoldoutTest.objects.select_related(
        "gold_set", "judge_version", "candidate", "active", "against", "result"
    ).annotate(waits_for=advance_holdout_test.problem())
    path = "project_id"
    serializer_class = HoldoutTestSerializer

    @responds_with(HoldoutTestSerializer, status=202, body=HoldoutTestRequestSerializer)
    def create(self, request: Request) -> HoldoutTest:
        """Request a hold-out test, or resume a stalled one with the same parameters. It counts from the request."""
        fields = self.body()
        gold_set = fetch(GOLD_SETS, request.user, Action.ACTIVATE, fields["gold_set"], path="project_id")
        judge, rubric = _fetch_judge_and_rubric(gold_set, fields)
        reference_judge = (
            None
            if fields["beside"] is None
            else _fetch_judge_and_rubric(gold_set, fields | {"judge": fields["beside"]})[0]
        )
        options = {"claim": Claim(fields["claim"]), "repeat": fields["repeat"], "since": fields["added_since"]}
        test = request_holdout_test(
            gold_set, judge, rubric, by=request_user(request), reference_judge=reference_judge, **options
        )
        created: HoldoutTest = self.rows.get(pk=test.pk)
        return created

    @detail_action(_fetch_test_as_lead, AnchorCheckSerializer, status=202)
    def check(self, test: HoldoutTest) -> CheckSummary:
        """Have a worker judge the anchors of an accepted test again."""
        passed_result = PASSED_RESULTS.filter(test=test).first()
        if passed_result is None:
            raise DomainError("anchors_not_approved", rubric=str(test.candidate))
        check = request_check(passed_result, by=request_user(self.request))
        return summarize_checks(AnchorCheck.objects.filter(pk=check.pk))[0]

    @detail_view(AnchorCheckSerializer, pages=PagesOldestFirst)
    def checks(self, request: Request, pk: int) -> Response:
        """Drift checks of the test, the reference first."""
        page = self.paginate_queryset(AnchorCheck.objects.filter(result__test=self.get_object())) or []
        summaries = summarize_checks(AnchorCheck.objects.filter(pk__in=[row.pk for row in page]))
        return self.get_paginated_response(serialize(AnchorCheckSerializer, summaries, many=True))


class SearchRequestSerializer(StrictSerializer):
    """A search: a rubric family and judge to improve on the open labels of a gold set.

    ``rounds`` applies to rewriting; ``budget`` is in US dollars over all calls."""

    gold_set = IntegerField(min_value=1)
    judge = IntegerField(min_value=1)
    family = CharField(max_length=100)
    strategy = ChoiceField(choices=Search.Strategy.choices)
    rounds = IntegerField(default=3, min_value=1, max_value=MAX_ROUNDS)
    budget = DecimalField(max_digits=12, decimal_places=4, min_value=0, default=None, allow_null=True)


class SearchSerializer(ModelSerializer[Search]):
    """A search. ``outcome`` is null while it is under way; ``waits_for`` is the code of the reason if it is stalled.

    ``version`` is the proposed version; ``figures`` are the validation figures of each version."""

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
        """Return the ids of its runs, oldest first."""
        return [search_run.run_id for search_run in search.runs.all()]


class SearchViewSet(RowsViewSet):
    """Searches for better judge prompts, newest first. A POST by an evaluator requests one from workers."""

    rows: ClassVar[QuerySet[Any]] = (
        Search.objects.select_related("gold_set", "judge_version", "active", "result__version")
        .prefetch_related("runs")
        .annotate(waits_for=advance_search.problem())
    )
    path = "gold_set__project_id"
    serializer_class = SearchSerializer

    @responds_with(SearchSerializer, status=202, body=SearchRequestSerializer)
    def create(self, request: Request) -> Search:
        """Start a search, or resume a stalled one with the same parameters."""
        fields = self.body()
        rows = GoldSet.objects.select_related("project")
        gold_set = fetch(rows, request.user, Action.EVALUATE, fields["gold_set"], path="project_id")
        judges = JudgeVersion.objects.filter(project=gold_set.project_id).select_related("endpoint", "project")
        judge = judges.filter(pk=fields["judge"]).first()
        if judge is None:
            raise ValidationError({"judge": [_("This project has no item with this ID.")]})
        if fields["family"] not in labelled_families(gold_set):
            raise ValidationError({"family": [_("The gold set has no labels for this rubric.")]})
        options = {"by": request_user(request), "rounds": fields["rounds"], "budget": fields["budget"] or None}
        search = open_search(gold_set, judge, fields["family"], fields["strategy"], **options)
        request_search(search)
        created: Search = self.rows.get(pk=search.pk)
        return created
