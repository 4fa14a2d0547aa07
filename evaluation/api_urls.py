"""REST URLs of this app."""

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from evaluation.criteria.api import CriterionViewSet
from evaluation.datasets.api import QuestionSetViewSet, UploadViewSet
from evaluation.judges.api import JudgeViewSet, RubricViewSet
from evaluation.profiles.api import ProfileViewSet
from evaluation.rest.views import SchemaView, documentation, entry_points
from evaluation.runs.api import AnswerSetViewSet, RunViewSet
from evaluation.systems.api import SystemViewSet

router = SimpleRouter(use_regex_path=False)
router.register("question-sets", QuestionSetViewSet, "api-question-set")
router.register("uploads", UploadViewSet, "api-upload")
router.register("systems", SystemViewSet, "api-system")
router.register("answer-sets", AnswerSetViewSet, "api-answer-set")
router.register("judges", JudgeViewSet, "api-judge")
router.register("criteria", CriterionViewSet, "api-criterion")
router.register("rubrics", RubricViewSet, "api-rubric")
router.register("profiles", ProfileViewSet, "api-profile")
router.register("runs", RunViewSet, "api-run")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", entry_points, name="api-entry-points"),
    path("schema/", SchemaView.as_view(), name="api-schema"),
    path("documentation/", documentation, name="api-documentation"),
    *router.urls,
]
