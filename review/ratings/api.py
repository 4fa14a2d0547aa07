"""REST: review items and ratings."""

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

from evaluation.accounts.access import MAX_ID, fetch
from evaluation.core.roles import Action
from evaluation.judges.shipped import metrics_matching
from evaluation.models import Run
from evaluation.rest.endpoints import (
    FILE_BODY,
    FormFileField,
    TextOptions,
    UploadEndpoint,
    ViewSet,
    detail_action,
    request_user,
    responds_with,
)
from evaluation.rest.errors import ProblemSerializer
from evaluation.rest.fields import id_field
from evaluation.rest.requests import Pages
from review.models import Assignment, Rating
from review.queues.access import own_assignment, visible_ratings
from review.ratings.card import Card, build_card
from review.ratings.import_files import ImportedRatings, import_ratings
from review.ratings.importing import FileSampling
from review.ratings.leases import extend_lease
from review.ratings.reveals import FinaliseResult, JudgeComparison, finalise, reveal
from review.ratings.serializers import (
    CardShown,
    CommentBody,
    DraftBody,
    FinaliseBody,
    FinalisedShown,
    FlagBody,
    JudgeComparisonShown,
    RatingShown,
    SubmitBody,
    SubmittedShown,
    changes_from,
    rating_inputs_from,
)
from review.ratings.submitting import (
    SubmitResult,
    draft_from_inputs,
    escalate,
    flag,
    release,
    save_draft,
    skip,
    submit,
    undo,
)


def card_in_language(assignment: Assignment) -> Card:
    return build_card(assignment, get_language() or "en")


