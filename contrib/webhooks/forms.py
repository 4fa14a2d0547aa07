"""Form for a new webhook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from contrib.webhooks.models import Event
from evaluation.models import Project

EVENTS = [event for event in Event if event is not Event.TEST]


class WebhookForm(forms.Form):
    """Project, address and events."""

    project = forms.ModelChoiceField(Project.objects.none(), label=_("Project"), empty_label=None)
    url = forms.URLField(
        label=_("Address"),
        max_length=2000,
        assume_scheme="https",
        help_text=_("Slack, Teams or your own service. The operator must allow it in CONCORD_WEBHOOK_ORIGINS."),
    )
    events = forms.MultipleChoiceField(
        label=_("Events"),
        choices=[(event.value, event.label) for event in EVENTS],
        widget=forms.CheckboxSelectMultiple,
        initial=EVENTS,
    )

    def __init__(self, *args: Any, projects: Sequence[Project], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["project"]
        field.queryset = Project.objects.filter(pk__in=[project.pk for project in projects])  # type: ignore[attr-defined]
        if len(projects) == 1:
            field.initial, field.widget = projects[0], field.hidden_widget()
