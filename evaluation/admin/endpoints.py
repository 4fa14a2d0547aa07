"""Endpoints of judges: for administrators alone."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext

from evaluation.accounts.roles import Action
from evaluation.admin.rights import RoleAdmin
from evaluation.errors import Refused
from evaluation.judges.models import Endpoint
from evaluation.judging.origins import AllowList, origin_of
from evaluation.messages import explain_refusal


class EndpointForm(forms.ModelForm):
    """An endpoint; its origin must stand on the operator's list, and a key stays with the origin it was given for."""

    class Meta:
        model = Endpoint
        fields = ("name", "base_url", "key_env", "max_concurrency")

    key_dropped = False

    def clean_base_url(self) -> str:
        """An address that may be called."""
        url: str = self.cleaned_data["base_url"]
        try:
            AllowList(settings.CONCORD_JUDGE_ORIGINS).check(url)
        except Refused as refused:
            raise forms.ValidationError(explain_refusal(refused)) from refused
        return url

    def clean(self) -> dict[str, Any]:
        """Another origin drops the key, unless another one is named with it."""
        said = super().clean() or self.cleaned_data
        old = Endpoint.objects.filter(pk=self.instance.pk).first() if self.instance.pk else None
        keeps_key = old is not None and old.key_env and said.get("key_env") == old.key_env
        if old and keeps_key and "base_url" in said and origin_of(said["base_url"]) != origin_of(old.base_url):
            said["key_env"] = ""
            self.key_dropped = True
        return said


@admin.register(Endpoint)
class EndpointAdmin(RoleAdmin):
    """OpenAI-compatible servers."""

    path = ""
    view = add = change = Action.ADMINISTER
    form = EndpointForm
    list_display = ("name", "base_url", "key_env", "max_concurrency", "cooldown_until")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save, and say where the key was dropped."""
        super().save_model(request, obj, form, change)
        if form.key_dropped:
            messages.warning(request, gettext("The origin changed, so the key was removed. Name it again."))
