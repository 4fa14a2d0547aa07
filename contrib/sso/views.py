"""Logging in by an OpenID Connect provider (``CONCORD_OIDC_…``), on ``django-allauth``, which is imported where it is
set up alone.

An identity opens an account that an administrator has made; it never makes one and never gives a role. Which account
is a row of allauth's table: made by the person, logged in and with their password, or (``CONCORD_OIDC_MATCH_EMAIL``)
by the verified e-mail address the first time. No claim but the subject is kept.

States, PKCE and the exchange of the code are allauth's; what its client leaves out is checked here: the nonce, the
signature of the ID token, and that all was said by the issuer of the settings.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NoReturn

import jwt
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import path, reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from evaluation.accounts import audit
from evaluation.accounts.access import person, signed_in_get, signed_in_post
from evaluation.accounts.logging_in import (
    BY_PROVIDER,
    LimitedBackend,
    address_of,
    failed,
    succeeded,
    wait_until,
)
from evaluation.models import User

log = logging.getLogger("concord.sso")
BACKEND = settings.AUTHENTICATION_BACKENDS[0]
#: How an ID token may be signed: by keys that the provider alone has.
SIGNED_BY = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
CLOCKS_APART = 60  # seconds
LOGIN, LINK = "login", "connect"  # allauth's names of the two ways


class Client(OpenIDConnectOAuth2Adapter):
    """What asks the provider, and believes what it signed."""

    def get_provider(self) -> Provider:
        """The one of the settings."""
        return provider_of(self.request)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        """Where the provider sends people back to; it knows the address."""
        site = settings.CONCORD_SITE_URL or request.build_absolute_uri("/")
        return f"{site.rstrip('/')}{reverse('sso-callback')}"

    @cached_property
    def openid_config(self) -> dict[str, Any]:
        """What the provider says of itself.

        :raises OAuth2Error: where it is somebody else than the issuer of the settings.
        """
        issuer = settings.CONCORD_OIDC["issuer"]
        told = self._json(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if told.get("issuer") != issuer:
            raise OAuth2Error("another issuer")
        return told

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> SocialLogin:
        """Who it is, with ``claims``.

        :raises OAuth2Error: for an ID token that is not the issuer's, not for us, or not of now.
        """
        try:
            claims = self._claims(app.client_id, kwargs["response"]["id_token"])
            if "email" not in claims and "userinfo_endpoint" in self.openid_config:
                more = self._json(self.openid_config["userinfo_endpoint"], Authorization=f"Bearer {token.token}")
                claims = {**more, **claims} if more.get("sub") == claims["sub"] else claims
        except (jwt.PyJWTError, KeyError, TypeError) as error:
            raise OAuth2Error(f"the ID token cannot be believed: {error}") from error
        found = self.get_provider().sociallogin_from_response(request, {"id_token": {"sub": claims["sub"]}})
        found.account.extra_data = {}
        found.claims = claims
        return found

    def _claims(self, client: str, token: str) -> dict[str, Any]:
        keys = jwt.PyJWKSet.from_dict(self._json(self.openid_config["jwks_uri"]))
        name = jwt.get_unverified_header(token).get("kid")
        key = keys.keys[0] if name is None and len(keys.keys) == 1 else keys[str(name)]
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=SIGNED_BY,
            audience=client,
            issuer=self.openid_config["issuer"],
            leeway=CLOCKS_APART,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
        if claims.get("azp", client) != client:
            raise OAuth2Error("an ID token for somebody else")
        return claims

    def _json(self, address: str, **headers: str) -> dict[str, Any]:
        with Adapter(self.request).get_requests_session() as session:
            answer = session.get(address, headers=headers)
            answer.raise_for_status()
            told: dict[str, Any] = answer.json()
        return told


class Provider(OpenIDConnectProvider):
    """The provider of the settings; PKCE always."""

    oauth2_adapter_class = Client
    pkce_enabled_default = True


def provider_of(request: HttpRequest) -> Provider:
    """The provider of the settings. Links are kept under its issuer: another provider's subjects are others."""
    told = settings.CONCORD_OIDC
    app = SocialApp(
        provider=Provider.id,
        provider_id=told["issuer"],
        name=told["name"],
        client_id=told["client"],
        secret=told["secret"],
    )
    return Provider(request, app=app)


class Adapter(DefaultSocialAccountAdapter):
    """What allauth calls when somebody comes back; it does nothing of its own after that."""

    def on_authentication_error(self, request: HttpRequest, provider: Any, **told: Any) -> NoReturn:
        """Say that it did not work, without saying why to whoever made it fail."""
        log.warning("a log-in by the provider failed: %s %s", told.get("error"), told.get("exception") or "")
        refuse(request, gettext("The log-in did not work. Please try again."))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> NoReturn:
        """Log in or link, whoever it is."""
        claims, state, link = sociallogin.claims, sociallogin.state, sociallogin.account
        if not constant_time_compare(str(claims.get("nonce", "")), state["nonce"]):
            self.on_authentication_error(request, sociallogin.provider, error="nonce")
        if state["process"] == LINK:
            raise ImmediateHttpResponse(_link(request, link, state["person"]))
        who = link.user if link.pk else _by_email(link, claims)
        if who is None or not LimitedBackend().user_can_authenticate(who):
            refuse(request, gettext("No account of this site is linked with who you are there."), claims["sub"])
        login(request, who, backend=BACKEND)
        request.session[BY_PROVIDER] = True
        succeeded(who, _counted(request, claims["sub"]), address_of(request))
        raise ImmediateHttpResponse(redirect(state["next"]))