class ItemViewSet(ViewSet):
    """Items of the caller: question, answer, contexts, reference and rubric; the judge only if it may be shown."""

    @responds_with(CardShown)
    def retrieve(self, request: Request, pk: int) -> Card:
        """The card."""
        return card_in_language(own_assignment(request.user, pk, with_card=True))

    @detail_action(own_assignment, body=DraftBody)
    def draft(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Replace the draft."""
        save_draft(
            assignment, draft_from_inputs(rating_inputs_from(body["values"]), body["comment"], body["suggestion"])
        )

    @detail_action(own_assignment, SubmittedShown, body=SubmitBody)
    def submit(self, assignment: Assignment, body: dict[str, Any]) -> SubmitResult:
        """Store the first ratings."""
        return submit(assignment, rating_inputs_from(body.pop("values")), by=request_user(self.request), **body)

    @detail_action(own_assignment, JudgeComparisonShown, many=True)
    def reveal(self, assignment: Assignment) -> list[JudgeComparison]:
        """Reveal the judge's value of each metric."""
        return reveal(assignment)

    @detail_action(own_assignment, FinalisedShown, body=FinaliseBody)
    def finalise(self, assignment: Assignment, body: dict[str, Any]) -> FinaliseResult:
        """Store the final ratings."""
        changes = changes_from(body["changes"])
        return finalise(assignment, changes, by=request_user(self.request), active_ms=body["active_ms"])

    @detail_action(own_assignment, CardShown)
    def undo(self, assignment: Assignment) -> Card:
        """Reopen the item, with the values entered before."""
        return card_in_language(undo(assignment, by=request_user(self.request)))

    @detail_action(own_assignment, body=CommentBody)
    def skip(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Skip the item."""
        skip(assignment, body["comment"])

    @detail_action(own_assignment, body=FlagBody)
    def flag(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Flag the item."""
        flag(assignment, body["kind"], body["comment"])

    @detail_action(own_assignment, body=CommentBody)
    def escalate(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Escalate the item to a lead."""
        escalate(assignment, body["comment"])

    @detail_action(own_assignment)
    def release(self, assignment: Assignment) -> None:
        """Release the item."""
        release(assignment)

    @detail_action(own_assignment, CardShown)
    def extend(self, assignment: Assignment) -> Card:
        """Extend the lease."""
        return card_in_language(extend_lease(assignment))


MAX_OPTION_LENGTH = 5000


class RatingFileOptions(TextOptions):
    """Options of a rating file."""

    run = id_field()
    define = CharField(
        default="",
        allow_blank=True,
        max_length=MAX_OPTION_LENGTH,
        help_text="scales of unknown metrics, such as NAME=1..5, separated by semicolons",
    )
    sampled = ChoiceField(choices=[str(method) for method in FileSampling], default="unknown")
    layout = ChoiceField(choices=["concord", "label_studio"], default="concord")
    annotators = CharField(
        default="",
        allow_blank=True,
        max_length=MAX_OPTION_LENGTH,
        help_text="for a Label Studio export: ID=LABEL of people, separated by semicolons",
    )
    dry_run = BooleanField(default=False, help_text="only preview the import")


class RatingFileForm(RatingFileOptions):
    """A form with a file of ratings."""

    file = FormFileField()


class ImportedRatingsSerializer(DataclassSerializer[ImportedRatings]):
    """Result of an import: ratings by people, scores by judges (``failed`` of them without a value), and unchanged
    rows."""

    remarks = ProblemSerializer(many=True)

    class Meta:
        dataclass = ImportedRatings
        fields = ("human", "judge", "failed", "unchanged", "defined", "authors", "remarks")


def _id_filter(field: str, shown: str = "") -> NumberFilter:
    """Filter by an id. ``shown``: the annotation that is null where the caller may not see it."""

    def filter_rows(rows: QuerySet[Rating], _name: str, value: int) -> QuerySet[Rating]:
        # The column itself too, because only it has an index.
        return rows.filter(**{field: value, shown or field: value})

    return NumberFilter(method=filter_rows, min_value=1, max_value=MAX_ID, decimal_places=0)


class RatingFilter(FilterSet):  # type: ignore[misc]  # the package has no types
    """Ratings by answer, queue, run, metric, reviewer and phase."""

    answer = _id_filter("answer_id", "shown_answer")
    queue = _id_filter("assignment__item__queue_id")
    run = _id_filter("assignment__item__run_id", "shown_run")
    metric = CharFilter(method="of_metric", help_text="name of the metric, or the name that reports show for it")
    reviewer = CharFilter(field_name="reviewer__username")
    phase = ChoiceFilter(field_name="phase", choices=[("initial", "initial"), ("final", "final")])

    def of_metric(self, rows: QuerySet[Rating], _: str, name: str) -> QuerySet[Rating]:
        """Filter by metric name, including the names that reports show."""
        return rows.filter(metric__name__in=metrics_matching(name))


class RatingViewSet(UploadEndpoint, ViewSet):
    """Ratings of projects whose results the caller may see, else own ratings; never ratings of an answer that the
    caller still has to rate. A POST imports a file for the answers of a run."""

    pagination_class = Pages
    filter_backends = (DjangoFilterBackend,)
    filterset_class = RatingFilter

    def get_queryset(self) -> QuerySet[Rating]:
        """Ratings visible to the caller."""
        return (
            visible_ratings(self.request.user)
            .select_related("answer__question", "metric", "reviewer", "rubric_version")
            .prefetch_related("rated_parts")
        )

    @responds_with(RatingShown, paged=True)
    def list(self, request: Request) -> QuerySet[Rating]:
        """One page, newest first."""
        return self.get_queryset()

    @responds_with(
        ImportedRatingsSerializer,
        status=201,
        other_responses={200: ImportedRatingsSerializer},
        body={"multipart/form-data": RatingFileForm, **FILE_BODY},
        query=RatingFileOptions,
    )
    def create(self, request: Request) -> Response:
        """Import ratings or judge verdicts: 201 if anything was new, 200 if not or for a dry run; 400 with every
        problem of the file."""
        body, options = self.upload()
        run = fetch(Run.objects.all(), request.user, Action.EVALUATE, options["run"])
        defines = [definition for part in options["define"].split(";") if (definition := part.strip())]
        imported = import_ratings(
            run,
            body.content,
            body.file_name,
            defines,
            options["sampled"],
            request_user(request),
            annotators=_annotators(options["annotators"]) if options["layout"] == "label_studio" else None,
            dry_run=options["dry_run"],
        )
        stored = (imported.human or imported.judge) and not options["dry_run"]
        return Response(imported, status=201 if stored else 200)


def _annotators(text: str) -> dict[str, str]:
    """Parse ``ID=LABEL;ID=LABEL``.

    :raises ValidationError: for a part in another form."""
    pairs = [part.partition("=") for part in text.split(";") if part.strip()]
    if any(not key.strip() or not label.strip() for key, _, label in pairs):
        raise ValidationError({"annotators": [gettext("Write ID=LABEL, separated by semicolons.")]})
    return {key.strip(): label.strip() for key, _, label in pairs}
