"""Second factor of logins (``CONCORD_SECOND_FACTOR``): TOTP codes (RFC 6238) and recovery codes, on ``allauth.mfa``.

``allauth`` is imported only if it is configured. Its table is used, but not its pages and passkeys. Secrets are stored
encrypted with the site's secret, like keys of endpoints. Each code counts once across processes, because the last used
time step is stored under a lock.

Between password and code nobody is logged in: the session holds the pending user for ten minutes, and only the page
that asks for the code reads it. A logged-in session holds the id of the verified factor, which every request is checked
against. A factor set up elsewhere therefore ends older sessions."""

from __future__ import annotations

import base64
import hmac
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

import segno
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import path, reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from evaluation.accounts import audit
from evaluation.accounts.access import roles_anywhere, signed_in_get, signed_in_post, signed_in_user
from evaluation.accounts.login import (
    LOGGED_IN,
    PROVIDER_SESSION_KEY,
    LimitedBackend,
    blocked_until,
    client_address,
    record_failure,
    record_success,
)
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action, is_allowed
from evaluation.judges.secrets import seal, unseal
from evaluation.models import User

log = logging.getLogger("concord.second_factor")
BACKEND = settings.AUTHENTICATION_BACKENDS[0]
TOTP, RECOVERY = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES
PENDING_LOGIN_SECONDS = 600
RECOVERY_CODE_COUNT = 10
# A phone's clock may be one time step off.
STEP_SECONDS, MAX_CLOCK_DRIFT_STEPS = 30, 1
#: Session keys: the pending login, the verified factor, and a secret during set-up.
PENDING_LOGIN_KEY, VERIFIED_FACTOR_KEY, SETUP_SECRET_KEY = (
    "second_factor_waiting",
    "second_factor",
    "second_factor_secret",
)
#: URL names that remain accessible to people who must first set up a factor.
OPEN_VIEWS = ("second-factor", "second-factor-set-up", "logout", "language", "favicon")
BY_CODE, BY_RECOVERY_CODE = "code", "recovery_code"


class Adapter(DefaultMFAAdapter):
    """Encrypts secrets for allauth, and names the site in authenticator apps."""

    def encrypt(self, text: str) -> str:
        """Encrypt as stored API keys of endpoints are encrypted, under an origin of its own."""
        return seal(text, origin="second factor", secret=settings.SECRET_KEY)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt with the current or an earlier secret of the site.

        :raises DomainError: ``key_unreadable`` if none of the secrets fits."""
        site_secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
        return unseal(encrypted_text, origin="second factor", secrets=site_secrets)

    def get_totp_label(self, user: Any) -> str:
        return str(user.username)

    def get_totp_issuer(self) -> str:
        return urlsplit(settings.CONCORD_SITE_URL).hostname or "Concord"


class CodeForm(forms.Form):
    """A code of the app, or a recovery code."""

    code = forms.CharField(
        label=_("Code"),
        max_length=20,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "autofocus": True}),
    )


class PasswordForm(forms.Form):
    """Asks for the password, so that nobody can change the factor in another person's open session."""

    password = forms.CharField(
        label=_("Password"), widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}), strip=False
    )


class SetUpForm(CodeForm, PasswordForm):
    """The first code of an app, and the password."""

    field_order = ("code", "password")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The user first reads the instructions and scans the picture above the field.
        del self.fields["code"].widget.attrs["autofocus"]


def requires_factor(user: User) -> bool:
    """Return whether the user must have a second factor."""
    policy = settings.CONCORD_SECOND_FACTOR
    return policy == "all" or (policy == "leads" and is_allowed(roles_anywhere(user), Action.MANAGE_REVIEW))


def _get_factor(user: User) -> Authenticator | None:
    return Authenticator.objects.filter(user=user, type=TOTP).first()


def has_factor(user: User) -> bool:
    return _get_factor(user) is not None


def reset_factor(user: User, actor: User) -> None:
    """Remove the factor of a user who lost app and codes."""
    _remove_factors(user)
    audit.record(actor, "second_factor.reset", user)


def request_code(request: HttpRequest, user: User, target: str) -> HttpResponse | None:
    """Redirect to the page that asks for the code, with a pending login in the session.

    Without a second factor, record the login and return ``None``: the user may be logged in."""
    if not has_factor(user):
        audit.record(user, LOGGED_IN, user)
        return None
    request.session.flush()
    request.session[PENDING_LOGIN_KEY] = {
        "person": user.pk,
        "hash": user.get_session_auth_hash(),
        "until": time.time() + PENDING_LOGIN_SECONDS,
        "next": target,
    }
    return redirect("second-factor-code")


def check_session(request: HttpRequest) -> HttpResponse | None:
    """End a session without its verified factor; redirect a user who must set one up."""
    user = request.user
    if not isinstance(user, User) or request.session.get(PROVIDER_SESSION_KEY):
        return None
    factor = _get_factor(user)
    if factor is not None:
        if request.session.get(VERIFIED_FACTOR_KEY) != factor.pk:
            logout(request)
        return None
    if not requires_factor(user) or request.path in {reverse(name) for name in OPEN_VIEWS}:
        return None
    if request.path.startswith(("/api/", "/evaluation/")):
        request.user = AnonymousUser()
        return None
    next_url = request.get_full_path() if request.method in {"GET", "HEAD"} else ""
    return redirect(f"{reverse('second-factor')}?{urlencode({'next': next_url})}")


