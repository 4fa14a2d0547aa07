"""Forms for login and for personal tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import NON_FIELD_ERRORS
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evaluation.accounts import access, audit
from evaluation.accounts.login import MAX_TOKEN_LIFETIME, minutes_to_wait, new_token
from evaluation.core.roles import Action
from evaluation.models import ApiToken, Project, User

THROTTLED = "throttled"


class LogInForm(AuthenticationForm):
    """Login form; after too many attempts it reports how long to wait."""

    # Django's Korean text shows both variants of a particle ("이름와/과").
    error_messages = {**AuthenticationForm.error_messages, "invalid_login": _("Wrong name or password.")}

    def get_invalid_login_error(self) -> forms.ValidationError:
        """Return the error, without revealing whether the name exists."""
        minutes = minutes_to_wait(self.cleaned_data.get("username", ""), self.request)
        if not minutes:
            return super().get_invalid_login_error()
        text = _("Too many login attempts. Try again in %(minutes)s minutes.")
        return forms.ValidationError(text, code=THROTTLED, params={"minutes": minutes})

    @property
    def throttled(self) -> bool:
        """Return whether too many attempts have failed."""
        return self.has_error(NON_FIELD_ERRORS, THROTTLED)


class OwnTokenForm(forms.Form):
    """A new personal token: project, scope and lifetime."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("Its purpose, such as the program's name."))
    project = forms.ModelChoiceField(Project.objects.none(), label=_("Project"), empty_label=None)
    scope = forms.ChoiceField(label=_("Access"), choices=[("read", _("Read")), ("write", _("Write"))])
    days = forms.IntegerField(label=_("Lifetime (days)"), min_value=1, max_value=MAX_TOKEN_LIFETIME.days, initial=90)

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person
        self.fields["project"].queryset = access.projects_with(person, Action.RATE)  # type: ignore[attr-defined]

    @transaction.atomic
    def create_token(self) -> tuple[str, ApiToken]:
        """Create the token; returns its text, which is not stored, and its row."""
        cleaned, (text, digest) = self.cleaned_data, new_token()
        token = ApiToken.objects.create(
            user=self.person,
            made_by=self.person if self.person.is_themselves else None,
            sha256=digest,
            name=cleaned["name"],
            project=cleaned["project"],
            scope=cleaned["scope"],
            expires_at=timezone.now() + timedelta(days=cleaned["days"]),
        )
        audit.record(self.person, "token.made", token)
        return text, token
