"""Who gets what at every address: the table of permissions that ``test_access_matrix`` holds the site to.

An outcome is one word per person of ``tests.pages.world.PEOPLE``: ``ok`` (whatever the answer says, the person was let
in), ``no`` (403), ``gone`` (404: for this person it does not exist), ``login`` (sent there, or 401).
``member`` is a reviewer of the queue who holds the item and has not rated it; ``outsider`` a reviewer of the project.
"""

from __future__ import annotations

#                   anonymous stranger viewer member outsider evaluator lead admin
ANYBODY = "         ok        ok       ok     ok     ok       ok        ok   ok  "
LOGGED_IN = "       login     ok       ok     ok     ok       ok        ok   ok  "  # lists show what is theirs
SEES_RUNS = "       login     gone     ok     no     no       ok        ok   ok  "
EVALUATES = "       login     gone     no     no     no       ok        ok   ok  "
EVALUATES_SOMEWHERE = "login  no       no     no     no       ok        ok   ok  "
LEADS = "           login     gone     no     no     no       no        ok   ok  "
LEADS_QUEUE = "     login     gone     gone   no     gone     gone      ok   ok  "
SEES_QUEUE = "      login     gone     gone   ok     gone     gone      ok   ok  "
HOLDS = "           login     gone     gone   ok     gone     gone      gone gone"
SEES_ANSWER = "     login     gone     ok     gone   gone     ok        ok   ok  "
OVERRIDES = "       login     gone     no     gone   gone     no        ok   ok  "
SEES_RUBRIC = "     login     gone     ok     gone   gone     ok        ok   ok  "

PAGES = {
    ("GET", "home"): LOGGED_IN,
    ("GET", "login"): ANYBODY,
    ("POST", "login"): ANYBODY,
    ("POST", "logout"): ANYBODY,
    ("POST", "language"): ANYBODY,
    ("GET", "favicon"): ANYBODY,
    ("GET", "question-set-list"): LOGGED_IN,
    ("GET", "question-set"): SEES_RUNS,
    ("GET", "question-set-upload"): EVALUATES_SOMEWHERE,
    ("POST", "question-set-upload"): EVALUATES_SOMEWHERE,
    ("GET", "question-set-preview"): EVALUATES,
    ("POST", "question-set-confirm"): EVALUATES,
    ("GET", "run-list"): LOGGED_IN,
    ("GET", "run"): SEES_RUNS,
    ("GET", "run-progress"): SEES_RUNS,
    ("GET", "run-agreement"): SEES_RUNS,
    ("GET", "run-compare"): SEES_RUNS,
    ("GET", "run-compare-answers"): SEES_RUNS,
    ("POST", "run-start"): EVALUATES,
    ("POST", "run-pause"): EVALUATES,
    ("POST", "run-resume"): EVALUATES,
    ("POST", "run-cancel"): EVALUATES,
    ("POST", "run-retry"): EVALUATES,
    ("GET", "answer"): SEES_ANSWER,
    ("POST", "answer-override"): OVERRIDES,
    ("POST", "answer-revert"): OVERRIDES,
    ("GET", "queue-list"): LOGGED_IN,
    ("GET", "queue-new"): LEADS,
    ("POST", "queue-new"): LEADS,
    ("GET", "queue-preview"): LEADS,
    ("GET", "queue"): SEES_QUEUE,
    ("POST", "queue-close"): LEADS_QUEUE,
    ("POST", "queue-reopen"): LEADS_QUEUE,
    ("GET", "review-next"): HOLDS,
    ("GET", "review-item"): HOLDS,
    ("POST", "review-submit"): HOLDS,
    ("POST", "review-draft"): HOLDS,
    ("POST", "review-skip"): HOLDS,
    ("POST", "review-flag"): HOLDS,
    ("POST", "review-undo"): HOLDS,
    ("POST", "review-finalise"): HOLDS,
}

API = {
    ("GET", "api-schema"): ANYBODY,
    ("GET", "api-question-sets"): LOGGED_IN,
    ("POST", "api-question-sets"): LOGGED_IN,  # who may import nowhere has no project to name: 400
    ("GET", "api-question-set"): SEES_RUNS,
    ("GET", "api-questions"): SEES_RUNS,
    ("GET", "api-systems"): LOGGED_IN,
    ("GET", "api-system"): SEES_RUNS,
    ("GET", "api-answer-sets"): LOGGED_IN,
    ("POST", "api-answer-sets"): LOGGED_IN,  # likewise
    ("GET", "api-answer-set"): SEES_RUNS,
    ("GET", "api-judges"): LOGGED_IN,
    ("GET", "api-judge"): SEES_RUNS,
    ("GET", "api-rubrics"): LOGGED_IN,
    ("GET", "api-rubric"): SEES_RUBRIC,
    ("GET", "api-profiles"): LOGGED_IN,
    ("GET", "api-profile"): SEES_RUNS,
    ("GET", "api-runs"): LOGGED_IN,
    ("POST", "api-runs"): EVALUATES,
    ("GET", "api-run"): SEES_RUNS,
    ("GET", "api-run-answers"): SEES_RUNS,
    ("POST", "api-run-pause"): EVALUATES,
    ("POST", "api-run-resume"): EVALUATES,
    ("POST", "api-run-cancel"): EVALUATES,
    ("POST", "api-run-retry-failed"): EVALUATES,
    ("GET", "api-run-compare"): SEES_RUNS,
    ("GET", "api-run-report"): SEES_RUNS,
    ("GET", "api-run-agreement"): SEES_RUNS,
    ("GET", "api-run-correction"): SEES_RUNS,
    ("GET", "api-draw-list"): LOGGED_IN,
    ("POST", "api-draw-list"): LEADS,
    ("GET", "api-draw"): LEADS,
    ("GET", "api-queue-list"): LOGGED_IN,
    ("POST", "api-queue-list"): LEADS,
    ("GET", "api-queue"): SEES_QUEUE,
    ("GET", "api-queue-items"): SEES_QUEUE,
    ("POST", "api-queue-next"): HOLDS,
    ("GET", "api-queue-progress"): SEES_QUEUE,
    ("POST", "api-queue-close"): LEADS_QUEUE,
    ("POST", "api-queue-reopen"): LEADS_QUEUE,
    ("GET", "api-item"): HOLDS,
    ("POST", "api-item-draft"): HOLDS,
    ("POST", "api-item-submit"): HOLDS,
    ("POST", "api-item-reveal"): HOLDS,
    ("POST", "api-item-finalise"): HOLDS,
    ("POST", "api-item-undo"): HOLDS,
    ("POST", "api-item-skip"): HOLDS,
    ("POST", "api-item-flag"): HOLDS,
    ("POST", "api-item-escalate"): HOLDS,
    ("POST", "api-item-release"): HOLDS,
    ("POST", "api-item-extend"): HOLDS,
    ("POST", "api-answer-override"): OVERRIDES,
    ("GET", "api-rating-list"): LOGGED_IN,
    ("POST", "api-rating-list"): LOGGED_IN,  # the run that is named decides; here none is: 400
}

RULES = {**PAGES, **API}
