"""REST: question sets that a model writes over a corpus, and what is decided on each question."""

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
from contrib.generation.selectors import decided
from contrib.generation.services import (
    MOST_PASSAGES,
    MOST_PER_PASSAGE,
    Wanted,
    decide,
    edited,
    make_set,
    open_generation,
)
from contrib.generation.working import ask_for, write_questions
from evaluation.accounts.access import fetch
from evaluation.core.roles import Action
from evaluation.models import JudgeVersion, QuestionSet
from evaluation.rest.endpoints import RowsViewSet, StrictSerializer, ViewSet, part, person, verb, written_by
from evaluation.rest.requests import PagesInOrder

DRAFTS = DraftQuestion.objects.select_related("generation__corpus__project").prefetch_related("decisions")
WORDS = ("text", "references", "keywords", "required_info")


class GenerationAskedSerializer(StrictSerializer):
    """What is to be written; ``budget`` in US dollars over all calls."""

    corpus = IntegerField(min_value=1)
    judge = IntegerField(min_value=1)
    name = CharField(max_length=200)
    language = ChoiceField(choices=Generation.Language.choices, default="en")
    kinds = ListField(child=ChoiceField(choices=[*KINDS]), default=[*KINDS], min_length=1)
    passages = IntegerField(min_value=1, max_value=MOST_PASSAGES, default=20)
    per_passage = IntegerField(min_value=1, max_value=MOST_PER_PASSAGE, default=1)
    seed = IntegerField(min_value=0, max_value=2**31 - 1, default=None, allow_null=True)
    budget = DecimalField(max_digits=12, decimal_places=4, min_value=0, default=None, allow_null=True)


class GenerationSerializer(ModelSerializer[Generation]):
    """A generation: ``outcome`` is null while it is under way, ``waits_for`` then the code of why it stands still,
    where it does; ``figures`` count what was written and what each filter took out."""

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
    """A generated question: ``content`` as it was written, ``removed_by`` the filter that took it out, ``verb`` what a
    lead decided (null before that), ``edited`` its content in other words."""

    content = DictField(read_only=True)
    detail = DictField(read_only=True)
    verb = SerializerMethodField()
    edited = SerializerMethodField()

    class Meta:
        model = DraftQuestion
        fields = ("id", "position", "kind", "content", "removed_by", "detail", "verb", "edited")
        read_only_fields = fields

    def get_verb(self, draft: DraftQuestion) -> str | None:
        """The decision that counts."""
        decision = decided(draft)
        return decision.verb if decision else None

    def get_edited(self, draft: DraftQuestion) -> dict[str, Any] | None:
        """The question in other words, where it was accepted so."""
        decision = decided(draft)
        return decision.content if decision else None


class DecisionSerializer(StrictSerializer):
    """Accepted or rejected; an accepted one with other words where any are given."""

    verb = ChoiceField(choices=DraftDecision.Verb.choices)
    text = CharField(max_length=2_000, required=False)
    references = ListField(child=CharField(max_length=8_000), required=False)
    keywords = ListField(child=ListField(child=CharField(max_length=500)), required=False)
    required_info = ListField(child=CharField(max_length=2_000), required=False)


class SetMadeSerializer(StrictSerializer):
    """The version of the question set that holds the accepted questions."""

    id = IntegerField()
    name = CharField()
    version = IntegerField()


def _to_lead(rows: QuerySet[Any], path: str) -> Callable[[Any, int], Any]:
    """Finds a row for who leads in its project."""
    return lambda user, pk: fetch(rows.all(), user, Action.MANAGE_REVIEW, pk, path=path)


class GenerationViewSet(RowsViewSet):
    """Generated question sets, newest first. A POST by an evaluator has workers go on one; a lead makes the set."""

    rows: ClassVar[QuerySet[Any]] = Generation.objects.select_related("corpus", "judge_version", "result").annotate(
        waits_for=write_questions.problem()
    )
    path = "corpus__project_id"
    serializer_class = GenerationSerializer

    @written_by(GenerationSerializer, status=202, body=GenerationAskedSerializer)
    def create(self, request: Request) -> Generation:
        """Begin a generation, or go on with the same one that stands still."""
        asked = self.body()
        corpus = fetch(
            Corpus.objects.select_related("project"),
            request.user,
            Action.EVALUATE,
            asked.pop("corpus"),
            path="project_id",
        )
        judges = JudgeVersion.objects.filter(project=corpus.project_id).select_related("endpoint", "project")
        judge = judges.filter(pk=asked.pop("judge")).first()
        if judge is None:
            raise ValidationError({"judge": [_("The project has none with this id.")]})
        asked["budget"] = asked["budget"] or None
        asked["kinds"] = tuple(asked["kinds"])
        made = open_generation(corpus, judge, Wanted(**asked), by=person(request))
        ask_for(made)
        shown: Generation = self.rows.get(pk=made.pk)
        return shown

    @part(DraftSerializer, pages=PagesInOrder)
    def questions(self, request: Request, pk: int) -> Any:
        """What was written, in order, with what became of it."""
        generation = fetch(Generation.objects.all(), request.user, Action.EVALUATE, pk, path=self.path)
        return DRAFTS.filter(generation=generation).order_by("pk")

    @verb(_to_lead(Generation.objects.select_related("corpus__project", "judge_version"), path), SetMadeSerializer)
    def set(self, generation: Generation) -> QuestionSet:
        """Make the accepted questions a version of the question set."""
        return make_set(generation, by=person(self.request)).question_set


class DraftViewSet(ViewSet):
    """Generated questions."""

    @verb(_to_lead(DRAFTS, "generation__corpus__project_id"), DraftSerializer, body=DecisionSerializer)
    def decide(self, draft: DraftQuestion, body: dict[str, Any]) -> DraftQuestion:
        """Accept a question, as it is or with other words, or reject it; the latest decision counts."""
        words = {name: body[name] for name in WORDS if name in body}
        content = edited(draft, words) if words else None
        decide(draft, body["verb"], by=person(self.request), content=content)
        shown: DraftQuestion = DRAFTS.get(pk=draft.pk)
        return shown


router = SimpleRouter(use_regex_path=False)
router.register("generations", GenerationViewSet, "api-generation")
router.register("generated-questions", DraftViewSet, "api-generated-question")
urlpatterns = router.urls
