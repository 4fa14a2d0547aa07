"""A second factor of log-ins (``CONCORD_SECOND_FACTOR``): codes of an app (TOTP, RFC 6238) and recovery codes, on
``allauth.mfa``, which is imported where it is set up alone.

The table is allauth's; of its pages and passkeys nothing is used. Secrets lie in the
database as keys of endpoints do: encrypted under the site's secret. A code counts once, whichever process reads it,
since the last step of time that was used is kept under a lock.

Between password and code nobody is logged in: the session keeps for ten minutes who it would be, and nothing reads that
but the page that asks for the code. A session that is in holds the number of the factor whose code was given, which
every request is held to; no other door leads around that, and a factor set up elsewhere ends older sessions.
"""

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
from evaluation.accounts.access import person, roles_anywhere, signed_in_get, signed_in_post
from evaluation.accounts.logging_in import (
    BY_PROVIDER,
    LOGGED_IN,
    LimitedBackend,
    address_of,
    failed,
    succeeded,
    wait_until,
)
from evaluation.core.errors import Refused
from evaluation.core.roles import Action, allowed
from evaluation.judges.secrets import seal, unseal
from evaluation.models import User

log = logging.getLogger("concord.second_factor")
BACKEND = settings.AUTHENTICATION_BACKENDS[0]
TOTP, RECOVERY = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES
SECONDS_TO_ANSWER = 600
RECOVERY_CODES = 10
STEP_SECONDS, STEPS_OFF = 30, 1  # clocks of phones may be half a minute off
#: What a session holds: whom it waits for, the factor whose code was given, and a secret that is being set up.
WAITING, GIVEN, SECRET = "second_factor_waiting", "second_factor", "second_factor_secret"
#: Where somebody may go who has to set one up first.
OPEN = ("second-factor", "second-factor-set-up", "logout", "language", "favicon")
BY_CODE, BY_RECOVERY_CODE = "code", "recovery_code"


class Adapter(DefaultMFAAdapter):
    """How allauth keeps secrets and names the site to apps."""

    def encrypt(self, text: str) -> str:
        """Sealed like a key of an endpoint, for second factors alone."""
        return seal(text, origin="second factor", secret=settings.SECRET_KEY)

    def decrypt(self, encrypted_text: str) -> str:
        """The text, also where the site's secret has been exchanged.

        :raises Refused: ``key_unreadable`` where none of the secrets opens it.
        """
        secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
        return unseal(encrypted_text, origin="second factor", secrets=secrets)

    def get_totp_label(self, user: Any) -> str:
        """The name one logs in by."""
        return str(user.username)

    def get_totp_issuer(self) -> str:
        """The host of the site, where it is known."""
        return urlsplit(settings.CONCORD_SITE_URL).hostname or "Concord"


class CodeForm(forms.Form):
    """A code of the app, or a recovery code."""

    code = forms.CharField(
        label=_("Code"),
        max_length=20,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "autofocus": True}),
    )


class PasswordForm(forms.Form):
    """The own password, so that a session left open does not suffice."""

    password = forms.CharField(
        label=_("Password"), widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}), strip=False
    )


class SetUpForm(CodeForm, PasswordForm):
    """The first code of an app, and the password."""

    field_order = ("code", "password")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["code"].widget.attrs["autofocus"]  # there is something to read and to scan before it


def required(who: User) -> bool:
    """Whether the person needs a second factor."""
    told = settings.CONCORD_SECOND_FACTOR
    return told == "all" or (told == "leads" and allowed(roles_anywhere(who), Action.MANAGE_REVIEW))


def _factor(who: User) -> Authenticator | None:
    return Authenticator.objects.filter(user=who, type=TOTP).first()


def has(who: User) -> bool:
    """Whether the person has one."""
    return _factor(who) is not None


def reset(who: User, by: User) -> None:
    """Take it away, for somebody who lost the app and the codes."""
    _take_away(who)
    audit.record(by, "second_factor.reset", who)


def ask(request: HttpRequest, who: User, target: str) -> HttpResponse | None:
    """To the page that asks for the code; nothing, where the person has no second factor and is in."""
    if not has(who):
        audit.record(who, LOGGED_IN, who)
        return None
    request.session.flush()
    request.session[WAITING] = {
        "person": who.pk,
        "hash": who.get_session_auth_hash(),
        "until": time.time() + SECONDS_TO_ANSWER,
        "next": target,
    }
    return redirect("second-factor-code")


