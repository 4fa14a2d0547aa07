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


def seen(settings: Any, monkeypatch: pytest.MonkeyPatch, peer: str, proxies: str, **headers: str) -> tuple[str, bool]:
    """The address and whether TLS, as a view sees them."""
    monkeypatch.setenv("CONCORD_TRUSTED_PROXIES", proxies)
    settings.CONCORD_TRUSTED_PROXIES = read_networks("CONCORD_TRUSTED_PROXIES")
    found: list[tuple[str, bool]] = []

    def view(request: HttpRequest) -> HttpResponse:
        found.append((client_address(request), request.is_secure()))
        return HttpResponse()

    ProxyMiddleware(view)(RequestFactory().get("/", REMOTE_ADDR=peer, headers=headers))
    return found[0]


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
def test_the_address_is_the_last_that_is_no_proxy(
    settings: Any, monkeypatch: pytest.MonkeyPatch, peer: str, proxies: str, forwarded: str, address: str
) -> None:
    assert seen(settings, monkeypatch, peer, proxies, **{"x-forwarded-for": forwarded})[0] == address


def test_only_a_trusted_proxy_says_that_tls_was_spoken(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"x-forwarded-proto": "https"}
    assert seen(settings, monkeypatch, "10.0.0.1", "10.0.0.1", **said)[1]
    assert not seen(settings, monkeypatch, "10.0.0.2", "10.0.0.1", **said)[1]
    assert not seen(settings, monkeypatch, "10.0.0.1", "10.0.0.1", **{"x-forwarded-proto": "gopher"})[1]


def test_a_network_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORD_TRUSTED_PROXIES", "10.0.0.0/8,my-proxy")
    with pytest.raises(ImproperlyConfigured, match=r"CONCORD_TRUSTED_PROXIES.*my-proxy"):
        read_networks("CONCORD_TRUSTED_PROXIES")


@pytest.mark.django_db
def test_tls_is_asked_for_and_remembered_where_the_operator_says_so(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 60
    settings.CONCORD_TRUSTED_PROXIES = []
    answer = Client().get("/login/")
    assert (answer.status_code, answer["Location"]) == (301, "https://testserver/login/")
    assert Client().get("/login/", secure=True)["Strict-Transport-Security"] == "max-age=60"


@pytest.mark.django_db
def test_pages_answers_and_exports_are_kept_by_nobody() -> None:
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
