"""Login, account, personal tokens and language."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView, PasswordResetConfirmView
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.templatetags.static import static
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from evaluation.accounts import audit
from evaluation.accounts.access import signed_in_get, signed_in_post, signed_in_user
from evaluation.accounts.forms import LogInForm, OwnTokenForm
from evaluation.accounts.login import FAILURE_RETENTION, LimitedBackend
from evaluation.accounts.password_links import distrust_chosen_password
from evaluation.extensions import second_factor
from evaluation.models import ApiToken, User

YEAR_SECONDS = 365 * 24 * 3600


def complete_login(request: HttpRequest, user: User, target: str) -> HttpResponse:
    """Log in a user whose password is correct, or return the page that asks for the second factor."""
    factor = second_factor()
    if factor and (challenge := factor.ask(request, user, target)):
        return challenge
    login(request, user)
    return HttpResponseRedirect(target)


class SignIn(LoginView):
    """Login page; redirects users who are already logged in."""

    template_name = "evaluation/accounts/login.html"
    authentication_form = LogInForm
    redirect_authenticated_user = True
    extra_context = {"sso_name": settings.CONCORD_OIDC.get("name")}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        return complete_login(self.request, form.get_user(), self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the form again, with status 429 while too many attempts have failed."""
        response = super().form_invalid(form)
        if isinstance(form, LogInForm) and form.throttled:
            response.status_code = 429
        return response


class SignOut(LogoutView):
    """Logout. POST only, so that a link on another site cannot trigger it."""


class ChoosePassword(PasswordResetConfirmView):
    """Target of an invitation link: the person chooses a password and is logged in."""

    template_name = "evaluation/accounts/choose_password.html"
    success_url = reverse_lazy("home")

    def get_user(self, uidb64: str) -> Any:
        """Return the person of the link, or ``None`` if they may not log in any more."""
        person = super().get_user(uidb64)
        return person if person and LimitedBackend().user_can_authenticate(person) else None

    def form_valid(self, form: SetPasswordForm[User]) -> HttpResponse:
        with transaction.atomic():
            super().form_valid(form)
            until = distrust_chosen_password(form.user)
            detail = {"not_blind_until": until.isoformat()} if until else {}
            audit.record(form.user, "password.chosen", form.user, **detail)
        return complete_login(self.request, form.user, str(self.success_url))


class Account(PasswordChangeView):
    """Account page: password and personal tokens."""

    template_name = "evaluation/accounts/account.html"
    success_url = reverse_lazy("account")
    extra_context = {**SignIn.extra_context, "second_factor": settings.CONCORD_SECOND_FACTOR != "off"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        user = signed_in_user(self.request)
        return super().get_context_data(**token_context(user, OwnTokenForm(user)), **kwargs)

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        """Change the password; all other sessions of the person end."""
        with transaction.atomic():
            response = super().form_valid(form)
            audit.record(form.user, "password.changed", form.user)
        messages.success(self.request, gettext("Password changed. You are logged out everywhere else."))
        return response


@signed_in_get
def data_retention(request: HttpRequest) -> HttpResponse:
    """Show which personal data the site stores, and for how long."""
    context = {
        "reply_days": settings.CONCORD_REPLY_RETENTION_DAYS,
        "session_days": settings.SESSION_COOKIE_AGE // 86_400,
        "failure_days": FAILURE_RETENTION.days,
    }
    return render(request, "evaluation/accounts/data_retention.html", context)


def token_context(person: User, form: OwnTokenForm) -> dict[str, Any]:
    """Return the person's valid tokens, newest first, and the form for another."""
    tokens = ApiToken.objects.filter(user=person, revoked_at=None, expires_at__gt=timezone.now())
    return {"tokens": tokens.select_related("project").order_by("-pk"), "token_form": form}


@signed_in_post
def create_token(request: HttpRequest) -> HttpResponse:
    """Create a personal token and show its text once."""
    user = signed_in_user(request)
    form = OwnTokenForm(user, request.POST)
    if not form.is_valid():
        return render(request, Account.template_name, {"form": PasswordChangeForm(user), **token_context(user, form)})
    text, token = form.create_token()
    return render(request, "evaluation/accounts/token.html", {"token": token, "text": text})


@signed_in_post
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke a personal token."""
    token = get_object_or_404(ApiToken, pk=pk, user=signed_in_user(request), revoked_at=None)
    token.revoked_at = timezone.now()
    with transaction.atomic():
        token.save(update_fields=["revoked_at"])
        audit.record(signed_in_user(request), "token.revoked", token)
    messages.success(request, gettext("Token revoked."))
    return redirect("account")


@require_POST
def choose_language(request: HttpRequest) -> HttpResponse:
    """Store the language in a cookie and, for a user, in the account; then redirect back."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        target = reverse("home")
    response = HttpResponseRedirect(target)
    language = request.POST.get("language", "")
    if language in dict(settings.LANGUAGES):
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=YEAR_SECONDS,
            samesite="Lax",
            secure=request.is_secure(),
            httponly=True,
        )
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=language)
    return response


@require_safe
def favicon(request: HttpRequest) -> HttpResponsePermanentRedirect:
    return HttpResponsePermanentRedirect(static("favicon.ico"))
