"""Cards, ratings and their request bodies in REST."""

from __future__ import annotations

# mypy: disable-error-code="assignment"
# Serializer attributes named ``label``, ``source``, ``context`` and ``fields`` are declared as fields here.
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
from evaluation.messages.explanations import explain_reason
from evaluation.rest.endpoints import StrictSerializer
from evaluation.rest.fields import DAY_MILLISECONDS, label_field, optional_text
from review.evidence.rating_input import MAX_PART_LENGTH, FlagKind, PartVerdict, RatingInput, RatingUpdate
from review.models import Rating
from review.ratings.card import Card, CardMetric, JudgeOnClaim
from review.ratings.reveals import JudgeComparison


class PartBody(StrictSerializer):
    """A verdict on the offered part of this number, or, with ``text``, on a missed part."""

    number = IntegerField(min_value=0, max_value=10_000, default=0)
    text = optional_text(MAX_PART_LENGTH)
    verdict = CharField(max_length=40)


def parts_field() -> ListField:
    """Field for verdicts on parts."""
    return ListField(child=PartBody(), default=list, max_length=1_000)


class NumberField(FloatField):
    """A number. Booleans are refused, although Python counts them as 0 and 1."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool):
            self.fail("invalid")
        number: float = super().to_internal_value(data)
        return number


class RatingInputBody(StrictSerializer):
    """A rating of one metric: one of value, label, parts and cannot_judge, the last with an optional reason."""

    value = NumberField(allow_null=True, default=None)
    label = label_field()
    cannot_judge = BooleanField(default=False)
    reason_code = optional_text(40)
    parts = parts_field()
    comment = optional_text()


class SubmitBody(StrictSerializer):
    """Ratings of all metrics of an item. The caller makes one ``idempotency_key`` per form shown."""

    values = DictField(child=RatingInputBody(), allow_empty=False)
    idempotency_key = CharField(max_length=200)
    comment = optional_text()
    suggestion = optional_text()
    active_ms = IntegerField(allow_null=True, default=None, min_value=0, max_value=DAY_MILLISECONDS)


class DraftBody(StrictSerializer):
    """An unfinished rating."""

    values = DictField(child=RatingInputBody(), default=dict)
    comment = optional_text()
    suggestion = optional_text()


class ChangeBody(StrictSerializer):
    """A new value or label for one metric, or neither to keep the first rating; and a reason."""

    value = NumberField(allow_null=True, default=None)
    label = label_field()
    reason_code = optional_text(40)
    parts = parts_field()
    comment = optional_text()


class FinaliseBody(StrictSerializer):
    """Final ratings after the reveal: ``changes`` by metric, empty to keep everything."""

    changes = DictField(child=ChangeBody(), default=dict)
    active_ms = IntegerField(allow_null=True, default=None, min_value=0, max_value=DAY_MILLISECONDS)


class CommentBody(StrictSerializer):
    """An optional comment."""

    comment = optional_text()


class FlagBody(CommentBody):
    """A problem with the item itself."""

    kind = ChoiceField(choices=[kind.value for kind in FlagKind])


def rating_inputs_from(values: dict[str, dict[str, Any]]) -> dict[str, RatingInput]:
    return {metric: RatingInput(**_with_parts(fields)) for metric, fields in values.items()}


def changes_from(values: dict[str, dict[str, Any]]) -> dict[str, RatingUpdate]:
    return {metric: RatingUpdate(**_with_parts(change)) for metric, change in values.items()}


def _with_parts(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "parts": tuple(PartVerdict(**part) for part in fields["parts"])}


class OwnItemShown(Serializer[Any]):
    """An item of the caller, in short."""

    id = IntegerField(source="pk")
    state = CharField()
    question_id = CharField(source="item.answer.question.external_id")
    question = CharField(source="item.answer.question.text")
    lease_until = DateTimeField()
    submitted_at = DateTimeField(allow_null=True)


class HolderShown(Serializer[Any]):
    """A reviewer of an item, for leads."""

    reviewer = CharField(source="reviewer.username")
    state = CharField()
    submitted_at = DateTimeField(allow_null=True)


class ItemShown(Serializer[Any]):
    """An item of a queue, for leads."""

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
    """A rating. Reviewers get only their own. ``answer`` is null for those in an open queue that hides the system,
    because consecutive ids tell which answers share one."""

    answer = IntegerField(source="shown_answer", allow_null=True)
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
    """A possible verdict and its definition."""

    name = CharField()
    text = CharField()


class OfferedPartShown(Serializer[Any]):
    """A part to judge. ``context`` is the position of its passage, from 0."""

    number = IntegerField()
    kind = CharField()
    text = CharField()
    context = IntegerField(allow_null=True)


class PartVerdictShown(Serializer[Any]):
    """A verdict on a part; ``number`` is 0 for an added part."""

    number = IntegerField()
    text = CharField()
    verdict = CharField()


class JudgeOnClaimShown(DataclassSerializer[JudgeOnClaim]):
    """The judge's verdict on a claim, with the number of the supporting passage and the quote."""

    class Meta:
        dataclass = JudgeOnClaim
        ref_name = "JudgeOnClaimShown"
        fields = ("verdict", "reason", "passage", "quote", "quote_start", "quote_end", "approximate")


