"""Login through an OpenID Connect provider, built on ``django-allauth``. Imported only if ``CONCORD_OIDC_…`` is set.

An identity logs in to an existing account; it never creates one and never grants a role. The link between identity and
account is a row of allauth's table. A logged-in user creates it with their password. With ``CONCORD_OIDC_MATCH_EMAIL``,
the first login with the account's verified e-mail address creates it as well. Only the subject claim is stored.

allauth handles states, PKCE and the code exchange. This module adds the checks that its client lacks: the nonce, the
signature of the ID token, and the issuer."""

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
from evaluation.accounts.access import signed_in_get, signed_in_post, signed_in_user
from evaluation.accounts.login import (
    PROVIDER_SESSION_KEY,
    LimitedBackend,
    blocked_until,
    client_address,
    record_failure,
    record_success,
    users_with_address,
)
from evaluation.accounts.password_links import distrust, has_address_of_others
from evaluation.core.addresses import client_network
from evaluation.core.errors import DomainError
from evaluation.messages.explanations import explain_refusal
from evaluation.models import User

log = logging.getLogger("concord.sso")
BACKEND = settings.AUTHENTICATION_BACKENDS[0]
#: Accepted signatures of ID tokens: asymmetric ones, whose keys only the provider has.
SIGNATURE_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
CLOCK_SKEW_SECONDS = 60
# allauth's names of the two processes.
LOGIN, LINK = "login", "connect"


