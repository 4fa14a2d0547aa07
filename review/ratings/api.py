"""REST of review items and ratings."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import get_language, gettext
from django_filters.rest_framework import CharFilter, ChoiceFilter, DjangoFilterBackend, FilterSet, NumberFilter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    ValidationError,
)
from rest_framework_dataclasses.serializers import DataclassSerializer

from evaluation.accounts.access import LARGEST_ID, fetch
from evaluation.core.roles import Action
from evaluation.judges.shipping import metrics_called
from evaluation.models import Run
from evaluation.rest.endpoints import (
    FILE_BODY,
    FileOfRows,
    TextOptions,
    UploadEndpoint,
    ViewSet,
    person,
    verb,
    written_by,
)
from evaluation.rest.errors import ProblemSerializer
from evaluation.rest.fields import row_id
from evaluation.rest.requests import Pages
from review.models import Assignment, Rating
from review.queues.access import own_assignment, ratings_of
from review.ratings.card import Card, card
from review.ratings.import_files import ImportedRatings, import_ratings
from review.ratings.importing import Sampled
from review.ratings.leases import extend
from review.ratings.reveals import Finalised, JudgeSaid, finalise, reveal
from review.ratings.serializers import (
    CardShown,
    CommentBody,
    DraftBody,
    FinaliseBody,
    FinalisedShown,
    FlagBody,
    JudgeSaidShown,
    RatingShown,
    SubmitBody,
    SubmittedShown,
    changes_from,
    given_from,
)
from review.ratings.submitting import Submitted, escalate, flag, payload_of, release, save_draft, skip, submit, undo


def card_of(assignment: Assignment) -> Card:
    """The card in the caller's language."""
    return card(assignment, get_language() or "en")


