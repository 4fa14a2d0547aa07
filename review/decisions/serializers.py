"""Cases, overrides and rulings in REST."""

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

from evaluation.accounts.access import LARGEST_ID
from evaluation.rest.endpoints import StrictSerializer
from evaluation.rest.fields import a_label, optional_text, row_id
from review.decisions.cases import Case


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


class OverrideShown(Serializer[Any]):
    """An override, or the taking back of one."""

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


class RaisedShown(Serializer[Any]):
    """A flag or an escalation that nobody has ruled on."""

    id = IntegerField(source="pk")
    verb = CharField()
    kind = CharField()
    comment = CharField()


class ApartShown(Serializer[Any]):
    """A metric whose first ratings lie apart. ``levels_apart`` is null where a class or yes/no differs."""

    metric = CharField()
    levels_apart = FloatField(allow_null=True)
    values = ListField(child=JSONField())


class CaseShown(Serializer[Case]):
    """An open case."""

    item = IntegerField(source="item.pk")
    answer = IntegerField(source="item.answer_id")
    queue = IntegerField(source="item.queue_id")
    question_id = CharField(source="item.answer.question.external_id")
    question = CharField(source="item.answer.question.text")
    why = ListField(child=CharField())
    raised = RaisedShown(source="events", many=True)
    apart = SerializerMethodField()

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


class RulingShown(Serializer[Any]):
    """What was made of a flag or an escalation."""

    event = IntegerField(source="event_id")
    upheld = BooleanField()
    reason = CharField()
    by = CharField(source="by.username")
    created_at = DateTimeField()
