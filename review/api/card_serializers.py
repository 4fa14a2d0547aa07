"""What the review endpoints answer about an item in a reviewer's hands: nothing leaves that is not named here."""

from __future__ import annotations

import math
from typing import Any

from rest_framework import serializers

from evaluation.core.samples import Status
from evaluation.wording.messages import explain_reason
from review.ratings.reveals import JudgeSaid


class VerdictShown(serializers.Serializer[Any]):
    """A verdict one may choose, and when it is right."""

    name = serializers.CharField()
    text = serializers.CharField()


class OfferedPartShown(serializers.Serializer[Any]):
    """A part to be decided. ``context`` is the position of its passage, from 0."""

    number = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField()
    context = serializers.IntegerField(allow_null=True)  # type: ignore[assignment]  # a field, not the serializer's own


class PartGivenShown(serializers.Serializer[Any]):
    """A verdict that was given; ``number`` is 0 for a part that was added."""

    number = serializers.IntegerField()
    text = serializers.CharField()
    verdict = serializers.CharField()


class JudgeOnClaimShown(serializers.Serializer[Any]):
    """What the judge said of a claim, with the number of the passage it rests on and the words there."""

    verdict = serializers.CharField()
    reason = serializers.CharField()
    passage = serializers.IntegerField(allow_null=True)
    quote = serializers.CharField()
    quote_start = serializers.IntegerField(allow_null=True)
    quote_end = serializers.IntegerField(allow_null=True)
    approximate = serializers.BooleanField()


class ClaimShown(serializers.Serializer[Any]):
    """A claim of the answer with its place; ``judge`` is null while hidden."""

    number = serializers.IntegerField()
    text = serializers.CharField()
    start = serializers.IntegerField(allow_null=True)
    end = serializers.IntegerField(allow_null=True)
    approximate = serializers.BooleanField()
    judge = JudgeOnClaimShown(allow_null=True)


class GivenShown(serializers.Serializer[Any]):
    """What was given for one metric."""

    value = serializers.FloatField(allow_null=True)
    label = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # a field, not the caption of one
    cannot_judge = serializers.BooleanField()
    comment = serializers.CharField()
    reason_code = serializers.CharField()
    parts = PartGivenShown(many=True)


class LevelShown(serializers.Serializer[Any]):
    """An anchored level."""

    value = serializers.FloatField()
    text = serializers.CharField()


class MetricShown(serializers.Serializer[Any]):
    """A metric as it is asked for, with its scale and its rubric's question and levels."""

    name = serializers.CharField()
    title = serializers.CharField()
    review_form = serializers.CharField()
    kind = serializers.CharField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    labels = serializers.ListField(child=serializers.CharField())
    question = serializers.CharField()
    levels = LevelShown(many=True)
    language = serializers.CharField()
    verdicts = VerdictShown(many=True)
    parts = OfferedPartShown(many=True)
    adds = serializers.BooleanField()


class PassageShown(serializers.Serializer[Any]):
    """A retrieved passage, without its score."""

    number = serializers.IntegerField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field, not where one is read
    text = serializers.CharField()
    link = serializers.CharField()


class JudgeSaidShown(serializers.Serializer[Any]):
    """What the judge said about one metric beside the reviewer's first rating. ``levels_apart`` is null where a class
    or yes/no differs, which has no steps."""

    metric = serializers.CharField(source="metric.name")
    status = serializers.SerializerMethodField()
    value = serializers.FloatField(source="said.value", allow_null=True, default=None)
    label = serializers.CharField(source="said.label", allow_null=True, default=None)  # type: ignore[assignment]  # a field, not the caption of one
    reason = serializers.SerializerMethodField()
    judge = serializers.CharField(source="said.by", default="")
    baseline = serializers.BooleanField(source="said.baseline", default=False)
    rubric = serializers.CharField(source="said.rubric", default="")
    own_value = serializers.FloatField(source="own.value", allow_null=True, default=None)
    own_label = serializers.CharField(source="own.label", allow_null=True, default=None)
    differs = serializers.SerializerMethodField()
    levels_apart = serializers.SerializerMethodField()
    parts = serializers.SerializerMethodField()

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


class CardShown(serializers.Serializer[Any]):
    """An item in its reviewer's hands. ``judge`` is null while hidden, ``system`` empty."""

    id = serializers.IntegerField()
    state = serializers.CharField()
    lease_until = serializers.DateTimeField()
    queue = serializers.IntegerField(source="queue_id")
    queue_name = serializers.CharField()
    guideline = serializers.CharField()
    mode = serializers.CharField()
    question_id = serializers.CharField()
    category = serializers.CharField()
    history = serializers.ListField(child=serializers.CharField())
    question = serializers.CharField()
    references = serializers.ListField(child=serializers.CharField())
    answer = serializers.CharField()
    contexts = PassageShown(many=True, allow_null=True)
    metrics = MetricShown(many=True)
    draft = serializers.JSONField()
    given = serializers.DictField(child=GivenShown())
    final = serializers.DictField(child=GivenShown())
    stale = serializers.BooleanField()
    system = serializers.CharField()
    judge = JudgeSaidShown(many=True, allow_null=True)
    claims = ClaimShown(many=True)
    suggestion = serializers.CharField()


class SubmittedShown(serializers.Serializer[Any]):
    """A rating that is in; ``reveal`` says that the judge is to be shown now."""

    id = serializers.IntegerField(source="assignment.pk")
    state = serializers.CharField(source="assignment.state")
    reveal = serializers.BooleanField()
    item_done = serializers.BooleanField()
    repeated = serializers.BooleanField()
    stale = serializers.BooleanField()


class FinalisedShown(serializers.Serializer[Any]):
    """What stands after the reveal."""

    id = serializers.IntegerField(source="assignment.pk")
    state = serializers.CharField(source="assignment.state")
    changed = serializers.ListField(child=serializers.CharField())
    repeated = serializers.BooleanField()