def admit(request: HttpRequest) -> HttpResponse | None:
    """End a session without the code of the factor its person has; lead who needs one and has none to its set-up."""
    who = request.user
    if not isinstance(who, User) or request.session.get(BY_PROVIDER):
        return None
    factor = _factor(who)
    if factor is not None:
        if request.session.get(GIVEN) != factor.pk:
            logout(request)
        return None
    if not required(who) or request.path in {reverse(name) for name in OPEN}:
        return None
    if request.path.startswith(("/api/", "/evaluation/")):
        request.user = AnonymousUser()
        return None
    there = request.get_full_path() if request.method in {"GET", "HEAD"} else ""
    return redirect(f"{reverse('second-factor')}?{urlencode({'next': there})}")


@require_http_methods(["GET", "HEAD", "POST"])
def ask_for_code(request: HttpRequest) -> HttpResponse:
    """Ask whoever gave a right password for the code, and let them in; 429 while too many have been wrong."""
    waiting = request.session.get(WAITING, {})
    who = _waited_for(waiting)
    if who is None and request.method == "POST":
        messages.warning(request, gettext("Too much time has passed. Please log in again."))
        return redirect("second-factor-code")
    if who is None:
        return redirect_to_login(waiting["next"]) if waiting else redirect("login")
    form, status = CodeForm(request.POST or None), 200
    if request.method == "POST" and form.is_valid():
        counted, address = f"code {who.username}", address_of(request)
        if not wait_until(counted, address):
            if how := _spend(who, form.cleaned_data["code"]):
                return _let_in(request, who, waiting["next"], counted, address, how)
            failed(counted, address, person=who.pk, by=BY_CODE)
            form.add_error("code", gettext("The code is wrong, or was used before."))
        if wait_until(counted, address):
            form.add_error("code", gettext("Too many attempts to log in failed. Try again in some minutes."))
            status = 429
    return render(request, "second_factor/code.html", {"form": form}, status=status)


def _waited_for(waiting: dict[str, Any]) -> User | None:
    """Who gave a right password in this session, not long ago, that is still theirs."""
    if waiting.get("until", 0) < time.time():
        return None
    who = User.objects.filter(pk=waiting["person"]).first()
    if who is None or not LimitedBackend().user_can_authenticate(who):
        return None
    return who if constant_time_compare(waiting["hash"], who.get_session_auth_hash()) else None


def _let_in(request: HttpRequest, who: User, target: str, counted: str, address: str, how: str) -> HttpResponse:
    factor = _factor(who)
    request.session.flush()  # nobody who knew the key from before knows the one after
    login(request, who, backend=BACKEND)
    request.session[GIVEN] = factor.pk if factor else None
    succeeded(who, counted, address, by=how)
    if how == BY_RECOVERY_CODE:
        left = _codes_left(who)
        audit.record(who, "second_factor.recovery_code_used", who, left=left)
        text = ngettext("%(left)s recovery code is left.", "%(left)s recovery codes are left.", left)
        messages.warning(request, text % {"left": left})
    return redirect(target)


