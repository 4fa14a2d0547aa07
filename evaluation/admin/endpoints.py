"""Endpoints of judges: for administrators alone."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.admin.rights import RoleAdmin
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.judges.clients import store_key
from evaluation.judging.origins import AllowList, origin_of
from evaluation.models import Endpoint
from evaluation.wording.messages import explain_refusal


class EndpointForm(forms.ModelForm):
    """An endpoint; its origin must stand on the operator's list, and a key stays with the origin it was given for.

    A stored key can be written and forgotten here, never read.
    """

    key = forms.CharField(
        label=_("key to store"),
        required=False,
        max_length=2000,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password", "size": 40}),
        help_text=_("Kept encrypted and never shown again. Leave it empty to keep the key that is stored."),
    )
    forget_key = forms.BooleanField(label=_("forget the stored key"), required=False)

    class Meta:
        model = Endpoint
        fields = (
            "name",
            "base_url",
            "key_env",
            "max_concurrency",
            "requests_per_minute",
            "tokens_per_minute",
            "embedding_model",
            "batches",
        )

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
        """Another origin drops both kinds of key, unless another one is given with it."""
        said = super().clean() or self.cleaned_data
        old = Endpoint.objects.filter(pk=self.instance.pk).first() if self.instance.pk else None
        if said.get("key") and said.get("forget_key"):
            self.add_error("forget_key", gettext("A key is either stored or forgotten."))
        if old is None or "base_url" not in said or origin_of(said["base_url"]) == origin_of(old.base_url):
            return said
        if old.key_env and said.get("key_env") == old.key_env:
            said["key_env"] = ""
            self.key_dropped = True
        if old.sealed_key and not said.get("key"):
            said["forget_key"] = self.key_dropped = True
        return said

    def save(self, commit: bool = True) -> Endpoint:
        """The endpoint with its key sealed for the origin it now has."""
        said = self.cleaned_data
        if said.get("key") or said.get("forget_key"):
            store_key(self.instance, said.get("key", ""))
        endpoint: Endpoint = super().save(commit)
        return endpoint


@admin.register(Endpoint)
class EndpointAdmin(RoleAdmin):
    """OpenAI-compatible servers."""

    path = ""
    view = add = change = Action.ADMINISTER
    form = EndpointForm
    list_display = ("name", "base_url", "key_env", "has_stored_key", "max_concurrency", "batches", "cooldown_until")
    fields = (
        "name",
        "base_url",
        "key",
        "has_stored_key",
        "forget_key",
        "key_env",
        "max_concurrency",
        "embedding_model",
        "batches",
    )
    readonly_fields = ("has_stored_key",)

    @admin.display(boolean=True, description=_("key stored"))
    def has_stored_key(self, endpoint: Endpoint) -> bool:
        """Whether a key is stored, and nothing more of it."""
        return bool(endpoint.sealed_key)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save, and say where the key was dropped."""
        super().save_model(request, obj, form, change)
        if form.key_dropped:
            messages.warning(request, gettext("The origin changed, so the key was removed. Enter it again."))