class ItemViewSet(ViewSet):
    """An item: question, answer, contexts, reference and rubric; the judge only where it is shown."""

    @written_by(CardShown)
    def retrieve(self, request: Request, pk: int) -> Card:
        """The card."""
        return card_of(own_assignment(request.user, pk, shown=True))

    @verb(own_assignment, body=DraftBody)
    def draft(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Replace the draft."""
        save_draft(assignment, payload_of(given_from(body["values"]), body["comment"], body["suggestion"]))

    @verb(own_assignment, SubmittedShown, body=SubmitBody)
    def submit(self, assignment: Assignment, body: dict[str, Any]) -> Submitted:
        """Store the first ratings."""
        return submit(assignment, given_from(body.pop("values")), by=person(self.request), **body)

    @verb(own_assignment, JudgeSaidShown, many=True)
    def reveal(self, assignment: Assignment) -> list[JudgeSaid]:
        """What the judge said about each metric."""
        return reveal(assignment)

    @verb(own_assignment, FinalisedShown, body=FinaliseBody)
    def finalise(self, assignment: Assignment, body: dict[str, Any]) -> Finalised:
        """Store the final ratings."""
        changes = changes_from(body["changes"])
        return finalise(assignment, changes, by=person(self.request), active_ms=body["active_ms"])

    @verb(own_assignment, CardShown)
    def undo(self, assignment: Assignment) -> Card:
        """The item again, with what had been entered."""
        return card_of(undo(assignment, by=person(self.request)))

    @verb(own_assignment, body=CommentBody)
    def skip(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Skip."""
        skip(assignment, body["comment"])

    @verb(own_assignment, body=FlagBody)
    def flag(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Flag."""
        flag(assignment, body["kind"], body["comment"])

    @verb(own_assignment, body=CommentBody)
    def escalate(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Escalate."""
        escalate(assignment, body["comment"])

    @verb(own_assignment)
    def release(self, assignment: Assignment) -> None:
        """Release."""
        release(assignment)

    @verb(own_assignment, CardShown)
    def extend(self, assignment: Assignment) -> Card:
        """Extend."""
        return card_of(extend(assignment))


LONGEST_DEFINITIONS = 5000


class RatingFileOptions(TextOptions):
    """What is said beside a file of ratings."""

    run = row_id()
    define = CharField(
        default="",
        allow_blank=True,
        max_length=LONGEST_DEFINITIONS,
        help_text="scales of unknown metrics, NAME=1..5 and the like, separated by semicolons",
    )
    sampled = ChoiceField(choices=[str(one) for one in Sampled], default="unknown")
    layout = ChoiceField(choices=["concord", "label_studio"], default="concord")
    annotators = CharField(
        default="",
        allow_blank=True,
        max_length=LONGEST_DEFINITIONS,
        help_text="of a Label Studio export: ID=LABEL of people, separated by semicolons",
    )
    dry_run = BooleanField(default=False, help_text="only say what would be imported")


class RatingFileForm(RatingFileOptions):
    """A form with a file of ratings."""

    file = FileOfRows()


class ImportedRatingsSerializer(DataclassSerializer[ImportedRatings]):
    """What became of the rows: ratings by people, scores by judges (``failed`` of them without a value), and rows
    that were there already."""

    remarks = ProblemSerializer(many=True)

    class Meta:
        dataclass = ImportedRatings
        fields = ("human", "judge", "failed", "unchanged", "defined", "authors", "remarks")


def _id_filter(field: str) -> NumberFilter:
    return NumberFilter(field_name=field, min_value=1, max_value=LARGEST_ID, decimal_places=0)


class RatingFilter(FilterSet):  # type: ignore[misc]  # the package has no types
    """Ratings by answer, queue, run, metric, reviewer and phase."""

    answer = _id_filter("answer_id")
    queue = _id_filter("assignment__item__queue_id")
    run = _id_filter("assignment__item__run_id")
    metric = CharFilter(
        method="of_metric", help_text="its own name, or the one that reports show where it is no metric's"
    )
    reviewer = CharFilter(field_name="reviewer__username")
    phase = ChoiceFilter(field_name="phase", choices=[("initial", "initial"), ("final", "final")])

    def of_metric(self, rows: QuerySet[Rating], _: str, name: str) -> QuerySet[Rating]:
        """Those of the metrics that go by the name."""
        return rows.filter(metric__name__in=metrics_called(name))


class RatingViewSet(UploadEndpoint, ViewSet):
    """Ratings of the projects whose results the caller may see, else the caller's own; never those of an answer the
    caller still has to rate. A POST imports a file of them for the answers of a run."""

    pagination_class = Pages
    filter_backends = (DjangoFilterBackend,)
    filterset_class = RatingFilter

    def get_queryset(self) -> QuerySet[Rating]:
        """What the caller may see."""
        return (
            ratings_of(self.request.user)
            .select_related("answer__question", "metric", "reviewer", "rubric_version")
            .prefetch_related("rated_parts")
        )

    @written_by(RatingShown, paged=True)
    def list(self, request: Request) -> QuerySet[Rating]:
        """One page, newest first."""
        return self.get_queryset()

    @written_by(
        ImportedRatingsSerializer,
        status=201,
        others={200: ImportedRatingsSerializer},
        body={"multipart/form-data": RatingFileForm, **FILE_BODY},
        query=RatingFileOptions,
    )
    def create(self, request: Request) -> Response:
        """Import ratings or judge verdicts: 201 where anything was new, 200 where nothing was or for a dry run; 400
        with every problem of the file."""
        body, options = self.upload()
        run = fetch(Run.objects.all(), request.user, Action.EVALUATE, options["run"])
        defines = [one for part in options["define"].split(";") if (one := part.strip())]
        done = import_ratings(
            run,
            body.content,
            body.file_name,
            defines,
            options["sampled"],
            person(request),
            annotators=_annotators(options["annotators"]) if options["layout"] == "label_studio" else None,
            dry_run=options["dry_run"],
        )
        stored = (done.human or done.judge) and not options["dry_run"]
        return Response(done, status=201 if stored else 200)


def _annotators(text: str) -> dict[str, str]:
    """``ID=LABEL;ID=LABEL`` as a mapping.

    :raises ValidationError: for a part that is not written like this.
    """
    pairs = [part.partition("=") for part in text.split(";") if part.strip()]
    if any(not key.strip() or not label.strip() for key, _, label in pairs):
        raise ValidationError({"annotators": [gettext("Write ID=LABEL, separated by semicolons.")]})
    return {key.strip(): label.strip() for key, _, label in pairs}