class ClaimShown(Serializer[Any]):
    """A claim of the answer with its position; ``judge`` is null while hidden."""

    number = IntegerField()
    text = CharField()
    start = IntegerField(allow_null=True)
    end = IntegerField(allow_null=True)
    approximate = BooleanField()
    judge = JudgeOnClaimShown(allow_null=True)


class RatingInputShown(Serializer[Any]):
    """A rating of one metric."""

    value = FloatField(allow_null=True)
    label = CharField(allow_null=True)
    cannot_judge = BooleanField()
    comment = CharField()
    reason_code = CharField()
    parts = PartVerdictShown(many=True)


class LevelShown(Serializer[Any]):
    """An anchored level."""

    value = FloatField()
    text = CharField()


class MetricShown(DataclassSerializer[CardMetric]):
    """A metric to rate, with its scale and the rubric's question and levels."""

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


class JudgeComparisonShown(Serializer[Any]):
    """The judge's value of one metric compared with the reviewer's first rating. ``levels_apart`` is null if a class or
    yes/no differs."""

    metric = CharField(source="metric.name")
    status = SerializerMethodField()
    value = FloatField(source="judge_value.value", allow_null=True, default=None)
    label = CharField(source="judge_value.label", allow_null=True, default=None)
    reason = SerializerMethodField()
    judge = CharField(source="judge_value.by", default="")
    baseline = BooleanField(source="judge_value.baseline", default=False)
    rubric = CharField(source="judge_value.rubric", default="")
    own_value = FloatField(source="own_rating.value", allow_null=True, default=None)
    own_label = CharField(source="own_rating.label", allow_null=True, default=None)
    differs = SerializerMethodField()
    levels_apart = SerializerMethodField()
    parts = SerializerMethodField()

    def get_parts(self, comparison: JudgeComparison) -> list[dict[str, str]]:
        return [{"text": text, "verdict": verdict} for text, verdict in comparison.parts]

    def get_status(self, comparison: JudgeComparison) -> str:
        """``scored``, ``failed``, ``not_applicable``, or ``none`` if the judge was not asked."""
        return comparison.judge_value.status if comparison.judge_value else "none"

    def get_reason(self, comparison: JudgeComparison) -> str:
        """The judge's explanation, or why there is no value."""
        if comparison.judge_value is None:
            return ""
        return (
            comparison.judge_value.reason
            if comparison.judge_value.status == Status.SCORED
            else explain_reason(comparison.judge_value.reason)
        )

    def get_differs(self, comparison: JudgeComparison) -> bool:
        return comparison.distance > 0

    def get_levels_apart(self, comparison: JudgeComparison) -> float | None:
        return comparison.distance if math.isfinite(comparison.distance) else None


class CardShown(DataclassSerializer[Card]):
    """The card of an item. ``judge`` is null and ``system`` empty while hidden."""

    queue = IntegerField(source="queue_id")
    contexts = PassageShown(many=True, allow_null=True)
    metrics = MetricShown(many=True)
    draft = JSONField()
    given = DictField(child=RatingInputShown())
    final = DictField(child=RatingInputShown())
    judge = JudgeComparisonShown(many=True, allow_null=True)
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
    """A submitted rating; ``reveal`` is true if the judge is to be shown now."""

    id = IntegerField(source="assignment.pk")
    state = CharField(source="assignment.state")
    reveal = BooleanField()
    item_done = BooleanField()
    repeated = BooleanField()
    stale = BooleanField()


class FinalisedShown(Serializer[Any]):
    """The final ratings after the reveal."""

    id = IntegerField(source="assignment.pk")
    state = CharField(source="assignment.state")
    changed = ListField(child=CharField())
    repeated = BooleanField()
