"""REST addresses of the human half."""

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from review.api import figures, gold, queues, ratings, searches

router = SimpleRouter(use_regex_path=False)
router.register("gold-sets", gold.GoldSetViewSet, "api-gold-set")
router.register("calibrations/searches", searches.SearchViewSet, "api-search")
router.register("calibrations", gold.CalibrationViewSet, "api-calibration")
router.register("draws", queues.DrawViewSet, "api-draw")
router.register("review-queues", queues.QueueViewSet, "api-queue")
router.register("items", ratings.ItemViewSet, "api-item")
router.register("ratings", ratings.RatingViewSet, "api-rating")
router.register("answers", ratings.AnswerViewSet, "api-answer")
router.register("runs", figures.RunViewSet, "api-run")
router.register("adjudication", ratings.CaseViewSet, "api-adjudication")
router.register("adjudication/raised", ratings.RaisedViewSet, "api-raised")

urlpatterns: list[URLPattern | URLResolver] = [
    *router.urls,
    path("metrics/", figures.MetricsView.as_view(), name="api-metrics"),
]
