"""Addresses of the machine's half."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.urls import URLPattern, URLResolver, path

from evaluation.questions.uploads import ANSWERS, QUESTIONS
from evaluation.web import run_views, views
from evaluation.work import lifecycle

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", views.SignIn.as_view(), name="login"),
    path("logout/", views.SignOut.as_view(), name="logout"),
    path("account/", login_required(views.Account.as_view()), name="account"),
    path("account/kept/", views.kept, name="kept"),
    path("account/tokens/", views.make_token, name="token-make"),
    path("account/tokens/<int:pk>/revoke/", views.revoke_token, name="token-revoke"),
    path("password/<uidb64>/<token>/", views.ChoosePassword.as_view(), name="password-choose"),
    path("language/", views.choose_language, name="language"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("question-sets/", views.question_set_list, name="question-set-list"),
    path("question-sets/upload/", views.upload, name="question-set-upload"),
    path("question-sets/upload/<uuid:uuid>/", views.upload_preview, name="question-set-preview"),
    path(
        "question-sets/upload/<uuid:uuid>/columns/",
        views.columns,
        {"kind": QUESTIONS},
        name="question-set-columns",
    ),
    path(
        "question-sets/upload/<uuid:uuid>/encoding/",
        views.encoding,
        {"kind": QUESTIONS},
        name="question-set-encoding",
    ),
    path("question-sets/upload/<uuid:uuid>/confirm/", views.upload_confirm, name="question-set-confirm"),
    path("question-sets/<int:pk>/", views.question_set, name="question-set"),
    path("evaluations/new/", run_views.new_evaluation, name="evaluation-new"),
    path("evaluations/new/run/", run_views.new_run, name="evaluation-run"),
    path("evaluations/try/", run_views.try_one, name="evaluation-try"),
    path("evaluations/answers/<uuid:uuid>/", run_views.answers_preview, name="answers-preview"),
    path("evaluations/answers/<uuid:uuid>/columns/", views.columns, {"kind": ANSWERS}, name="answers-columns"),
    path("evaluations/answers/<uuid:uuid>/encoding/", views.encoding, {"kind": ANSWERS}, name="answers-encoding"),
    path("evaluations/answers/<uuid:uuid>/confirm/", run_views.answers_confirm, name="answers-confirm"),
    path("evaluations/answers/<uuid:uuid>/cancel/", run_views.answers_cancel, name="answers-cancel"),
    path("runs/<int:pk>/start/", views.steer, {"step": lifecycle.start}, name="run-start"),
    path("runs/<int:pk>/pause/", views.steer, {"step": lifecycle.pause}, name="run-pause"),
    path("runs/<int:pk>/resume/", views.resume, name="run-resume"),
    path("runs/<int:pk>/cancel/", views.steer, {"step": lifecycle.cancel}, name="run-cancel"),
    path("runs/<int:pk>/retry/", views.retry, name="run-retry"),
]
