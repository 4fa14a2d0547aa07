"""Addresses and schemes come from trusted proxies alone, and nothing personal is kept on the way (17.7)."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from config.environment import read_networks
from config.middleware import ProxyMiddleware
from evaluation.accounts.login import client_address
from tests.pages.world import make_world


def proxied_request(
    settings: Any, monkeypatch: pytest.MonkeyPatch, peer: str, proxies: str, **headers: str
) -> tuple[str, bool]:
    """The address and whether TLS, as a view sees them."""
    monkeypatch.setenv("CONCORD_TRUSTED_PROXIES", proxies)
    settings.CONCORD_TRUSTED_PROXIES = read_networks("CONCORD_TRUSTED_PROXIES")
    requests: list[tuple[str, bool]] = []

    def view(request: HttpRequest) -> HttpResponse:
        requests.append((client_address(request), request.is_secure()))
        return HttpResponse()

    ProxyMiddleware(view)(RequestFactory().get("/", REMOTE_ADDR=peer, headers=headers))
    return requests[0]


@pytest.mark.parametrize(
    ("peer", "proxies", "forwarded", "address"),
    [
        ("203.0.113.9", "10.0.0.0/8", "198.51.100.1", "203.0.113.9"),  # not a proxy: not believed
        ("10.0.0.1", "10.0.0.0/8", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "10.0.0.0/8", "1.2.3.4, 198.51.100.1, 10.0.0.2", "198.51.100.1"),  # what comes first is hearsay
        ("10.0.0.1", "10.0.0.0/8", "<script>", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.0/8", "", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.0/8", "10.0.0.3", "10.0.0.1"),
        ("::1", "::1", "2001:db8::7", "2001:db8::7"),
        ("", "10.0.0.0/8", "198.51.100.1", ""),
    ],
)
def test_client_address_is_last_address_that_is_no_proxy(
    settings: Any, monkeypatch: pytest.MonkeyPatch, peer: str, proxies: str, forwarded: str, address: str
) -> None:
    assert proxied_request(settings, monkeypatch, peer, proxies, **{"x-forwarded-for": forwarded})[0] == address


def test_only_trusted_proxy_may_declare_tls(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy_headers = {"x-forwarded-proto": "https"}
    assert proxied_request(settings, monkeypatch, "10.0.0.1", "10.0.0.1", **proxy_headers)[1]
    assert not proxied_request(settings, monkeypatch, "10.0.0.2", "10.0.0.1", **proxy_headers)[1]
    assert not proxied_request(settings, monkeypatch, "10.0.0.1", "10.0.0.1", **{"x-forwarded-proto": "gopher"})[1]


def test_invalid_network_is_named_in_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORD_TRUSTED_PROXIES", "10.0.0.0/8,my-proxy")
    with pytest.raises(ImproperlyConfigured, match=r"CONCORD_TRUSTED_PROXIES.*my-proxy"):
        read_networks("CONCORD_TRUSTED_PROXIES")


@pytest.mark.django_db
def test_configured_site_redirects_to_tls_and_sends_hsts(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 60
    settings.CONCORD_TRUSTED_PROXIES = []
    answer = Client().get("/login/")
    assert (answer.status_code, answer["Location"]) == (301, "https://testserver/login/")
    assert Client().get("/login/", secure=True)["Strict-Transport-Security"] == "max-age=60"


@pytest.mark.django_db
def test_responses_are_not_cached() -> None:
    world = make_world()
    lead = world.client("lead")
    run = world.run.pk
    for address in (
        "/",
        f"/runs/{run}/",
        f"/api/v1/runs/{run}/",
        f"/api/v1/runs/{run}/report/?format=csv",
        "/nowhere/",
    ):
        assert lead.get(address)["Cache-Control"] == "private, no-store", address
    assert "no-store" in Client().get("/login/")["Cache-Control"]
