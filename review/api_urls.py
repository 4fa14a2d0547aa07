"""REST addresses of reviews, reports and calibration."""

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from review.calibration import api as calibration_api
from review.decisions import api as decisions_api
from review.queues import api as queues_api
from review.ratings import api as ratings_api
from review.reports import api as reports_api

router = SimpleRouter(use_regex_path=False)
router.register("gold-sets", calibration_api.GoldSetViewSet, "api-gold-set")
router.register("calibrations/searches", calibration_api.SearchViewSet, "api-search")
router.register("calibrations", calibration_api.CalibrationViewSet, "api-calibration")
router.register("draws", queues_api.DrawViewSet, "api-draw")
router.register("review-queues", queues_api.QueueViewSet, "api-queue")
router.register("items", ratings_api.ItemViewSet, "api-item")
router.register("ratings", ratings_api.RatingViewSet, "api-rating")
router.register("answers", decisions_api.AnswerViewSet, "api-answer")
router.register("runs", reports_api.RunViewSet, "api-run")
router.register("adjudication", decisions_api.CaseViewSet, "api-adjudication")
router.register("adjudication/raised", decisions_api.ItemEventViewSet, "api-raised")

urlpatterns: list[URLPattern | URLResolver] = [
    *router.urls,
    path("metrics/", reports_api.MetricsView.as_view(), name="api-metrics"),
]
