"""What the review endpoints read: strict bodies with every field named."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from evaluation.accounts.access import LARGEST_ID
from evaluation.api.endpoints import StrictSerializer
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.wording.messages import explain_refusal
from review.evidence.rating_input import LONGEST_PART, Change, FlagKind, Given, PartGiven
from review.models.queue_spec import ASKED, MOST_REVIEWS, SETTINGS, Setting
from review.statistics.sampling.member import DrawParams

TOO_OFTEN = OpenApiResponse(description="Too many within an hour; `Retry-After` says in how many seconds to try again.")
LONGEST_TEXT = 100_000  # beyond every limit that is explained in a sentence
A_DAY_IN_MS = 86_400_000


def optional_text(longest: int = LONGEST_TEXT) -> serializers.CharField:
    """A text that may be empty or left out."""
    return serializers.CharField(required=False, default="", allow_blank=True, max_length=longest)


def row_id() -> serializers.IntegerField:
    """A primary key."""
    return serializers.IntegerField(min_value=1, max_value=LARGEST_ID)


class PartBody(StrictSerializer):
    """A verdict on the offered part of that number, or with ``text`` on one that was missed."""

    number = serializers.IntegerField(min_value=0, max_value=10_000, required=False, default=0)
    text = optional_text(LONGEST_PART)
    verdict = serializers.CharField(max_length=40)


def some_parts() -> serializers.ListField:
    """Verdicts on parts, for metrics that are rated by them."""
    return serializers.ListField(child=PartBody(), required=False, default=list, max_length=1_000)


class GivenBody(StrictSerializer):
    """What was given for one metric: one of value, label, parts and cannot_judge, the last with why where one likes."""

    value = serializers.FloatField(required=False, allow_null=True, default=None)
    label = serializers.CharField(required=False, allow_null=True, default=None, max_length=200)  # type: ignore[assignment]  # a field, not the caption of one
    cannot_judge = serializers.BooleanField(required=False, default=False)
    reason_code = optional_text(40)
    parts = some_parts()
    comment = optional_text()


class SubmitBody(StrictSerializer):
    """A rating of all metrics of the queue. ``idempotency_key`` is made by the caller, one for each form shown."""

    values = serializers.DictField(child=GivenBody(), allow_empty=False)
    idempotency_key = serializers.CharField(max_length=200)
    comment = optional_text()
    suggestion = optional_text()
    active_ms = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=0, max_value=A_DAY_IN_MS
    )


class DraftBody(StrictSerializer):
    """What was entered so far."""

    values = serializers.DictField(child=GivenBody(), required=False, default=dict)
    comment = optional_text()
    suggestion = optional_text()


class ChangeBody(StrictSerializer):
    """A new value or label for one metric, or neither to keep the first; and why."""

    value = serializers.FloatField(required=False, allow_null=True, default=None)
    label = serializers.CharField(required=False, allow_null=True, default=None, max_length=200)  # type: ignore[assignment]  # a field, not the caption of one
    reason_code = optional_text(40)
    parts = some_parts()
    comment = optional_text()


class FinaliseBody(StrictSerializer):
    """What stands after the reveal: ``changes`` by metric, none to keep everything."""

    changes = serializers.DictField(child=ChangeBody(), required=False, default=dict)
    active_ms = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=0, max_value=A_DAY_IN_MS
    )


class CommentBody(StrictSerializer):
    """A comment, which may be left out."""

    comment = optional_text()


class FlagBody(CommentBody):
    """What is wrong with an item."""

    kind = serializers.ChoiceField(choices=[kind.value for kind in FlagKind])


class NothingBody(StrictSerializer):
    """No field at all."""


class AdjudicateBody(StrictSerializer):
    """A value or label that settles a dispute. ``seen`` is the number of the newest decision the caller had in view,
    0 for none; given, of two who decide at once one is refused."""

    metric = serializers.CharField(max_length=100)
    value = serializers.FloatField(required=False, allow_null=True, default=None)
    label = serializers.CharField(required=False, allow_null=True, default=None, max_length=200)  # type: ignore[assignment]  # a field, not the caption of one
    reason = optional_text()
    seen = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=0, max_value=LARGEST_ID)


class RulingBody(StrictSerializer):
    """Whether a flag or an escalation is upheld, and why."""

    upheld = serializers.BooleanField()
    reason = optional_text()


class OverrideBody(StrictSerializer):
    """A value or label above everything said before, or with ``revert`` the newest one taken back."""

    metric = serializers.CharField(max_length=100)
    value = serializers.FloatField(required=False, allow_null=True, default=None)
    label = serializers.CharField(required=False, allow_null=True, default=None, max_length=200)  # type: ignore[assignment]  # a field, not the caption of one
    reason = optional_text()
    revert = serializers.BooleanField(required=False, default=False)


class ManyOverridesBody(StrictSerializer):
    """One value or label with one reason for many answers of a run; with ``dry_run`` only what it would do."""

    metric = serializers.CharField(max_length=100)
    answers = serializers.ListField(child=row_id(), allow_empty=False, max_length=10_000)
    value = serializers.FloatField(required=False, allow_null=True, default=None)
    label = serializers.CharField(required=False, allow_null=True, default=None, max_length=200)  # type: ignore[assignment]  # a field, not the caption of one
    reason = optional_text()
    dry_run = serializers.BooleanField(required=False, default=False)


def setting_field(one: Setting) -> serializers.Field[Any, Any, Any, Any]:
    """The field that takes a setting of a queue."""
    said: dict[str, Any] = {"default": one.default, "help_text": one.body or None}
    if one.optional:
        said |= {"required": False, "allow_null": True}
    if isinstance(one.default, Enum):
        return serializers.ChoiceField(choices=getattr(one.kind, "choices", list(one.kind)), **said)
    low, high = one.limits
    if one.kind is str:
        return optional_text(high)
    if one.kind in {int, float}:
        kind = serializers.IntegerField if one.kind is int else serializers.FloatField
        return kind(min_value=low, max_value=high, **said)
    return serializers.BooleanField(**said) if one.kind is bool else serializers.DateTimeField(**said)


class DesignBody(StrictSerializer):
    """How answers are chosen. ``fail_below`` and ``share`` belong to ``fails_plus_share``, ``answers`` to
    ``hand_picked``."""

    settings: Sequence[Setting] = [SETTINGS[name] for name in ("strategy", "size", "seed", "fail_below", "share")]

    answers = serializers.ListField(child=row_id(), required=False, default=list, max_length=10_000)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The settings, and what is declared."""
        return {one.name: setting_field(one) for one in self.settings} | super().get_fields()


