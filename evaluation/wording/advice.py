"""What a person has to do before a paused run can go on, by the reason it was paused for."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

SENTENCES = {
    "unauthorised": _("Give the endpoint a key that is valid, then resume the run. What is scored is kept."),
    "forbidden": _("Give the key the right to use this model, or use another key, then resume the run."),
    "not_found": _(
        "Look at the endpoint's base URL and the judge's model name. If the endpoint is right now, resume the run; if "
        "the judge has to change, start a new run: finished calls are not paid for again."
    ),
    "no_credit": _("Add credit to the provider's account, then resume the run."),
    "redirect": _("Enter the endpoint's final address as its base URL, then resume the run."),
    "blocked": _("Have the operator put the endpoint's origin on the list CONCORD_JUDGE_ORIGINS, then resume the run."),
    "origin_not_allowed": _(
        "Have the operator put the endpoint's origin on the list CONCORD_JUDGE_ORIGINS, then resume the run."
    ),
    "tls": _("Have the endpoint's certificate put in order, then resume the run."),
    "key_missing": _("Enter the endpoint's key or set its environment variable for web and workers, then resume."),
    "storage_full": _("Free space on the disk of the database, then resume the run. Nothing was lost."),
    "key_unreadable": _("Enter the endpoint's key again, then resume the run."),
    "origin_invalid": _("Correct the endpoint's base URL, then resume the run."),
    "no_rung": _(
        "The model may be too small, its output limit too low or a parameter unknown to it. Change the judge, try it "
        "with check_judge, and start a new run."
    ),
    "rate_limited": _("The endpoint stays too busy. Resume the run later, or lower its concurrent calls."),
    "overloaded": _("The endpoint stays overloaded. Resume the run later, or lower its concurrent calls."),
    "server_error": _("Look at the endpoint's own log, then resume the run."),
    "connection": _("See that the endpoint runs and can be reached from the workers, then resume the run."),
    "timeout": _("See that the endpoint answers in time, or allow more with CONCORD_CALL_SECONDS, then resume."),
    "no_batches": _(
        "Look at the endpoint's base URL, or say of the endpoint that it takes no batches; then resume the run, and "
        "its calls are made singly."
    ),
    "feature_off": _("Have an operator put the feature back into CONCORD_EXTRAS; then resume the run."),
    "batch_unknown": _(
        "Look at the provider's list of batches for one of this run. Once you resume the run, its calls are made "
        "again, whatever that batch has cost."
    ),
    "batch_lost": _(
        "Look at the provider's list of batches. Once you resume the run, the calls without a reply are made again, "
        "whatever the batch has cost."
    ),
}