def _by_email(link: SocialAccount, claims: Mapping[str, Any]) -> User | None:
    """Whose account it is by a verified e-mail address, linked from now on: the only active person of that address, who
    is no administrator of the site and has no link."""
    email = claims.get("email")
    if not settings.CONCORD_OIDC["match_email"] or claims.get("email_verified") is not True or not email:
        return None
    people = list(User.objects.filter(email__iexact=email, is_active=True, is_service=False)[:2])
    if len(people) != 1 or people[0].is_superuser or SocialAccount.objects.filter(user=people[0]).exists():
        return None
    link.user = people[0]
    link.save()
    audit.record(people[0], "login.linked", people[0], by="email")
    return people[0]


def _link(request: HttpRequest, link: SocialAccount, whose: int) -> HttpResponse:
    me = request.user
    if not isinstance(me, User) or me.pk != whose:
        refuse(request, gettext("You logged out meanwhile."))
    if link.pk and link.user_id != me.pk:
        refuse(request, gettext("Somebody else's account is linked with who you are there."))
    if not link.pk:
        link.user = me
        link.save()
        audit.record(me, "login.linked", me, by="person")
    messages.success(request, gettext("Your account is linked."))
    return redirect("sso")


def refuse(request: HttpRequest, text: str, subject: str = "") -> NoReturn:
    """Count a failure like that of a password, of the subject or the address, and say so.

    :raises ImmediateHttpResponse: always.
    """
    failed(_counted(request, subject), address_of(request))
    page = {"text": text, "name": settings.CONCORD_OIDC["name"]}
    raise ImmediateHttpResponse(render(request, "sso/refused.html", page, status=403))


def _counted(request: HttpRequest, subject: str = "") -> str:
    """The name of an attempt: never one that a failure of somebody else could lock."""
    return f"oidc {subject or address_of(request)}"


def _has_to_wait(request: HttpRequest) -> HttpResponse | None:
    if not wait_until(_counted(request), address_of(request)):
        return None
    text = gettext("Too many attempts to log in failed. Try again in some minutes.")
    return render(request, "429.html", {"text": text}, status=429)


def _go(request: HttpRequest, process: str, **kept: Any) -> HttpResponse:
    """To the provider, with what is to be known on the way back; 429 for a while after too many failures.

    By a page that leads on, not by a redirect: some browsers hold every step after a form to ``form-action``, and which
    origins a provider sends people on to, nobody here knows."""
    if waits := _has_to_wait(request):
        return waits
    nonce, name = secrets.token_urlsafe(32), settings.CONCORD_OIDC["name"]
    try:
        there = provider_of(request).redirect(request, process, auth_params={"nonce": nonce}, nonce=nonce, **kept)
        answer = render(request, "sso/go.html", {"name": name, "address": there.url})
    except (OSError, ValueError, KeyError, OAuth2Error) as error:  # requests' errors are OSErrors
        log.error("the provider of log-ins does not answer as it should: %s", error)
        page = {"text": gettext("Nobody can be asked there at the moment."), "name": name}
        answer = render(request, "sso/refused.html", page, status=503)
    return answer


@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """To the provider, to log in."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        target = resolve_url(settings.LOGIN_REDIRECT_URL)
    return _go(request, LOGIN, next_url=target)


@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Back from the provider."""
    if waits := _has_to_wait(request):
        return waits
    provider = provider_of(request)
    try:
        answer: HttpResponse = OAuth2CallbackView.adapter_view(Client(request, provider.sub_id))(request)
    except (OSError, ValueError, KeyError, TypeError) as error:  # an answer of any shape
        try:
            Adapter(request).on_authentication_error(request, provider, exception=error)
        except ImmediateHttpResponse as said:
            answer = said.response
    return answer


@signed_in_get
def own_link(request: HttpRequest) -> HttpResponse:
    """Whether the own account is linked, and the forms to change that."""
    linked = SocialAccount.objects.filter(user=person(request), provider=settings.CONCORD_OIDC["issuer"]).exists()
    return render(request, "sso/link.html", {"linked": linked, "name": settings.CONCORD_OIDC["name"]})


@signed_in_post
def make_link(request: HttpRequest) -> HttpResponse:
    """To the provider, to link the own account; with the password, so that a session left open does not suffice."""
    me = person(request)
    if authenticate(request, username=me.username, password=request.POST.get("password", "")) != me:
        messages.error(request, gettext("The password is wrong, or there were too many attempts."))
        return redirect("sso")
    return _go(request, LINK, person=me.pk)


@signed_in_post
def end_link(request: HttpRequest) -> HttpResponse:
    """End the own link, where there is a password left to log in with."""
    me = person(request)
    if not me.has_usable_password():
        messages.error(request, gettext("You have no password. Ask an administrator for a link to choose one first."))
    elif SocialAccount.objects.filter(user=me, provider=settings.CONCORD_OIDC["issuer"]).delete()[0]:
        audit.record(me, "login.unlinked", me)
        messages.success(request, gettext("Your account is linked no more."))
    return redirect("sso")


urlpatterns = [
    path("login/sso/", start, name="sso-start"),
    path("login/sso/callback/", callback, name="sso-callback"),
    path("account/sso/", own_link, name="sso"),
    path("account/sso/link/", make_link, name="sso-link"),
    path("account/sso/unlink/", end_link, name="sso-unlink"),
]