class DrawBody(DesignBody):
    """A draw over a run, without a queue. ``metric`` is the one whose judge values make the strata."""

    run = row_id()
    metric = optional_text(100)


class QueueBody(DesignBody):
    """A queue over one or several runs. ``reviewers`` are user names. ``overlap_share`` of the items are rated by
    ``reviews_needed`` people, the others by one; ``repeat_share`` of a reviewer's items come again, unmarked."""

    settings = ASKED

    runs = serializers.ListField(child=row_id(), min_length=1, max_length=50)
    metrics = serializers.ListField(child=serializers.CharField(max_length=100), min_length=1, max_length=50)
    reviewers = serializers.ListField(child=serializers.CharField(max_length=150), min_length=1, max_length=500)
    people_of_tags = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField(max_length=150), min_length=1, max_length=500),
        required=False,
        default=dict,
        help_text="For by_tag: tag or category -> user names.",
    )
    people_of_answers = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField(max_length=150), min_length=1, max_length=MOST_REVIEWS),
        required=False,
        default=dict,
        help_text="For per_item: id of an answer -> user names.",
    )

    def validate_deadline(self, value: datetime | None) -> datetime | None:
        """A moment that is still to come."""
        if value and value <= timezone.now():
            raise serializers.ValidationError(explain_refusal(Refused("deadline_passed")))
        return value

    def validate_people_of_answers(self, value: dict[str, list[str]]) -> dict[str, list[str]]:
        """Ids of answers in front of the names."""
        if wrong := [key[:40] for key in value if whole_number(key) is None]:
            raise serializers.ValidationError(explain_refusal(Refused("unknown_keys", keys=wrong)))
        return value


def given_from(values: dict[str, dict[str, Any]]) -> dict[str, Given]:
    """The validated values of a rating."""
    return {metric: Given(**_with_parts(given)) for metric, given in values.items()}


def changes_from(values: dict[str, dict[str, Any]]) -> dict[str, Change]:
    """The validated changes after a reveal."""
    return {metric: Change(**_with_parts(change)) for metric, change in values.items()}


def _with_parts(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "parts": tuple(PartGiven(**part) for part in given["parts"])}


def design_from(body: dict[str, Any]) -> DrawParams:
    """What the strategy is told."""
    return DrawParams(keys=frozenset(body["answers"]), fail_below=body["fail_below"], share=body["share"])
