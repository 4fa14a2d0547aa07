"""URLs of login and account."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.urls import URLPattern, path

from evaluation.accounts import views

urlpatterns: list[URLPattern] = [
    path("login/", views.SignIn.as_view(), name="login"),
    path("logout/", views.SignOut.as_view(), name="logout"),
    path("account/", login_required(views.Account.as_view()), name="account"),
    path("account/data-retention/", views.data_retention, name="kept"),
    path("account/tokens/", views.create_token, name="token-make"),
    path("account/tokens/<int:pk>/revoke/", views.revoke_token, name="token-revoke"),
    path("password/<uidb64>/<token>/", views.ChoosePassword.as_view(), name="password-choose"),
    path("language/", views.choose_language, name="language"),
    path("favicon.ico", views.favicon, name="favicon"),
]