class OIDCClient(OpenIDConnectOAuth2Adapter):
    """OpenID Connect client that verifies the provider's signatures."""

    def get_provider(self) -> Provider:
        return configured_provider(self.request)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        """Return the callback URL, which is registered with the provider."""
        site = settings.CONCORD_SITE_URL or request.build_absolute_uri("/")
        return f"{site.rstrip('/')}{reverse('sso-callback')}"

    @cached_property
    def openid_config(self) -> dict[str, Any]:
        """The provider's discovery document.

        :raises OAuth2Error: if its issuer differs from the configured one."""
        issuer = settings.CONCORD_OIDC["issuer"]
        config = self._get_json(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if config.get("issuer") != issuer:
            raise OAuth2Error("the provider names another issuer")
        return config

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> SocialLogin:
        """Return the verified identity with its ``claims``.

        :raises OAuth2Error: for an ID token of another issuer or audience, or outside its validity."""
        try:
            claims = self._verify_claims(app.client_id, kwargs["response"]["id_token"])
            if "email" not in claims and "userinfo_endpoint" in self.openid_config:
                userinfo = self._get_json(
                    self.openid_config["userinfo_endpoint"], Authorization=f"Bearer {token.token}"
                )
                claims = {**userinfo, **claims} if userinfo.get("sub") == claims["sub"] else claims
        except (jwt.PyJWTError, KeyError, TypeError) as error:
            raise OAuth2Error(f"the ID token is not valid: {error}") from error
        social_login = self.get_provider().sociallogin_from_response(request, {"id_token": {"sub": claims["sub"]}})
        social_login.account.extra_data = {}
        social_login.claims = claims
        return social_login

    def _verify_claims(self, client_id: str, id_token: str) -> dict[str, Any]:
        keys = jwt.PyJWKSet.from_dict(self._get_json(self.openid_config["jwks_uri"]))
        key_id = jwt.get_unverified_header(id_token).get("kid")
        key = keys.keys[0] if key_id is None and len(keys.keys) == 1 else keys[str(key_id)]
        claims: dict[str, Any] = jwt.decode(
            id_token,
            key,
            algorithms=SIGNATURE_ALGORITHMS,
            audience=client_id,
            issuer=self.openid_config["issuer"],
            leeway=CLOCK_SKEW_SECONDS,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
        if claims.get("azp", client_id) != client_id:
            raise OAuth2Error("the ID token is for another client")
        return claims

    def _get_json(self, url: str, **headers: str) -> dict[str, Any]:
        with SSOAdapter(self.request).get_requests_session() as session:
            response = session.get(url, headers=headers)
            response.raise_for_status()
            content: dict[str, Any] = response.json()
        return content


class Provider(OpenIDConnectProvider):
    """The configured provider, always with PKCE."""

    oauth2_adapter_class = OIDCClient
    pkce_enabled_default = True


def configured_provider(request: HttpRequest) -> Provider:
    """Return the configured provider. Links are stored under its issuer, because subjects of another provider
    differ."""
    config = settings.CONCORD_OIDC
    app = SocialApp(
        provider=Provider.id,
        provider_id=config["issuer"],
        name=config["name"],
        client_id=config["client"],
        secret=config["secret"],
    )
    return Provider(request, app=app)


class SSOAdapter(DefaultSocialAccountAdapter):
    """Hooks that allauth calls on return from the provider. Each raises ``ImmediateHttpResponse`` with the response."""

    def on_authentication_error(self, request: HttpRequest, provider: Any, **details: Any) -> NoReturn:
        """Refuse without a reason, which might help an attacker."""
        log.warning("a log-in with the provider failed: %s %s", details.get("error"), details.get("exception") or "")
        refuse(request, gettext("Login failed. Try again."))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> NoReturn:
        """Log in the linked user, or create the requested link."""
        claims, state, link = sociallogin.claims, sociallogin.state, sociallogin.account
        if not constant_time_compare(str(claims.get("nonce", "")), state["nonce"]):
            self.on_authentication_error(request, sociallogin.provider, error="nonce")
        if state["process"] == LINK:
            raise ImmediateHttpResponse(_link_account(request, link, state["person"]))
        user = link.user if link.pk else _match_by_email(link, claims)
        if user is None or not LimitedBackend().user_can_authenticate(user):
            refuse(request, gettext("No account on this site is linked to this login."), claims["sub"])
        login(request, user, backend=BACKEND)
        request.session[PROVIDER_SESSION_KEY] = True
        record_success(user, _attempt_name(request, claims["sub"]), client_address(request))
        raise ImmediateHttpResponse(redirect(state["next"]))


def _match_by_email(link: SocialAccount, claims: Mapping[str, Any]) -> User | None:
    """Link the identity to the account with its verified e-mail address, and return the user.

    Requires exactly one active user with that address, who is no superuser and has no link."""
    email = claims.get("email")
    if not settings.CONCORD_OIDC["match_email"] or claims.get("email_verified") is not True or not email:
        return None
    users = users_with_address(str(email))
    if len(users) != 1 or users[0].is_superuser or SocialAccount.objects.filter(user=users[0]).exists():
        return None
    link.user = users[0]
    link.save()
    audit.record(users[0], "login.linked", users[0], by="email")
    if users[0].last_login is not None and has_address_of_others(users[0]):
        distrust(users[0])
    return users[0]


def _link_account(request: HttpRequest, link: SocialAccount, user_id: int) -> HttpResponse:
    user = request.user
    if not isinstance(user, User) or user.pk != user_id:
        refuse(request, gettext("You logged out in the meantime."))
    if link.pk and link.user_id != user.pk:
        refuse(request, gettext("This login is already linked to another account."))
    if not link.pk:
        link.user = user
        link.save()
        audit.record(user, "login.linked", user, by="person")
    messages.success(request, gettext("Your account is linked."))
    return redirect("sso")


def refuse(request: HttpRequest, text: str, subject: str = "") -> NoReturn:
    """Record a failed attempt of the subject or the address, and show the message.

    :raises ImmediateHttpResponse: always."""
    record_failure(_attempt_name(request, subject), client_address(request))
    context = {"text": text, "name": settings.CONCORD_OIDC["name"]}
    raise ImmediateHttpResponse(render(request, "sso/refused.html", context, status=403))


def _attempt_name(request: HttpRequest, subject: str = "") -> str:
    """Return the name under which attempts are counted; it never blocks another user's login."""
    return f"oidc {subject or client_network(client_address(request))}"


def _throttle_response(request: HttpRequest) -> HttpResponse | None:
    if not blocked_until(_attempt_name(request), client_address(request)):
        return None
    text = gettext("Too many failed login attempts. Try again in a few minutes.")
    return render(request, "429.html", {"text": text}, status=429)


def _redirect_to_provider(request: HttpRequest, process: str, **state: Any) -> HttpResponse:
    """Send the browser to the provider, which returns ``state`` to the callback; 429 after too many failures.

    A page with a link is rendered instead of a redirect. Some browsers apply ``form-action`` to every redirect after a
    form, and the origins of the provider's own redirects are unknown."""
    if throttled := _throttle_response(request):
        return throttled
    nonce, name = secrets.token_urlsafe(32), settings.CONCORD_OIDC["name"]
    try:
        location = configured_provider(request).redirect(
            request, process, auth_params={"nonce": nonce}, nonce=nonce, **state
        )
        response = render(request, "sso/go.html", {"name": name, "address": location.url})
    # Errors of `requests` are OSErrors.
    except (OSError, ValueError, KeyError, OAuth2Error) as error:
        log.error("the OpenID Connect provider does not respond correctly: %s", error)
        context = {"text": gettext("The sign-in service is not responding."), "name": name}
        response = render(request, "sso/refused.html", context, status=503)
    return response


@require_POST
def start_login(request: HttpRequest) -> HttpResponse:
    """Start a login at the provider."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        target = resolve_url(settings.LOGIN_REDIRECT_URL)
    return _redirect_to_provider(request, LOGIN, next_url=target)


@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Handle the return from the provider."""
    if throttled := _throttle_response(request):
        return throttled
    provider = configured_provider(request)
    try:
        response: HttpResponse = OAuth2CallbackView.adapter_view(OIDCClient(request, provider.sub_id))(request)
    # The provider's response may have any shape.
    except (OSError, ValueError, KeyError, TypeError) as error:
        try:
            SSOAdapter(request).on_authentication_error(request, provider, exception=error)
        except ImmediateHttpResponse as refusal:
            response = refusal.response
    return response


@signed_in_get
def own_link(request: HttpRequest) -> HttpResponse:
    """Show whether the user's account is linked, and the forms to change it."""
    linked = SocialAccount.objects.filter(
        user=signed_in_user(request), provider=settings.CONCORD_OIDC["issuer"]
    ).exists()
    return render(request, "sso/link.html", {"linked": linked, "name": settings.CONCORD_OIDC["name"]})


@signed_in_post
def link_account(request: HttpRequest) -> HttpResponse:
    """Start linking the user's account; requires the password, so that an unattended session does not suffice."""
    user = signed_in_user(request)
    if user.is_distrusted:
        messages.error(request, explain_refusal(DomainError("password_by_others_link")))
        return redirect("sso")
    if authenticate(request, username=user.username, password=request.POST.get("password", "")) != user:
        messages.error(request, gettext("Wrong password or too many attempts."))
        return redirect("sso")
    return _redirect_to_provider(request, LINK, person=user.pk)


@signed_in_post
def unlink_account(request: HttpRequest) -> HttpResponse:
    """Remove the user's link if they have a password to log in with."""
    user = signed_in_user(request)
    if not user.has_usable_password():
        messages.error(request, gettext("You have no password. Ask an administrator for a link to set one first."))
    elif SocialAccount.objects.filter(user=user, provider=settings.CONCORD_OIDC["issuer"]).delete()[0]:
        audit.record(user, "login.unlinked", user)
        messages.success(request, gettext("Your account is no longer linked."))
    return redirect("sso")


urlpatterns = [
    path("login/sso/", start_login, name="sso-start"),
    path("login/sso/callback/", callback, name="sso-callback"),
    path("account/sso/", own_link, name="sso"),
    path("account/sso/link/", link_account, name="sso-link"),
    path("account/sso/unlink/", unlink_account, name="sso-unlink"),
]
