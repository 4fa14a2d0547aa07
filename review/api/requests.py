"""What the review endpoints read: strict bodies with every field named."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DictField,
    FloatField,
    IntegerField,
    ListField,
    ValidationError,
)

from evaluation.accounts.access import LARGEST_ID
from evaluation.api.endpoints import Method, StrictSerializer
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.specs.rest_fields import SettingsSerializer
from evaluation.specs.setting import Setting
from evaluation.wording.messages import explain_refusal
from review.evidence.rating_input import LONGEST_PART, Change, FlagKind, Given, PartGiven
from review.models.queue_spec import ASKED, MOST_REVIEWS, SETTINGS
from review.statistics.sampling.member import DrawParams, Strategy

TOO_OFTEN = OpenApiResponse(description="Too many within an hour; `Retry-After` says in how many seconds to try again.")
LONGEST_TEXT = 100_000  # beyond every limit that is explained in a sentence
A_DAY_IN_MS = 86_400_000


def optional_text(longest: int = LONGEST_TEXT) -> CharField:
    """A text that may be empty or left out."""
    return CharField(default="", allow_blank=True, max_length=longest)


def row_id(**more: Any) -> IntegerField:
    """A primary key."""
    return IntegerField(min_value=1, max_value=LARGEST_ID, **more)


def a_label() -> Any:
    """A class or nothing; in no type, because ``label`` is the caption of a field to the REST framework."""
    return CharField(allow_null=True, default=None, max_length=200)


def limited(
    query: type[StrictSerializer],
    responses: Mapping[Any, Any] = MappingProxyType({200: OpenApiTypes.OBJECT}),
    *,
    detail: bool = True,
    shown: list[Any] | None = None,
) -> Callable[[Method], Method]:
    """A GET below one thing or, without ``detail``, all of them, which one may ask for only so often and whose answer
    no serializer writes. :meth:`Endpoint.asked` reads the ``query``; the schema tells of it as ``shown``, if that is
    something else."""

    def decorate(method: Method) -> Method:
        routed = action(detail=detail, pagination_class=None)(method)
        vars(routed).update(query=query)
        return extend_schema(parameters=shown or [query], responses={**responses, 429: TOO_OFTEN})(routed)

    return decorate


class PartBody(StrictSerializer):
    """A verdict on the offered part of that number, or with ``text`` on one that was missed."""

    number = IntegerField(min_value=0, max_value=10_000, default=0)
    text = optional_text(LONGEST_PART)
    verdict = CharField(max_length=40)


def some_parts() -> ListField:
    """Verdicts on parts, for metrics that are rated by them."""
    return ListField(child=PartBody(), default=list, max_length=1_000)


class GivenBody(StrictSerializer):
    """What was given for one metric: one of value, label, parts and cannot_judge, the last with why where one likes."""

    value = FloatField(allow_null=True, default=None)
    label = a_label()
    cannot_judge = BooleanField(default=False)
    reason_code = optional_text(40)
    parts = some_parts()
    comment = optional_text()


class SubmitBody(StrictSerializer):
    """A rating of all metrics of the queue. ``idempotency_key`` is made by the caller, one for each form shown."""

    values = DictField(child=GivenBody(), allow_empty=False)
    idempotency_key = CharField(max_length=200)
    comment = optional_text()
    suggestion = optional_text()
    active_ms = IntegerField(allow_null=True, default=None, min_value=0, max_value=A_DAY_IN_MS)


class DraftBody(StrictSerializer):
    """What was entered so far."""

    values = DictField(child=GivenBody(), default=dict)
    comment = optional_text()
    suggestion = optional_text()


class ChangeBody(StrictSerializer):
    """A new value or label for one metric, or neither to keep the first; and why."""

    value = FloatField(allow_null=True, default=None)
    label = a_label()
    reason_code = optional_text(40)
    parts = some_parts()
    comment = optional_text()


class FinaliseBody(StrictSerializer):
    """What stands after the reveal: ``changes`` by metric, none to keep everything."""

    changes = DictField(child=ChangeBody(), default=dict)
    active_ms = IntegerField(allow_null=True, default=None, min_value=0, max_value=A_DAY_IN_MS)


class CommentBody(StrictSerializer):
    """A comment, which may be left out."""

    comment = optional_text()


class FlagBody(CommentBody):
    """What is wrong with an item."""

    kind = ChoiceField(choices=[kind.value for kind in FlagKind])


class DecisionBody(StrictSerializer):
    """A value or label, and why."""

    metric = CharField(max_length=100)
    value = FloatField(allow_null=True, default=None)
    label = a_label()
    reason = optional_text()


class AdjudicateBody(DecisionBody):
    """A value or label that settles a dispute. ``seen`` is the number of the newest decision the caller had in view,
    0 for none; given, of two who decide at once one is refused."""

    seen = IntegerField(allow_null=True, default=None, min_value=0, max_value=LARGEST_ID)


class RulingBody(StrictSerializer):
    """Whether a flag or an escalation is upheld, and why."""

    upheld = BooleanField()
    reason = optional_text()


class OverrideBody(DecisionBody):
    """A value or label above everything said before, or with ``revert`` the newest one taken back."""

    revert = BooleanField(default=False)


class ManyOverridesBody(StrictSerializer):
    """One value or label with one reason for many answers of a run; with ``dry_run`` only what it would do."""

    metric = CharField(max_length=100)
    answers = ListField(child=row_id(), allow_empty=False, max_length=10_000)
    value = FloatField(allow_null=True, default=None)
    label = a_label()
    reason = optional_text()
    dry_run = BooleanField(default=False)


def strategies() -> list[str]:
    """Those of draws, as the OpenAPI document tells them apart from those of searches (``ENUM_NAME_OVERRIDES``)."""
    return list(Strategy)


class DesignBody(SettingsSerializer, StrictSerializer):
    """How answers are chosen. ``fail_below`` and ``share`` belong to ``fails_plus_share``, ``answers`` to
    ``hand_picked``."""

    settings: Iterable[Setting] = [SETTINGS[name] for name in ("strategy", "size", "seed", "fail_below", "share")]

    answers = ListField(child=row_id(), default=list, max_length=10_000)


class DrawBody(DesignBody):
    """A draw over a run, without a queue. ``metric`` is the one whose judge values make the strata."""

    run = row_id()
    metric = optional_text(100)


class QueueBody(DesignBody):
    """A queue over one or several runs. ``reviewers`` are user names. ``overlap_share`` of the items are rated by
    ``reviews_needed`` people, the others by one; ``repeat_share`` of a reviewer's items come again, unmarked."""

    settings = ASKED

    runs = ListField(child=row_id(), min_length=1, max_length=50)
    metrics = ListField(child=CharField(max_length=100), default=list, max_length=50)
    reviewers = ListField(child=CharField(max_length=150), min_length=1, max_length=500)
    people_of_tags = DictField(
        child=ListField(child=CharField(max_length=150), min_length=1, max_length=500),
        default=dict,
        help_text="For by_tag: tag or category -> user names.",
    )
    people_of_answers = DictField(
        child=ListField(child=CharField(max_length=150), min_length=1, max_length=MOST_REVIEWS),
        default=dict,
        help_text="For per_item: id of an answer -> user names.",
    )

    def validate_deadline(self, value: datetime | None) -> datetime | None:
        """A moment that is still to come."""
        if value and value <= timezone.now():
            raise ValidationError(explain_refusal(Refused("deadline_passed")))
        return value

    def validate_people_of_answers(self, value: dict[str, list[str]]) -> dict[str, list[str]]:
        """Ids of answers in front of the names."""
        if wrong := [key[:40] for key in value if whole_number(key) is None]:
            raise ValidationError(explain_refusal(Refused("unknown_keys", keys=wrong)))
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
