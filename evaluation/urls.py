"""Addresses of the machine's half."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.urls import URLPattern, URLResolver, path

from evaluation.accounts import views as accounts_views
from evaluation.datasets import views as datasets_views
from evaluation.datasets.uploads import ANSWERS, QUESTIONS
from evaluation.runs import views as runs_views
from evaluation.worker import lifecycle

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", accounts_views.SignIn.as_view(), name="login"),
    path("logout/", accounts_views.SignOut.as_view(), name="logout"),
    path("account/", login_required(accounts_views.Account.as_view()), name="account"),
    path("account/kept/", accounts_views.kept, name="kept"),
    path("account/tokens/", accounts_views.make_token, name="token-make"),
    path("account/tokens/<int:pk>/revoke/", accounts_views.revoke_token, name="token-revoke"),
    path("password/<uidb64>/<token>/", accounts_views.ChoosePassword.as_view(), name="password-choose"),
    path("language/", accounts_views.choose_language, name="language"),
    path("favicon.ico", accounts_views.favicon, name="favicon"),
    path("question-sets/", datasets_views.question_set_list, name="question-set-list"),
    path("question-sets/upload/", datasets_views.upload, name="question-set-upload"),
    path("question-sets/upload/<uuid:uuid>/", datasets_views.upload_preview, name="question-set-preview"),
    path(
        "question-sets/upload/<uuid:uuid>/columns/",
        datasets_views.columns,
        {"kind": QUESTIONS},
        name="question-set-columns",
    ),
    path(
        "question-sets/upload/<uuid:uuid>/encoding/",
        datasets_views.encoding,
        {"kind": QUESTIONS},
        name="question-set-encoding",
    ),
    path("question-sets/upload/<uuid:uuid>/confirm/", datasets_views.upload_confirm, name="question-set-confirm"),
    path("question-sets/<int:pk>/", datasets_views.question_set, name="question-set"),
    path("evaluations/new/", runs_views.new_evaluation, name="evaluation-new"),
    path("evaluations/new/run/", runs_views.new_run, name="evaluation-run"),
    path("evaluations/try/", runs_views.try_one, name="evaluation-try"),
    path("evaluations/traces/", runs_views.new_traces, name="traces-new"),
    path("evaluations/traces/<uuid:uuid>/", runs_views.traces_preview, name="traces-preview"),
    path("evaluations/traces/<uuid:uuid>/confirm/", runs_views.traces_confirm, name="traces-confirm"),
    path("evaluations/answers/<uuid:uuid>/", runs_views.answers_preview, name="answers-preview"),
    path("evaluations/answers/<uuid:uuid>/columns/", datasets_views.columns, {"kind": ANSWERS}, name="answers-columns"),
    path(
        "evaluations/answers/<uuid:uuid>/encoding/", datasets_views.encoding, {"kind": ANSWERS}, name="answers-encoding"
    ),
    path("evaluations/answers/<uuid:uuid>/confirm/", runs_views.answers_confirm, name="answers-confirm"),
    path("evaluations/answers/<uuid:uuid>/cancel/", runs_views.answers_cancel, name="answers-cancel"),
    path("runs/<int:pk>/start/", runs_views.steer, {"step": lifecycle.start}, name="run-start"),
    path("runs/<int:pk>/pause/", runs_views.steer, {"step": lifecycle.pause}, name="run-pause"),
    path("runs/<int:pk>/resume/", runs_views.resume, name="run-resume"),
    path("runs/<int:pk>/cancel/", runs_views.steer, {"step": lifecycle.cancel}, name="run-cancel"),
    path("runs/<int:pk>/retry/", runs_views.retry, name="run-retry"),
]