def _spend(who: User, text: str) -> str:
    """What kind of code the text is, which from now on is used; nothing for one that does not count."""
    text = "".join(text.split()).replace("-", "")
    try:
        with transaction.atomic():
            rows = {row.type: row for row in Authenticator.objects.select_for_update().filter(user=who)}
            if (factor := rows.get(TOTP)) and (
                step := _step_of(Adapter().decrypt(factor.data["secret"]), text, after=factor.data["used"])
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
    except Refused:
        log.error("a second factor was kept under another SECRET_KEY: an administrator has to reset it")
    return ""


def code_at(secret: str, step: int) -> str:
    """The code of a step of time, six digits (RFC 4226, 5.3)."""
    digest = hmac.digest(base64.b32decode(secret), step.to_bytes(8), "sha1")
    start = digest[-1] & 0x0F
    return f"{(int.from_bytes(digest[start : start + 4]) & 0x7FFFFFFF) % 1_000_000:06}"


def _step_of(secret: str, code: str, after: int = 0) -> int:
    """Of which step of time a code is, later than the one before; 0 for none."""
    now = int(time.time()) // STEP_SECONDS
    steps = range(max(now - STEPS_OFF, after + 1), now + STEPS_OFF + 1)
    return next((step for step in steps if constant_time_compare(code, code_at(secret, step))), 0)


def _codes_left(who: User) -> int:
    codes = Authenticator.objects.filter(user=who, type=RECOVERY).first()
    return len(codes.data["unused"]) if codes else 0


def _new_codes(who: User) -> list[str]:
    Authenticator.objects.filter(user=who, type=RECOVERY).delete()
    codes = [f"{secrets.randbelow(10**8):08}" for _ in range(RECOVERY_CODES)]
    data = {"unused": [Adapter().encrypt(code) for code in codes]}
    Authenticator.objects.create(user=who, type=RECOVERY, data=data)
    return [f"{code[:4]} {code[4:]}" for code in codes]


def _take_away(who: User) -> bool:
    return bool(Authenticator.objects.filter(user=who).delete()[0])


def _next(request: HttpRequest) -> str:
    """Where somebody wanted to get to, within the site."""
    target = request.POST.get("next", "") or request.GET.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if safe else ""


@signed_in_get
def own_factor(request: HttpRequest) -> HttpResponse:
    """The own second factor, or what is needed to set one up."""
    me = person(request)
    return _own_page(request, me, PasswordForm() if has(me) else SetUpForm())


def _own_page(request: HttpRequest, me: User, form: forms.Form, status: int = 200) -> HttpResponse:
    page: dict[str, Any] = {"form": form, "next": _next(request), "factor": _factor(me)}
    if page["factor"]:
        page["left"] = _codes_left(me)
    elif me.has_usable_password():
        secret = _secret_to_set_up(request)
        address = Adapter().build_totp_url(me, secret)
        picture = segno.make(address, error="m").svg_inline(scale=4, dark="#000", light="#fff")
        groups = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
        page |= {"address": address, "picture": SafeString(picture), "secret": groups}
    page["only"] = not page["factor"] and required(me) and not request.session.get(BY_PROVIDER)
    return render(request, "second_factor/own.html", page, status=status)


def _secret_to_set_up(request: HttpRequest) -> str:
    """The one this session shows until it is used, kept as unreadable as one that is."""
    if SECRET not in request.session:
        request.session[SECRET] = Adapter().encrypt(base64.b32encode(secrets.token_bytes(20)).decode())
    return Adapter().decrypt(request.session[SECRET])


def _with_password(
    form_class: type[forms.Form],
) -> Callable[[Callable[[HttpRequest, User, Any], HttpResponse | None]], Callable[..., HttpResponse]]:
    """A view of a form with the own password; an answer of none is the page again, with the form's errors."""

    def decorate(view: Callable[[HttpRequest, User, Any], HttpResponse | None]) -> Callable[..., HttpResponse]:
        def checked(request: HttpRequest) -> HttpResponse:
            me, form = person(request), form_class(request.POST)
            if form.is_valid():
                if authenticate(request, username=me.username, password=form.cleaned_data["password"]) != me:
                    form.add_error("password", gettext("The password is wrong, or there were too many attempts."))
                elif answer := view(request, me, form):
                    return answer
            return _own_page(request, me, form, status=400)

        return signed_in_post(checked)

    return decorate


@_with_password(SetUpForm)
def set_up(request: HttpRequest, me: User, form: SetUpForm) -> HttpResponse | None:
    """Take the secret whose first code is right; the recovery codes are shown this once."""
    if has(me):
        return redirect("second-factor")
    secret = _secret_to_set_up(request)
    step = _step_of(secret, "".join(form.cleaned_data["code"].split()))
    if not step:
        form.add_error("code", gettext("The code is wrong. Does the clock of the phone go right?"))
        return None
    with transaction.atomic():
        User.objects.select_for_update().get(pk=me.pk)
        if has(me):
            return redirect("second-factor")
        data = {"secret": Adapter().encrypt(secret), "used": step}
        factor = Authenticator.objects.create(user=me, type=TOTP, data=data)
        codes = _new_codes(me)
        audit.record(me, "second_factor.set_up", me)
    del request.session[SECRET]
    request.session[GIVEN] = factor.pk
    request.session.cycle_key()
    return _shown_once(request, codes)


@_with_password(PasswordForm)
def make_codes(request: HttpRequest, me: User, form: PasswordForm) -> HttpResponse:
    """Other recovery codes; those from before are worth nothing."""
    if not has(me):
        return redirect("second-factor")
    with transaction.atomic():
        codes = _new_codes(me)
        audit.record(me, "second_factor.codes_made", me)
    return _shown_once(request, codes)


def _shown_once(request: HttpRequest, codes: list[str]) -> HttpResponse:
    target = _next(request) or resolve_url("account")
    return render(request, "second_factor/codes.html", {"codes": codes, "next": target})


@_with_password(PasswordForm)
def remove(request: HttpRequest, me: User, form: PasswordForm) -> HttpResponse:
    """Log in by the password alone from now on, or set up another."""
    if _take_away(me):
        audit.record(me, "second_factor.removed", me)
        messages.success(request, gettext("The second factor is removed."))
    return redirect("second-factor")


urlpatterns = [
    path("login/code/", ask_for_code, name="second-factor-code"),
    path("account/second-factor/", own_factor, name="second-factor"),
    path("account/second-factor/set-up/", set_up, name="second-factor-set-up"),
    path("account/second-factor/codes/", make_codes, name="second-factor-codes"),
    path("account/second-factor/remove/", remove, name="second-factor-remove"),
]
