"""REST: ratings made elsewhere, imported from a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.api.endpoints import StrictSerializer, person
from evaluation.api.errors import problem_json
from evaluation.api.uploading import FILE_BODY, FileOfRows, ProblemSerializer, UploadEndpoint
from evaluation.core.roles import Action
from evaluation.models import Run
from review.api.ratings import RatingListView
from review.api.requests import row_id
from review.imports.files import import_ratings
from review.imports.ratings import Sampled

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


class ImportedRatingsSerializer(serializers.Serializer[Any]):
    """What became of the rows: ratings by people, scores by judges (``failed`` of them without a value), and rows
    that were there already."""

    human = serializers.IntegerField()
    judge = serializers.IntegerField()
    failed = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    defined = serializers.ListField(child=serializers.CharField())
    authors = serializers.ListField(child=serializers.CharField())
    remarks = ProblemSerializer(many=True)


class RatingsView(UploadEndpoint, RatingListView):
    """Ratings; a POST imports a file of them for the answers of a run."""

    beside = RatingFileOptions
    query = ("run", "define", "sampled", "dry_run")

    @extend_schema(
        request={"multipart/form-data": RatingFileForm, **FILE_BODY},
        parameters=[RatingFileOptions],
        responses={201: ImportedRatingsSerializer, 200: ImportedRatingsSerializer},
    )
    def post(self, request: Request) -> Response:
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
        shown = asdict(done) | {"remarks": [problem_json(remark) for remark in done.remarks]}
        return Response(shown, status=201 if stored else 200)


def _annotators(text: str) -> dict[str, str]:
    """``ID=LABEL;ID=LABEL`` as a mapping.

    :raises ValidationError: for a part that is not written like this.
    """
    pairs = [part.partition("=") for part in text.split(";") if part.strip()]
    if any(not key.strip() or not label.strip() for key, _, label in pairs):
        raise serializers.ValidationError({"annotators": [gettext("Write ID=LABEL, separated by semicolons.")]})
    return {key.strip(): label.strip() for key, _, label in pairs}
