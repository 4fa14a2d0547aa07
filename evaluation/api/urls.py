"""REST addresses of the machine's half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.views import SpectacularJSONAPIView

from evaluation.api import schema  # noqa: F401  -- registers itself with the schema
from evaluation.api.answer_sets import AnswerSetDetail, AnswerSetList
from evaluation.api.criteria import CriterionDetail, CriterionList
from evaluation.api.question_sets import QuestionList, QuestionSetDetail, QuestionSetList
from evaluation.api.run_answers import RunAnswerList
from evaluation.api.runs import STEERING, RunDetail, RunList, RunSteering
from evaluation.api.scorers import JudgeDetail, JudgeList, ProfileDetail, ProfileList, RubricDetail, RubricList
from evaluation.api.systems import SystemDetail, SystemList

urlpatterns: list[URLPattern | URLResolver] = [
    path("schema/", SpectacularJSONAPIView.as_view(), name="api-schema"),
    path("question-sets/", QuestionSetList.as_view(), name="api-question-sets"),
    path("question-sets/<int:pk>/", QuestionSetDetail.as_view(), name="api-question-set"),
    path("question-sets/<int:pk>/questions/", QuestionList.as_view(), name="api-questions"),
    path("systems/", SystemList.as_view(), name="api-systems"),
    path("systems/<int:pk>/", SystemDetail.as_view(), name="api-system"),
    path("answer-sets/", AnswerSetList.as_view(), name="api-answer-sets"),
    path("answer-sets/<int:pk>/", AnswerSetDetail.as_view(), name="api-answer-set"),
    path("judges/", JudgeList.as_view(), name="api-judges"),
    path("judges/<int:pk>/", JudgeDetail.as_view(), name="api-judge"),
    path("criteria/", CriterionList.as_view(), name="api-criteria"),
    path("criteria/<int:pk>/", CriterionDetail.as_view(), name="api-criterion"),
    path("rubrics/", RubricList.as_view(), name="api-rubrics"),
    path("rubrics/<int:pk>/", RubricDetail.as_view(), name="api-rubric"),
    path("profiles/", ProfileList.as_view(), name="api-profiles"),
    path("profiles/<int:pk>/", ProfileDetail.as_view(), name="api-profile"),
    path("runs/", RunList.as_view(), name="api-runs"),
    path("runs/<int:pk>/", RunDetail.as_view(), name="api-run"),
    path("runs/<int:pk>/answers/", RunAnswerList.as_view(), name="api-run-answers"),
    *(path(f"runs/<int:pk>/{verb}/", RunSteering.as_view(verb=verb), name=f"api-run-{verb}") for verb in STEERING),
]