@require_http_methods(["GET", "HEAD", "POST"])
def ask_for_code(request: HttpRequest) -> HttpResponse:
    """Ask for the code after a correct password and log in; 429 after too many wrong codes."""
    pending = request.session.get(PENDING_LOGIN_KEY, {})
    user = _pending_user(pending)
    if user is None and request.method == "POST":
        messages.warning(request, gettext("Your login timed out. Log in again."))
        return redirect("second-factor-code")
    if user is None:
        return redirect_to_login(pending["next"]) if pending else redirect("login")
    form, status = CodeForm(request.POST or None), 200
    if request.method == "POST" and form.is_valid():
        attempt_name, address = f"code {user.username}", client_address(request)
        if not blocked_until(attempt_name, address):
            if method := _consume_code(user, form.cleaned_data["code"]):
                return _complete_login(request, user, pending["next"], attempt_name, address, method)
            record_failure(attempt_name, address, person=user.pk, by=BY_CODE)
            form.add_error("code", gettext("Wrong or already used code."))
        if blocked_until(attempt_name, address):
            form.add_error("code", gettext("Too many failed login attempts. Try again in a few minutes."))
            status = 429
    return render(request, "second_factor/code.html", {"form": form}, status=status)


def _pending_user(pending: dict[str, Any]) -> User | None:
    """Return the user whose password was accepted recently in this session and is unchanged."""
    if pending.get("until", 0) < time.time():
        return None
    user = User.objects.filter(pk=pending["person"]).first()
    if user is None or not LimitedBackend().user_can_authenticate(user):
        return None
    return user if constant_time_compare(pending["hash"], user.get_session_auth_hash()) else None


def _complete_login(
    request: HttpRequest, user: User, target: str, attempt_name: str, address: str, method: str
) -> HttpResponse:
    factor = _get_factor(user)
    # A new session key, so that an earlier key gives no access.
    request.session.flush()
    login(request, user, backend=BACKEND)
    request.session[VERIFIED_FACTOR_KEY] = factor.pk if factor else None
    record_success(user, attempt_name, address, by=method)
    if method == BY_RECOVERY_CODE:
        remaining = _count_codes(user)
        audit.record(user, "second_factor.recovery_code_used", user, left=remaining)
        text = ngettext("%(left)s recovery code left.", "%(left)s recovery codes left.", remaining)
        messages.warning(request, text % {"left": remaining})
    return redirect(target)


def _consume_code(user: User, text: str) -> str:
    """Mark a valid code as used; return its kind, or an empty string for an invalid code."""
    text = "".join(text.split()).replace("-", "")
    try:
        with transaction.atomic():
            rows = {row.type: row for row in Authenticator.objects.select_for_update().filter(user=user)}
            if (factor := rows.get(TOTP)) and (
                step := _matching_step(Adapter().decrypt(factor.data["secret"]), text, after=factor.data["used"])
            ):
                factor.data["used"] = step
                factor.last_used_at = timezone.now()
                factor.save()
                return BY_CODE
            if codes := rows.get(RECOVERY):
                unused = [
                    code for code in codes.data["unused"] if not constant_time_compare(Adapter().decrypt(code), text)
                ]
                if len(unused) < len(codes.data["unused"]):
                    codes.data["unused"] = unused
                    codes.save()
                    return BY_RECOVERY_CODE
    except DomainError:
        log.error("a second factor is encrypted with another SECRET_KEY; an administrator must reset it")
    return ""


def code_at(secret: str, step: int) -> str:
    """Return the six-digit code of a time step (RFC 4226, 5.3)."""
    digest = hmac.digest(base64.b32decode(secret), step.to_bytes(8), "sha1")
    start = digest[-1] & 0x0F
    return f"{(int.from_bytes(digest[start : start + 4]) & 0x7FFFFFFF) % 1_000_000:06}"


def _matching_step(secret: str, code: str, after: int = 0) -> int:
    """Return the time step of a code, later than ``after``; 0 without a match."""
    now = int(time.time()) // STEP_SECONDS
    steps = range(max(now - MAX_CLOCK_DRIFT_STEPS, after + 1), now + MAX_CLOCK_DRIFT_STEPS + 1)
    return next((step for step in steps if constant_time_compare(code, code_at(secret, step))), 0)


def _count_codes(user: User) -> int:
    codes = Authenticator.objects.filter(user=user, type=RECOVERY).first()
    return len(codes.data["unused"]) if codes else 0


