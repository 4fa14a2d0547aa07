"""REST serializers of cases, overrides and rulings."""

from __future__ import annotations

# mypy: disable-error-code="assignment"
# The REST framework has attributes named ``label``, ``source``, ``context`` and ``fields``; here they are fields.
import math
from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    Serializer,
    SerializerMethodField,
)

from evaluation.accounts.access import MAX_ID
from evaluation.rest.endpoints import StrictSerializer
from evaluation.rest.fields import id_field, label_field, optional_text
from review.decisions.cases import Case


class DecisionBody(StrictSerializer):
    """A value or label with its reason."""

    metric = CharField(max_length=100)
    value = FloatField(allow_null=True, default=None)
    label = label_field()
    reason = optional_text()


class AdjudicateBody(DecisionBody):
    """A value or label that settles a dispute.

    ``seen`` is the number of the newest decision known to the caller, 0 for none. If given, a concurrent decision is
    refused."""

    seen = IntegerField(allow_null=True, default=None, min_value=0, max_value=MAX_ID)


class RulingBody(StrictSerializer):
    """A ruling on a flag or an escalation, with its reason."""

    upheld = BooleanField()
    reason = optional_text()


class OverrideBody(DecisionBody):
    """A value or label that overrides all others; ``revert`` takes back the newest override instead."""

    revert = BooleanField(default=False)


class ManyOverridesBody(StrictSerializer):
    """One value or label with one reason for many answers of a run; ``dry_run`` only previews the effect."""

    metric = CharField(max_length=100)
    answers = ListField(child=id_field(), allow_empty=False, max_length=10_000)
    value = FloatField(allow_null=True, default=None)
    label = label_field()
    reason = optional_text()
    dry_run = BooleanField(default=False)


class OverrideSerializer(Serializer[Any]):
    """An override or its reversal."""

    id = IntegerField(source="pk")
    answer = IntegerField(source="answer_id")
    metric = CharField(source="metric.name")
    kind = CharField()
    seq = IntegerField()
    value = FloatField(allow_null=True)
    label = CharField(allow_null=True)
    reason = CharField()
    by = CharField(source="by.username")
    token = IntegerField(source="token_id", allow_null=True)
    created_at = DateTimeField()


class OpenEventSerializer(Serializer[Any]):
    """An open flag or escalation."""

    id = IntegerField(source="pk")
    verb = CharField()
    kind = CharField()
    comment = CharField()


class DisputedMetricSerializer(Serializer[Any]):
    """A disputed metric. ``levels_apart`` is null for class and yes/no metrics."""

    metric = CharField()
    levels_apart = FloatField(allow_null=True)
    values = ListField(child=JSONField())


class CaseSerializer(Serializer[Case]):
    """An open case."""

    item = IntegerField(source="item.pk")
    answer = IntegerField(source="item.answer_id")
    queue = IntegerField(source="item.queue_id")
    question_id = CharField(source="item.answer.question.external_id")
    question = CharField(source="item.answer.question.text")
    why = ListField(child=CharField())
    raised = OpenEventSerializer(source="events", many=True)
    apart = SerializerMethodField()

    def get_apart(self, case: Case) -> list[dict[str, Any]]:
        """Return the disputed metrics with their values, sorted so that the order reveals nothing."""
        disputed_metrics = []
        for metric_id, levels in case.distances.items():
            rows = [row for row in case.ratings if row.metric_id == metric_id and not row.cannot_judge]
            values = sorted((row.label if row.value is None else row.value for row in rows), key=str)
            fields = {
                "metric": rows[0].metric.name,
                "levels_apart": levels if math.isfinite(levels) else None,
                "values": values,
            }
            disputed_metrics.append(dict(DisputedMetricSerializer(fields).data))
        return disputed_metrics


class RulingSerializer(Serializer[Any]):
    """A ruling on a flag or an escalation."""

    event = IntegerField(source="event_id")
    upheld = BooleanField()
    reason = CharField()
    by = CharField(source="by.username")
    created_at = DateTimeField()
