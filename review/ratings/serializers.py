"""Cards, ratings and their request bodies in REST."""

from __future__ import annotations

# mypy: disable-error-code="assignment"
# The REST framework has attributes named ``label``, ``source``, ``context`` and ``fields``; here they are fields.
import math
from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DateTimeField,
    DictField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    ModelSerializer,
    Serializer,
    SerializerMethodField,
)
from rest_framework_dataclasses.serializers import DataclassSerializer

from evaluation.core.samples import Status
from evaluation.messages.sentences import explain_reason
from evaluation.rest.endpoints import StrictSerializer
from evaluation.rest.fields import A_DAY_IN_MS, a_label, optional_text
from review.evidence.rating_input import LONGEST_PART, Change, FlagKind, Given, PartGiven
from review.models import Rating
from review.ratings.card import Card, CardMetric, JudgeOnClaim
from review.ratings.reveals import JudgeSaid


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


def given_from(values: dict[str, dict[str, Any]]) -> dict[str, Given]:
    """The validated values of a rating."""
    return {metric: Given(**_with_parts(given)) for metric, given in values.items()}


def changes_from(values: dict[str, dict[str, Any]]) -> dict[str, Change]:
    """The validated changes after a reveal."""
    return {metric: Change(**_with_parts(change)) for metric, change in values.items()}


def _with_parts(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "parts": tuple(PartGiven(**part) for part in given["parts"])}


class HeldShown(Serializer[Any]):
    """An item in the caller's hands, in a line."""

    id = IntegerField(source="pk")
    state = CharField()
    question_id = CharField(source="item.answer.question.external_id")
    question = CharField(source="item.answer.question.text")
    lease_until = DateTimeField()
    submitted_at = DateTimeField(allow_null=True)


class HolderShown(Serializer[Any]):
    """Who holds or held an item, for the lead."""

    reviewer = CharField(source="reviewer.username")
    state = CharField()
    submitted_at = DateTimeField(allow_null=True)


class ItemShown(Serializer[Any]):
    """An item of a queue, for the lead."""

    id = IntegerField(source="pk")
    state = CharField()
    question_id = CharField(source="answer.question.external_id")
    category = CharField(source="answer.question.category")
    question = CharField(source="answer.question.text")
    reviewers = HolderShown(source="assignments", many=True)


class PartRatedShown(Serializer[Any]):
    """A part behind a rating with the expert's verdict."""

    position = IntegerField()
    kind = CharField()
    text = CharField()
    verdict = CharField()
    context = IntegerField(allow_null=True)
    added = BooleanField()


class RatingShown(ModelSerializer[Rating]):
    """A rating; a reviewer gets the own ones alone."""

    question_id = CharField(source="answer.question.external_id")
    metric = CharField(source="metric.name")
    metric_version = IntegerField(source="metric.version")
    reviewer = CharField(source="reviewer.username", default="")
    rubric = CharField(source="rubric_version", allow_null=True, default=None)
    rated_parts = PartRatedShown(many=True, read_only=True)

    class Meta:
        model = Rating
        fields = (
            *("id", "answer", "question_id", "metric", "metric_version", "reviewer", "author", "source", "phase"),
            *("blind", "seq", "value", "label", "cannot_judge", "reason_code", "comment", "rubric", "active_ms"),
            "token",
            "rated_parts",
            "created_at",
        )


class VerdictShown(Serializer[Any]):
    """A verdict one may choose, and when it is right."""

    name = CharField()
    text = CharField()


class OfferedPartShown(Serializer[Any]):
    """A part to be decided. ``context`` is the position of its passage, from 0."""

    number = IntegerField()
    kind = CharField()
    text = CharField()
    context = IntegerField(allow_null=True)


class PartGivenShown(Serializer[Any]):
    """A verdict that was given; ``number`` is 0 for a part that was added."""

    number = IntegerField()
    text = CharField()
    verdict = CharField()


class JudgeOnClaimShown(DataclassSerializer[JudgeOnClaim]):
    """What the judge said of a claim, with the number of the passage it rests on and the words there."""

    class Meta:
        dataclass = JudgeOnClaim
        ref_name = "JudgeOnClaimShown"
        fields = ("verdict", "reason", "passage", "quote", "quote_start", "quote_end", "approximate")


class ClaimShown(Serializer[Any]):
    """A claim of the answer with its place; ``judge`` is null while hidden."""

    number = IntegerField()
    text = CharField()
    start = IntegerField(allow_null=True)
    end = IntegerField(allow_null=True)
    approximate = BooleanField()
    judge = JudgeOnClaimShown(allow_null=True)


