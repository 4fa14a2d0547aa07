"""Addresses of the machine's half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from evaluation.views import accounts, icon

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", accounts.SignIn.as_view(), name="login"),
    path("logout/", accounts.SignOut.as_view(), name="logout"),
    path("language/", accounts.choose_language, name="language"),
    path("favicon.ico", icon.favicon, name="favicon"),
]
