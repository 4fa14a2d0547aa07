"""Addresses of the human half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from review.agreement import views as agreement_views
from review.answers import search
from review.answers import views as answers_views
from review.calibration import views as calibration_views
from review.comparisons import views as comparisons_views
from review.corpora import views as corpora_views
from review.decisions import views as decisions_views
from review.generation import views as generation_views
from review.judges import views as judges_views
from review.queues import views as queues_views
from review.queues.making import close, reopen
from review.ratings import views as ratings_views
from review.reports import views as reports_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", reports_views.home, name="home"),
    path("search/", search.search, name="search"),
    path("runs/", reports_views.run_list, name="run-list"),
    path("runs/compare/", comparisons_views.run_compare, name="run-compare"),
    path("runs/compare/answers/", comparisons_views.run_compare_answers, name="run-compare-answers"),
    path("runs/<int:pk>/", reports_views.run, name="run"),
    path("runs/<int:pk>/answers/", answers_views.run_answers, name="run-answers"),
    path("runs/<int:pk>/answers/override/", answers_views.run_override, name="run-override"),
    path("runs/<int:pk>/assumption/", reports_views.run_assume, name="run-assume"),
    path("runs/<int:pk>/report/", reports_views.run_report, name="run-report"),
    path("runs/<int:pk>/records/", reports_views.run_records, name="run-records"),
    path("runs/<int:pk>/progress/", reports_views.run_progress, name="run-progress"),
    path("runs/<int:pk>/agreement/", agreement_views.run_agreement, name="run-agreement"),
    path("runs/<int:pk>/agreement/intervals/", agreement_views.run_agreement_intervals, name="run-agreement-intervals"),
    path("runs/<int:pk>/agreement/over-time/", agreement_views.run_agreement_over_time, name="run-agreement-over-time"),
    path("runs/<int:pk>/retrieval/", reports_views.run_retrieval, name="run-retrieval"),
    path("question-sets/<int:pk>/quality/", corpora_views.set_quality_page, name="set-quality"),
    path("corpora/", corpora_views.corpus_list, name="corpus-list"),
    path("corpora/upload/", corpora_views.corpus_upload, name="corpus-upload"),
    path("corpora/<int:pk>/", corpora_views.corpus, name="corpus"),
    path("corpora/documents/<int:pk>/", corpora_views.document, name="corpus-document"),
    path("answers/<int:pk>/", answers_views.answer, name="answer"),
    path("answers/<int:pk>/override/", answers_views.override_score, name="answer-override"),
    path("answers/<int:pk>/revert/", answers_views.revert_score, name="answer-revert"),
    path("judges/", judges_views.judge_list, name="judge-list"),
    path("judges/<int:pk>/", judges_views.judge, name="judge"),
    path("judges/<int:pk>/try/", judges_views.judge_try, name="judge-try"),
    path("judges/<int:pk>/card/", judges_views.judge_card_file, name="judge-card"),
    path("calibration/", calibration_views.calibration_list, name="calibration-list"),
    path("calibration/freeze/", calibration_views.calibration_freeze, name="calibration-freeze"),
    path("calibration/<int:pk>/", calibration_views.calibration, name="calibration"),
    path("calibration/<int:pk>/grow/", calibration_views.calibration_grow, name="calibration-grow"),
    path("calibration/<int:pk>/retire/", calibration_views.calibration_retire, name="calibration-retire"),
    path("calibration/<int:pk>/open/", calibration_views.calibration_open, name="calibration-open"),
    path("calibration/<int:pk>/draft/", calibration_views.calibration_draft, name="calibration-draft"),
    path("calibration/<int:pk>/try/", calibration_views.calibration_try, name="calibration-try"),
    path("calibration/<int:pk>/run/", calibration_views.calibration_run, name="calibration-run"),
    path("calibration/<int:pk>/offer/", calibration_views.calibration_offer, name="calibration-offer"),
    path("calibration/<int:pk>/search/", calibration_views.calibration_search, name="calibration-search"),
    path("calibration/<int:pk>/check/", calibration_views.calibration_check, name="calibration-check"),
    path("calibration/<int:pk>/look/", calibration_views.calibration_look, name="calibration-look"),
    path("generations/", generation_views.generation_list, name="generation-list"),
    path("generations/new/", generation_views.generation_new, name="generation-new"),
    path("generations/<int:pk>/", generation_views.generation, name="generation"),
    path("generations/<int:pk>/go-on/", generation_views.generation_go_on, name="generation-go-on"),
    path("generations/<int:pk>/set/", generation_views.generation_set, name="generation-set"),
    path("generations/questions/<int:pk>/", generation_views.draft_decide, name="draft-decide"),
    path("queues/", queues_views.queue_list, name="queue-list"),
    path("queues/new/", queues_views.queue_new, name="queue-new"),
    path("queues/new/preview/", queues_views.preview, name="queue-preview"),
    path("queues/<int:pk>/", queues_views.queue, name="queue"),
    path("queues/<int:pk>/people/", queues_views.queue_people, name="queue-people"),
    path("queues/<int:pk>/people/reassign/", queues_views.queue_reassign, name="queue-reassign"),
    path("queues/<int:pk>/people/release/", queues_views.queue_release, name="queue-release"),
    path("queues/<int:pk>/people/extend/", queues_views.queue_extend, name="queue-extend"),
    path("queues/<int:pk>/people/invite/", queues_views.queue_invite, name="queue-invite"),
    path("queues/<int:pk>/deadline/", queues_views.queue_deadline, name="queue-deadline"),
    path("queues/<int:pk>/items/", queues_views.queue_items, name="queue-items"),
    path("queues/<int:pk>/export/", queues_views.queue_export, name="queue-export"),
    path("queues/<int:pk>/questions/", queues_views.queue_questions, name="queue-questions"),
    path("queues/<int:pk>/close/", queues_views.queue_set, {"step": close}, name="queue-close"),
    path("queues/<int:pk>/reopen/", queues_views.queue_set, {"step": reopen}, name="queue-reopen"),
    path("review/<int:pk>/", ratings_views.next_item, name="review-next"),
    path("items/<int:pk>/", ratings_views.item, name="review-item"),
    path("items/<int:pk>/submit/", ratings_views.submit_item, name="review-submit"),
    path("items/<int:pk>/draft/", ratings_views.save, name="review-draft"),
    path("items/<int:pk>/ahead/", ratings_views.item_ahead, name="review-ahead"),
    path("items/<int:pk>/skip/", ratings_views.skip_item, name="review-skip"),
    path("items/<int:pk>/flag/", ratings_views.flag_item, name="review-flag"),
    path("items/<int:pk>/escalate/", ratings_views.escalate_item, name="review-escalate"),
    path("items/<int:pk>/extend/", ratings_views.extend_item, name="review-extend"),
    path("items/<int:pk>/undo/", ratings_views.undo_item, name="review-undo"),
    path("items/<int:pk>/finalise/", ratings_views.finalise_item, name="review-finalise"),
    path("items/<int:pk>/again/", ratings_views.rate_item_again, name="review-again"),
    path("my-ratings/", ratings_views.my_ratings, name="my-ratings"),
    path("adjudication/", decisions_views.adjudication, name="adjudication"),
    path("adjudication/<int:pk>/", decisions_views.case, name="adjudication-case"),
    path("adjudication/<int:pk>/decide/", decisions_views.decide, name="adjudication-decide"),
    path("adjudication/<int:pk>/question/", decisions_views.question, name="adjudication-question"),
    path("adjudication/<int:pk>/rubric/<str:metric>/", decisions_views.rubric, name="adjudication-rubric"),
    path("adjudication/raised/<int:pk>/", decisions_views.rule, name="ruling"),
    path("keys/", ratings_views.keys, name="review-keys"),
    path("keys/switch/", ratings_views.switch_keys, name="keys-switch"),
]
