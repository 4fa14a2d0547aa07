"""What the endpoints of adjudication answer: nobody's name, and nothing of the judge."""

from __future__ import annotations

import math
from typing import Any

from rest_framework import serializers

from review.decisions.cases import Case


class RaisedShown(serializers.Serializer[Any]):
    """A flag or an escalation that nobody has ruled on."""

    id = serializers.IntegerField(source="pk")
    verb = serializers.CharField()
    kind = serializers.CharField()
    comment = serializers.CharField()


class ApartShown(serializers.Serializer[Any]):
    """A metric whose first ratings lie apart. ``levels_apart`` is null where a class or yes/no differs."""

    metric = serializers.CharField()
    levels_apart = serializers.FloatField(allow_null=True)
    values = serializers.ListField(child=serializers.JSONField())


class CaseShown(serializers.Serializer[Any]):
    """An open case."""

    item = serializers.IntegerField(source="item.pk")
    answer = serializers.IntegerField(source="item.answer_id")
    queue = serializers.IntegerField(source="item.queue_id")
    question_id = serializers.CharField(source="item.answer.question.external_id")
    question = serializers.CharField(source="item.answer.question.text")
    why = serializers.ListField(child=serializers.CharField())
    raised = RaisedShown(source="events", many=True)
    apart = serializers.SerializerMethodField()

    def get_apart(self, case: Case) -> list[dict[str, Any]]:
        """The metrics in dispute with the values that were given, in no telling order."""
        found = []
        for metric_id, levels in case.apart.items():
            rows = [row for row in case.ratings if row.metric_id == metric_id and not row.cannot_judge]
            values = sorted((row.label if row.value is None else row.value for row in rows), key=str)
            shown = {
                "metric": rows[0].metric.name,
                "levels_apart": levels if math.isfinite(levels) else None,
                "values": values,
            }
            found.append(dict(ApartShown(shown).data))
        return found


class RulingShown(serializers.Serializer[Any]):
    """What was made of a flag or an escalation."""

    event = serializers.IntegerField(source="event_id")
    upheld = serializers.BooleanField()
    reason = serializers.CharField()
    by = serializers.CharField(source="by.username")
    created_at = serializers.DateTimeField()
