"""The form of the log-in page."""

from __future__ import annotations

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import NON_FIELD_ERRORS
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.logging_in import minutes_to_wait

THROTTLED = "throttled"


class LogInForm(AuthenticationForm):
    """Name and password; says how long to wait after too many attempts."""

    # Django's own text has both particles in Korean ("이름와/과").
    error_messages = {**AuthenticationForm.error_messages, "invalid_login": _("Name or password is wrong.")}

    def get_invalid_login_error(self) -> forms.ValidationError:
        """Why the log-in failed, without telling whether the name exists."""
        minutes = minutes_to_wait(self.cleaned_data.get("username", ""), self.request)
        if not minutes:
            return super().get_invalid_login_error()
        text = _("Too many attempts to log in. Wait %(minutes)s minutes and try again.")
        return forms.ValidationError(text, code=THROTTLED, params={"minutes": minutes})

    @property
    def throttled(self) -> bool:
        """Whether the form was refused because of too many attempts."""
        return self.has_error(NON_FIELD_ERRORS, THROTTLED)