class GivenShown(Serializer[Any]):
    """What was given for one metric."""

    value = FloatField(allow_null=True)
    label = CharField(allow_null=True)
    cannot_judge = BooleanField()
    comment = CharField()
    reason_code = CharField()
    parts = PartGivenShown(many=True)


class LevelShown(Serializer[Any]):
    """An anchored level."""

    value = FloatField()
    text = CharField()


class MetricShown(DataclassSerializer[CardMetric]):
    """A metric as it is asked for, with its scale and its rubric's question and levels."""

    levels = LevelShown(many=True)
    verdicts = VerdictShown(many=True)
    parts = OfferedPartShown(many=True)
    adds = BooleanField()

    class Meta:
        dataclass = CardMetric
        ref_name = "MetricShown"
        fields = (
            *("name", "title", "review_form", "kind", "low", "high", "labels", "question", "levels", "language"),
            *("verdicts", "parts", "adds"),
        )


class PassageShown(Serializer[Any]):
    """A retrieved passage, without its score."""

    number = IntegerField()
    source = CharField()
    text = CharField()
    link = CharField()


class JudgeSaidShown(Serializer[Any]):
    """What the judge said about one metric beside the reviewer's first rating. ``levels_apart`` is null where a class
    or yes/no differs, which has no steps."""

    metric = CharField(source="metric.name")
    status = SerializerMethodField()
    value = FloatField(source="said.value", allow_null=True, default=None)
    label = CharField(source="said.label", allow_null=True, default=None)
    reason = SerializerMethodField()
    judge = CharField(source="said.by", default="")
    baseline = BooleanField(source="said.baseline", default=False)
    rubric = CharField(source="said.rubric", default="")
    own_value = FloatField(source="own.value", allow_null=True, default=None)
    own_label = CharField(source="own.label", allow_null=True, default=None)
    differs = SerializerMethodField()
    levels_apart = SerializerMethodField()
    parts = SerializerMethodField()

    def get_parts(self, one: JudgeSaid) -> list[dict[str, str]]:
        """The judge's verdicts on the parts of a metric that is rated by them."""
        return [{"text": text, "verdict": verdict} for text, verdict in one.parts]

    def get_status(self, one: JudgeSaid) -> str:
        """``scored``, ``failed``, ``not_applicable``, or ``none`` where the judge was not asked."""
        return one.said.status if one.said else "none"

    def get_reason(self, one: JudgeSaid) -> str:
        """The judge's explanation, or why there is no value."""
        if one.said is None:
            return ""
        return one.said.reason if one.said.status == Status.SCORED else explain_reason(one.said.reason)

    def get_differs(self, one: JudgeSaid) -> bool:
        """Whether the two differ at all."""
        return one.distance > 0

    def get_levels_apart(self, one: JudgeSaid) -> float | None:
        """How many levels lie between the two."""
        return one.distance if math.isfinite(one.distance) else None


class CardShown(DataclassSerializer[Card]):
    """An item in its reviewer's hands. ``judge`` is null while hidden, ``system`` empty."""

    queue = IntegerField(source="queue_id")
    contexts = PassageShown(many=True, allow_null=True)
    metrics = MetricShown(many=True)
    draft = JSONField()
    given = DictField(child=GivenShown())
    final = DictField(child=GivenShown())
    judge = JudgeSaidShown(many=True, allow_null=True)
    claims = ClaimShown(many=True)

    class Meta:
        dataclass = Card
        ref_name = "CardShown"
        fields = (
            *("id", "state", "lease_until", "queue", "queue_name", "guideline", "mode", "question_id", "category"),
            *("history", "question", "references", "answer", "contexts", "metrics", "draft", "given", "final"),
            *("stale", "system", "judge", "claims", "suggestion"),
        )


class SubmittedShown(Serializer[Any]):
    """A rating that is in; ``reveal`` says that the judge is to be shown now."""

    id = IntegerField(source="assignment.pk")
    state = CharField(source="assignment.state")
    reveal = BooleanField()
    item_done = BooleanField()
    repeated = BooleanField()
    stale = BooleanField()


class FinalisedShown(Serializer[Any]):
    """What stands after the reveal."""

    id = IntegerField(source="assignment.pk")
    state = CharField(source="assignment.state")
    changed = ListField(child=CharField())
    repeated = BooleanField()