def _create_codes(user: User) -> list[str]:
    Authenticator.objects.filter(user=user, type=RECOVERY).delete()
    codes = [f"{secrets.randbelow(10**8):08}" for _ in range(RECOVERY_CODE_COUNT)]
    data = {"unused": [Adapter().encrypt(code) for code in codes]}
    Authenticator.objects.create(user=user, type=RECOVERY, data=data)
    return [f"{code[:4]} {code[4:]}" for code in codes]


def _remove_factors(user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user).delete()[0])


def _next_url(request: HttpRequest) -> str:
    """Return the URL to continue to, restricted to this site."""
    target = request.POST.get("next", "") or request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if safe else ""


@signed_in_get
def own_factor(request: HttpRequest) -> HttpResponse:
    """Show the user's second factor, or its set-up."""
    user = signed_in_user(request)
    return _render_own_page(request, user, PasswordForm() if has_factor(user) else SetUpForm())


def _render_own_page(request: HttpRequest, user: User, form: forms.Form, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "next": _next_url(request), "factor": _get_factor(user)}
    if context["factor"]:
        context["codes_left"] = _count_codes(user)
    elif user.has_usable_password():
        secret = _setup_secret(request)
        totp_url = Adapter().build_totp_url(user, secret)
        picture = segno.make(totp_url, error="m").svg_inline(scale=4, dark="#000", light="#fff")
        spaced_secret = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
        context |= {"totp_url": totp_url, "picture": SafeString(picture), "secret": spaced_secret}
    context["must_set_up"] = (
        not context["factor"] and requires_factor(user) and not request.session.get(PROVIDER_SESSION_KEY)
    )
    return render(request, "second_factor/own.html", context, status=status)


def _setup_secret(request: HttpRequest) -> str:
    """Return this session's set-up secret, stored encrypted until it is used."""
    if SETUP_SECRET_KEY not in request.session:
        request.session[SETUP_SECRET_KEY] = Adapter().encrypt(base64.b32encode(secrets.token_bytes(20)).decode())
    return Adapter().decrypt(request.session[SETUP_SECRET_KEY])


def _require_password(
    form_class: type[forms.Form],
) -> Callable[[Callable[[HttpRequest, User, Any], HttpResponse | None]], Callable[..., HttpResponse]]:
    """Decorate a form view that requires the user's password. If it returns ``None``, the page shows the form's
    errors."""

    def decorate(view: Callable[[HttpRequest, User, Any], HttpResponse | None]) -> Callable[..., HttpResponse]:
        def password_checking_view(request: HttpRequest) -> HttpResponse:
            user, form = signed_in_user(request), form_class(request.POST)
            if form.is_valid():
                if authenticate(request, username=user.username, password=form.cleaned_data["password"]) != user:
                    form.add_error("password", gettext("Wrong password or too many attempts."))
                elif response := view(request, user, form):
                    return response
            return _render_own_page(request, user, form, status=400)

        return signed_in_post(password_checking_view)

    return decorate


@_require_password(SetUpForm)
def set_up_factor(request: HttpRequest, user: User, form: SetUpForm) -> HttpResponse | None:
    """Store the secret if its first code is correct, and show the recovery codes once."""
    if has_factor(user):
        return redirect("second-factor")
    secret = _setup_secret(request)
    step = _matching_step(secret, "".join(form.cleaned_data["code"].split()))
    if not step:
        form.add_error("code", gettext("Wrong code. Check your phone's clock."))
        return None
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        if has_factor(user):
            return redirect("second-factor")
        data = {"secret": Adapter().encrypt(secret), "used": step}
        factor = Authenticator.objects.create(user=user, type=TOTP, data=data)
        codes = _create_codes(user)
        audit.record(user, "second_factor.set_up", user)
    del request.session[SETUP_SECRET_KEY]
    request.session[VERIFIED_FACTOR_KEY] = factor.pk
    request.session.cycle_key()
    return _render_codes(request, codes)


@_require_password(PasswordForm)
def create_codes(request: HttpRequest, user: User, form: PasswordForm) -> HttpResponse:
    """Replace the recovery codes; earlier ones become invalid."""
    if not has_factor(user):
        return redirect("second-factor")
    with transaction.atomic():
        codes = _create_codes(user)
        audit.record(user, "second_factor.codes_made", user)
    return _render_codes(request, codes)


def _render_codes(request: HttpRequest, codes: list[str]) -> HttpResponse:
    target = _next_url(request) or resolve_url("account")
    return render(request, "second_factor/codes.html", {"codes": codes, "next": target})


@_require_password(PasswordForm)
def remove_factor(request: HttpRequest, user: User, form: PasswordForm) -> HttpResponse:
    """Remove the user's second factor."""
    if _remove_factors(user):
        audit.record(user, "second_factor.removed", user)
        messages.success(request, gettext("Second factor removed."))
    return redirect("second-factor")


urlpatterns = [
    path("login/code/", ask_for_code, name="second-factor-code"),
    path("account/second-factor/", own_factor, name="second-factor"),
    path("account/second-factor/set-up/", set_up_factor, name="second-factor-set-up"),
    path("account/second-factor/codes/", create_codes, name="second-factor-codes"),
    path("account/second-factor/remove/", remove_factor, name="second-factor-remove"),
]
