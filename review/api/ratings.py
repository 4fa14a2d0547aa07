"""REST: ratings; a reviewer sees the own ones alone. Those made elsewhere are imported from a file."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils.translation import gettext
from django_filters.rest_framework import CharFilter, ChoiceFilter, DjangoFilterBackend, FilterSet, NumberFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import LARGEST_ID, fetch
from evaluation.api.endpoints import StrictSerializer, ViewSet, person, written_by
from evaluation.api.errors import ProblemSerializer
from evaluation.api.pages import Pages
from evaluation.api.uploading import FILE_BODY, FileOfRows, UploadEndpoint
from evaluation.core.roles import Action
from evaluation.models import Run
from review.api.requests import row_id
from review.api.serializers import RatingShown
from review.imports.files import ImportedRatings, import_ratings
from review.imports.ratings import Sampled
from review.models import Rating
from review.queues.access import ratings_of

LONGEST_DEFINITIONS = 5000


class RatingFileOptions(StrictSerializer):
    """What is said beside a file of ratings."""

    run = row_id()
    define = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_DEFINITIONS,
        help_text="scales of unknown metrics, NAME=1..5 and the like, separated by semicolons",
    )
    sampled = serializers.ChoiceField(choices=[str(one) for one in Sampled], required=False, default="unknown")
    layout = serializers.ChoiceField(choices=["concord", "label_studio"], required=False, default="concord")
    annotators = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_DEFINITIONS,
        help_text="of a Label Studio export: ID=LABEL of people, separated by semicolons",
    )
    dry_run = serializers.BooleanField(required=False, default=False, help_text="only say what would be imported")


class RatingFileForm(RatingFileOptions):
    """A form with a file of ratings."""

    file = FileOfRows()


class ImportedRatingsSerializer(serializers.Serializer[ImportedRatings]):
    """What became of the rows: ratings by people, scores by judges (``failed`` of them without a value), and rows
    that were there already."""

    human = serializers.IntegerField()
    judge = serializers.IntegerField()
    failed = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    defined = serializers.ListField(child=serializers.CharField())
    authors = serializers.ListField(child=serializers.CharField())
    remarks = ProblemSerializer(many=True)


def _id_filter(field: str) -> NumberFilter:
    return NumberFilter(field_name=field, min_value=1, max_value=LARGEST_ID, decimal_places=0)


class RatingFilter(FilterSet):  # type: ignore[misc]  # the package has no types
    """Ratings by answer, queue, run, metric, reviewer and phase."""

    answer = _id_filter("answer_id")
    queue = _id_filter("assignment__item__queue_id")
    run = _id_filter("assignment__item__run_id")
    metric = CharFilter(field_name="metric__name")
    reviewer = CharFilter(field_name="reviewer__username")
    phase = ChoiceFilter(field_name="phase", choices=[("initial", "initial"), ("final", "final")])


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
        raise serializers.ValidationError({"annotators": [gettext("Write ID=LABEL, separated by semicolons.")]})
    return {key.strip(): label.strip() for key, _, label in pairs}
