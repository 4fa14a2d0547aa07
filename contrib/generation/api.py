"""REST: generated question sets and the decisions on their questions."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.routers import SimpleRouter
from rest_framework.serializers import (
    CharField,
    ChoiceField,
    DecimalField,
    DictField,
    IntegerField,
    ListField,
    ModelSerializer,
    SerializerMethodField,
)

from contrib.corpora.models import Corpus
from contrib.generation.kinds import KINDS
from contrib.generation.models import DraftDecision, DraftQuestion, Generation
from contrib.generation.runner import enqueue_generation, write_questions
from contrib.generation.selectors import latest_decision
from contrib.generation.services import (
    MAX_PASSAGES,
    MAX_PER_PASSAGE,
    GenerationSpec,
    create_question_set,
    decide,
    edit_content,
    open_generation,
)
from evaluation.accounts.access import fetch
from evaluation.core.roles import Action
from evaluation.models import JudgeVersion, QuestionSet
from evaluation.rest.endpoints import (
    RowsViewSet,
    StrictSerializer,
    ViewSet,
    detail_action,
    detail_view,
    request_user,
    responds_with,
)
from evaluation.rest.requests import PagesOldestFirst

DRAFTS = DraftQuestion.objects.select_related("generation__corpus__project").prefetch_related("decisions")
EDITABLE_FIELDS = ("text", "references", "keywords", "required_info")


class GenerationAskedSerializer(StrictSerializer):
    """Spec of a generation; ``budget`` is in US dollars over all calls."""

    corpus = IntegerField(min_value=1)
    judge = IntegerField(min_value=1)
    name = CharField(max_length=200)
    language = ChoiceField(choices=Generation.Language.choices, default="en")
    kinds = ListField(child=ChoiceField(choices=[*KINDS]), default=[*KINDS], min_length=1)
    passages = IntegerField(min_value=1, max_value=MAX_PASSAGES, default=20)
    per_passage = IntegerField(min_value=1, max_value=MAX_PER_PASSAGE, default=1)
    seed = IntegerField(min_value=0, max_value=2**31 - 1, default=None, allow_null=True)
    budget = DecimalField(max_digits=12, decimal_places=4, min_value=0, default=None, allow_null=True)


class GenerationSerializer(ModelSerializer[Generation]):
    """A generation. ``outcome`` is null until it ends; ``waits_for`` is the reason code of a block. ``figures`` count
    written and removed questions."""

    project = IntegerField(source="corpus.project_id", read_only=True)
    corpus = CharField(read_only=True)
    judge = CharField(source="judge_version.name", read_only=True)
    waits_for = CharField(default="", read_only=True)
    outcome = CharField(source="result.outcome", default=None, allow_null=True, read_only=True)
    figures = DictField(source="result.figures", default=dict, read_only=True)

    class Meta:
        model = Generation
        fields = (
            *("id", "project", "corpus", "judge", "name", "language", "kinds", "passages", "per_passage", "seed"),
            *("budget", "writer", "waits_for", "outcome", "figures", "created_at"),
        )
        read_only_fields = fields


class DraftSerializer(ModelSerializer[DraftQuestion]):
    """A generated question: ``content`` as written, ``removed_by`` the filter that removed it, ``verb`` the lead's
    decision (null before it), ``edited`` the edited content."""

    content = DictField(read_only=True)
    detail = DictField(read_only=True)
    verb = SerializerMethodField()
    edited = SerializerMethodField()

    class Meta:
        model = DraftQuestion
        fields = ("id", "position", "kind", "content", "removed_by", "detail", "verb", "edited")
        read_only_fields = fields

    def get_verb(self, draft: DraftQuestion) -> str | None:
        """Return the decision that counts."""
        decision = latest_decision(draft)
        return decision.verb if decision else None

    def get_edited(self, draft: DraftQuestion) -> dict[str, Any] | None:
        """Return the edited content of an accepted question."""
        decision = latest_decision(draft)
        return decision.content if decision else None


class DecisionSerializer(StrictSerializer):
    """Accept, optionally with edits, or reject."""

    verb = ChoiceField(choices=DraftDecision.Verb.choices)
    text = CharField(max_length=2_000, required=False)
    references = ListField(child=CharField(max_length=8_000), required=False)
    keywords = ListField(child=ListField(child=CharField(max_length=500)), required=False)
    required_info = ListField(child=CharField(max_length=2_000), required=False)


class SetMadeSerializer(StrictSerializer):
    """The version of the question set with the accepted questions."""

    id = IntegerField()
    name = CharField()
    version = IntegerField()


def _fetch_for_lead(rows: QuerySet[Any], path: str) -> Callable[[Any, int], Any]:
    """Return a function that fetches a row for a lead of its project."""
    return lambda user, pk: fetch(rows.all(), user, Action.MANAGE_REVIEW, pk, path=path)


class GenerationViewSet(RowsViewSet):
    """Generated question sets, newest first. An evaluator starts one by a POST; a lead creates the question set."""

    rows: ClassVar[QuerySet[Any]] = Generation.objects.select_related("corpus", "judge_version", "result").annotate(
        waits_for=write_questions.problem()
    )
    path = "corpus__project_id"
    serializer_class = GenerationSerializer

    @responds_with(GenerationSerializer, status=202, body=GenerationAskedSerializer)
    def create(self, request: Request) -> Generation:
        """Start a generation, or resume a blocked one with the same spec."""
        body = self.body()
        corpus = fetch(
            Corpus.objects.select_related("project"),
            request.user,
            Action.EVALUATE,
            body.pop("corpus"),
            path="project_id",
        )
        judges = JudgeVersion.objects.filter(project=corpus.project_id).select_related("endpoint", "project")
        judge = judges.filter(pk=body.pop("judge")).first()
        if judge is None:
            raise ValidationError({"judge": [_("This project has no item with this ID.")]})
        body["budget"] = body["budget"] or None
        body["kinds"] = tuple(body["kinds"])
        generation = open_generation(corpus, judge, GenerationSpec(**body), by=request_user(request))
        enqueue_generation(generation)
        annotated: Generation = self.rows.get(pk=generation.pk)
        return annotated

    @detail_view(DraftSerializer, pages=PagesOldestFirst)
    def questions(self, request: Request, pk: int) -> Any:
        """Written questions in order, with filter and decision."""
        generation = fetch(Generation.objects.all(), request.user, Action.EVALUATE, pk, path=self.path)
        return DRAFTS.filter(generation=generation).order_by("pk")

    @detail_action(
        _fetch_for_lead(Generation.objects.select_related("corpus__project", "judge_version"), path), SetMadeSerializer
    )
    def set(self, generation: Generation) -> QuestionSet:
        """Create a version of the question set from the accepted questions."""
        return create_question_set(generation, by=request_user(self.request)).question_set


class DraftViewSet(ViewSet):
    """Generated questions."""

    @detail_action(_fetch_for_lead(DRAFTS, "generation__corpus__project_id"), DraftSerializer, body=DecisionSerializer)
    def decide(self, draft: DraftQuestion, body: dict[str, Any]) -> DraftQuestion:
        """Accept a question, optionally with edits, or reject it; the latest decision counts."""
        changes = {name: body[name] for name in EDITABLE_FIELDS if name in body}
        content = edit_content(draft, changes) if changes else None
        decide(draft, body["verb"], by=request_user(self.request), content=content)
        updated: DraftQuestion = DRAFTS.get(pk=draft.pk)
        return updated


router = SimpleRouter(use_regex_path=False)
router.register("generations", GenerationViewSet, "api-generation")
router.register("generated-questions", DraftViewSet, "api-generated-question")
urlpatterns = router.urls
