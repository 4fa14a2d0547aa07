"""Addresses of the machine's half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from evaluation.web.views import accounts, icon, question_sets, run_control

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", accounts.SignIn.as_view(), name="login"),
    path("logout/", accounts.SignOut.as_view(), name="logout"),
    path("language/", accounts.choose_language, name="language"),
    path("favicon.ico", icon.favicon, name="favicon"),
    path("question-sets/", question_sets.question_set_list, name="question-set-list"),
    path("question-sets/upload/", question_sets.upload, name="question-set-upload"),
    path("question-sets/upload/<uuid:uuid>/", question_sets.upload_preview, name="question-set-preview"),
    path("question-sets/upload/<uuid:uuid>/confirm/", question_sets.upload_confirm, name="question-set-confirm"),
    path("question-sets/<int:pk>/", question_sets.question_set, name="question-set"),
    path("runs/<int:pk>/start/", run_control.start, name="run-start"),
    path("runs/<int:pk>/pause/", run_control.pause, name="run-pause"),
    path("runs/<int:pk>/resume/", run_control.resume, name="run-resume"),
    path("runs/<int:pk>/cancel/", run_control.cancel, name="run-cancel"),
    path("runs/<int:pk>/retry/", run_control.retry, name="run-retry"),
]
