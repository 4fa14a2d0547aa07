"""The sentence of every action that is refused in the present state, and what to do instead."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

IMPORTS = {
    "bad_definition": _(
        "“%(definition)s” defines no scale. Write NAME=1..5, NAME=0..1:real, NAME=-2..2, NAME=bool or NAME=class:a|b, "
        "each name once."
    ),
    "metric_known": _(
        "“%(metric)s” is a metric of the product with the scale %(scale)s; it cannot be defined as %(given)s. "
        "Give the imported metric another name."
    ),
    "bad_name": _("“%(name)s” cannot be a name: it needs 1 to %(limit)s characters, none of them invisible."),
    "unknown_upload_kind": _("Files of the kind “%(kind)s” cannot be uploaded here."),
    "upload_expired": _("The upload of %(file)s was not confirmed within a day. Upload the file again."),
}

ENDPOINTS = {
    "origin_invalid": _("“%(url)s” is no plain address. Write https://host/path, without user, password or query."),
    "origin_not_allowed": _(
        "%(origin)s is not on the list of allowed judge addresses. An operator adds it to CONCORD_JUDGE_ORIGINS."
    ),
}

EVALUATE = {
    "no_project": _("There is no project yet. Create one first."),
    "project_needed": _("There are several projects (%(names)s). Name the one you mean."),
    "no_question_selected": _("The filters leave no question."),
    "no_answers": _("The system “%(system)s” has no answers to %(questions)s. Import them first."),
    "other_questions": _("Run %(run)s answered other questions than %(questions)s."),
}

RUNS = {
    "key_missing": _("The environment variable %(variable)s with the endpoint's key is not set."),
    "nothing_failed": _("Nothing has failed, so there is nothing to retry."),
    "run_not_retryable": _("A draft or cancelled run cannot be retried."),
    "run_not_running": _("Only a running run can be paused; this one is %(state)s."),
    "run_not_paused": _("Only a paused run can be resumed; this one is %(state)s."),
    "run_ended": _("The run has ended (%(state)s), so there is nothing to cancel."),
    "start_token_used": _("The start token belongs to another run of another answer set."),
}

DRAWS = {
    "empty_frame": _("There is no answer to draw from."),
    "unknown_keys": _("These answers are not in the frame: %(keys)s."),
    "no_fail_threshold": _("Say below which value an answer counts as failed."),
    "fails_exceed_size": _("%(fails)s answers failed, more than the %(size)s to be drawn. Draw more."),
    "no_spread": _("Drawing by uncertainty needs repeats, a jury or token probabilities."),
    "draw_too_small": _("%(strata)s strata need at least %(needed)s answers. Draw more, or use fewer strata."),
}

QUEUES = {
    "size_below_one": _("Draw at least one answer."),
    "no_run": _("Choose at least one run."),
    "several_projects": _("All runs of a queue belong to one project."),
    "no_metrics": _("Choose at least one metric to be rated."),
    "no_reviewers": _("Choose at least one reviewer."),
    "not_in_project": _("These people have no role in the project: %(people)s. Give them one first."),
    "too_few_reviewers": _("%(needed)s reviewers per answer need at least as many people; there are %(people)s."),
    "queue_rule": _("“%(field)s” must lie between %(low)s and %(high)s."),
    "queue_name_tells": _(
        "Reviewers read the name before they rate. It must not name the system, the judge or the strategy: %(words)s."
    ),
}

REVIEW = {
    "queue_closed": _("The queue is closed. What you entered is kept as a draft."),
    "not_a_member": _("You are not among the reviewers of this queue."),
    "slot_taken": _("Your reservation ran out and somebody else has taken the item. What you entered is kept."),
    "not_held": _("You no longer hold this item."),
    "not_yours": _("This item is in somebody else's hands."),
    "already_rated": _("You have rated this item already. Take it back with Undo to change it."),
    "bad_key": _("This form was sent before. Reload the page and try again."),
    "metrics_missing": _("Not rated yet: %(metrics)s."),
    "metrics_unknown": _("The queue does not ask for: %(metrics)s."),
    "one_value": _("Give exactly one value for %(metric)s, or say that it cannot be judged."),
    "off_scale": _("%(value)s is not on the scale of %(metric)s (%(scale)s)."),
    "comment_too_long": _("The comment has %(length)s characters; at most %(limit)s are kept."),
    "draft_too_large": _("The draft is too large to be kept (at most %(limit)s characters)."),
    "judge_already_seen": _("You have seen the judge's value, so the first rating stays as it is."),
    "not_the_last": _("Only your last rating can be taken back."),
    "nothing_to_undo": _("There is nothing to take back here."),
    "not_rated_yet": _("Rate the item first."),
    "not_revealed": _("The judge is not shown for this item."),
    "already_final": _("You have decided on this item already."),
    "reason_needed": _("%(metric)s moved by two levels or more, or crossed its threshold: choose a reason."),
    "unknown_reason": _("“%(reason)s” is not on the list of reasons: %(known)s."),
}

OVERRIDES = {
    "reason_required": _("Give a reason."),
    "reason_too_long": _("The reason has %(length)s characters; at most %(limit)s are kept. Shorten it."),
    "adjudicated": _("This value was adjudicated; only a lead can override it."),
    "changed_meanwhile": _("Somebody else decided at the same moment. Look at the new value and try again."),
    "nothing_to_revert": _("There is no override to take back."),
}

SENTENCES = {**IMPORTS, **ENDPOINTS, **EVALUATE, **RUNS, **DRAWS, **QUEUES, **REVIEW, **OVERRIDES}
