"""Log-in, account, tokens and language."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView, PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.templatetags.static import static
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from evaluation.accounts import audit
from evaluation.accounts.access import person, signed_in_get, signed_in_post
from evaluation.accounts.forms import LogInForm, OwnTokenForm
from evaluation.extensions import second_factor
from evaluation.models import ApiToken, User

YEAR = 365 * 24 * 3600


def let_in(request: HttpRequest, who: User, target: str) -> HttpResponse:
    """Log somebody in whose password is right and lead them on, or ask for what the site wants to know
    beside it."""
    factor = second_factor()
    if factor and (asked := factor.ask(request, who, target)):
        return asked
    login(request, who)
    return HttpResponseRedirect(target)


class SignIn(LoginView):
    """Our own log-in page; whoever is logged in goes on to where they wanted."""

    template_name = "evaluation/accounts/login.html"
    authentication_form = LogInForm
    redirect_authenticated_user = True
    extra_context = {"sso_name": settings.CONCORD_OIDC.get("name")}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """In, or on to what else is asked."""
        return let_in(self.request, form.get_user(), self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The page again; 429 while too many attempts have failed."""
        response = super().form_invalid(form)
        if isinstance(form, LogInForm) and form.throttled:
            response.status_code = 429
        return response


class SignOut(LogoutView):
    """Ends the session; POST only, so that no link of another site can do it."""


class ChoosePassword(PasswordResetConfirmView):
    """Where the link of an invitation leads: a password is chosen, and the person is logged in."""

    template_name = "evaluation/accounts/choose_password.html"
    success_url = reverse_lazy("home")

    def form_valid(self, form: SetPasswordForm[User]) -> HttpResponse:
        """The password is theirs from now on."""
        super().form_valid(form)
        audit.record(form.user, "password.chosen", form.user)
        return let_in(self.request, form.user, str(self.success_url))


class Account(PasswordChangeView):
    """The own password and the own tokens."""

    template_name = "evaluation/accounts/account.html"
    success_url = reverse_lazy("account")
    extra_context = {**SignIn.extra_context, "second_factor": settings.CONCORD_SECOND_FACTOR != "off"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The form of the password, the tokens, and a form for a new one."""
        me = person(self.request)
        return super().get_context_data(**own_tokens(me, OwnTokenForm(me)), **kwargs)

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        """The new password; all other sessions of the person end."""
        response = super().form_valid(form)
        audit.record(form.user, "password.changed", form.user)
        messages.success(self.request, gettext("Your password is changed. You are logged out everywhere else."))
        return response


@signed_in_get
def kept(request: HttpRequest) -> HttpResponse:
    """What is kept of people and their work, and for how long."""
    days = settings.CONCORD_REPLY_DAYS
    sessions = settings.SESSION_COOKIE_AGE // 86_400
    return render(request, "evaluation/accounts/kept.html", {"reply_days": days, "session_days": sessions})


def own_tokens(person: User, form: OwnTokenForm) -> dict[str, Any]:
    """The person's tokens that still work, the newest first, and the form for another."""
    tokens = ApiToken.objects.filter(user=person, revoked_at=None, expires_at__gt=timezone.now())
    return {"tokens": tokens.select_related("project").order_by("-pk"), "token_form": form}


@signed_in_post
def make_token(request: HttpRequest) -> HttpResponse:
    """A token of one's own; its text is shown this once and kept nowhere."""
    me = person(request)
    form = OwnTokenForm(me, request.POST)
    if not form.is_valid():
        return render(request, Account.template_name, {"form": PasswordChangeForm(me), **own_tokens(me, form)})
    text, token = form.made()
    return render(request, "evaluation/accounts/token.html", {"token": token, "text": text})


@signed_in_post
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of one's own tokens."""
    token = get_object_or_404(ApiToken, pk=pk, user=person(request), revoked_at=None)
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    audit.record(person(request), "token.revoked", token)
    messages.success(request, gettext("The token no longer works."))
    return redirect("account")


@require_POST
def choose_language(request: HttpRequest) -> HttpResponse:
    """Remember the language in a cookie and, for a known person, with the person; then back to the page."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        target = reverse("home")
    response = HttpResponseRedirect(target)
    language = request.POST.get("language", "")
    if language in dict(settings.LANGUAGES):
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=YEAR,
            samesite="Lax",
            secure=request.is_secure(),
            httponly=True,
        )
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=language)
    return response


@require_safe
def favicon(request: HttpRequest) -> HttpResponsePermanentRedirect:
    """Where the icon is."""
    return HttpResponsePermanentRedirect(static("favicon.ico"))
