"""The sentence of every reason why a result, a unit of work or a run has no value. Part of the product adds its
reasons to the section they belong to; details after ``": "`` are appended by ``messages.explain_reason``."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from evaluation.wording import figures

NOT_APPLICABLE = {
    "no_keywords": _("The question has no expected keywords."),
    "no_reference": _("The question has no expected answer."),
    "no_check": _("The question has no check for negative questions."),
    "not_negative": _("The question is not a negative one."),
    "no_nuggets": _("The question has no nuggets."),
    "no_required_info": _("The question lists no required information."),
    "no_persona": _("The question names nobody who asks."),
    "no_history": _("The question has no earlier turns."),
    "other_category": _("The criterion is not made for questions of this category."),
    "baseline_has_no_rule": _("The offline baseline cannot read a criterion and has no rule for this one."),
    "no_relevant_chunks": _("The question names no relevant passages."),
    "does_not_retrieve": _("The system does not retrieve."),
    "no_contexts": _("Nothing was retrieved."),
    "no_claims": _("The answer makes no claim that could be checked."),
    "no_statements": _("The expected answer states nothing that could be looked for."),
    "no_token_model": _("No local model is configured whose token embeddings could be compared."),
    "language": _("The embedding model does not know the language of the text."),
    "no_questions": _("The judge wrote no question."),
    "no_embeddings": _("No embedding endpoint is configured, and no local embedding model."),
    "no_latency": _("No response time was recorded."),
    "no_answer": _("The system gave no answer."),
    "not_generated": _("Only retrieval was evaluated."),
    "flag_confirmed": _("A lead confirmed that the question or its reference is bad."),
}

CALLS = {
    "timeout": _("The call took longer than allowed."),
    "connection": _("No connection to the endpoint, or it broke."),
    "tls": _("The endpoint's certificate does not hold."),
    "blocked": _("The endpoint's address is not allowed; nothing was sent."),
    "rate_limited": _("The endpoint refused for too many requests."),
    "overloaded": _("The endpoint is overloaded."),
    "server_error": _("The endpoint reported an error of its own."),
    "unauthorised": _("The endpoint did not accept the key."),
    "forbidden": _("The key may not use this model."),
    "not_found": _("The endpoint does not know the path or the model."),
    "no_credit": _("The account has no credit left."),
    "bad_request": _("The endpoint did not accept the request."),
    "redirect": _("The endpoint redirected the request, which is never followed."),
    "too_large": _("The reply was larger than allowed."),
    "wrong_content": _("The endpoint's reply was no JSON."),
    "not_sent": _("The call was given back before it was sent."),
    "interrupted": _("The call was broken off when the work was interrupted; it may be billed."),
    "cached": _("Answered by an earlier reply to the identical call."),
}

JUDGE = {
    "jury_asks_nobody": _("A jury asks nobody itself. Choose one of its members."),
    "jury_short": _("Too few judges of the jury gave a value."),
    "jury_split": _("No value has more than half of the jury behind it."),
    "scale": _("The value is not on the metric's scale."),
    "parse": _("The reply does not have the form that was asked for."),
    "truncated": _("The reply was cut off."),
    "refused": _("The judge refused to answer."),
    "filtered": _("The provider's content filter stopped the reply."),
    "no_logprobs": _(
        "The endpoint tells no token probabilities of the level, which the judge needs. Choose a judge that takes "
        "levels as they are said; several repeats give the mean of samples."
    ),
    "low_mass": _("Levels of the scale cover too little of the probability at the score's place to expect one."),
    "no_rung": _("The judge gives no verdict that can be read, whichever way it is asked."),
    "empty": _("The reply was empty."),
    "reported": _("Reported by the imported file."),
    "cannot_judge": _("The expert could not judge."),
}

WORK = {
    "upstream": _("A step this one needs has failed."),
    "crash_loop": _("The worker broke down on it several times; it was parked."),
    "turn_lost": _("Another process has taken the comparison over."),
    "cancelled": _("The run was cancelled."),
    "paused": _("The run was paused."),
    "budget": _("The run's budget is used up."),
    "embedding_changed": _("The embedding model is no longer the one the run was made with."),
    "embedding_space": _("The embeddings of one model differ in length."),
    "semantic_not_installed": _("Local embeddings need the extra “semantic”."),
    "local_model_unreadable": _("The folder of the local embedding model holds no model that can be read."),
    "origin_not_allowed": _("The endpoint's origin is not on the list of those that may be called."),
    "origin_invalid": _("The endpoint's base URL is no address."),
    "key_missing": _("The key of the endpoint is not set."),
    "key_unreadable": _("The stored key of the endpoint cannot be read any more; it must be entered again."),
    "endpoint_busy": _("Nothing could be sent: the endpoint rests, or other work uses up what it allows. Try later."),
    "storage_full": _("The disk of the database is nearly full."),
    "no_batches": _("The endpoint takes no batches."),
    "feature_off": _("This installation does without a feature that is needed."),
    "batch_unknown": _(
        "Nobody can tell whether a batch was created: the connection broke, and the provider lists none."
    ),
    "batch_lost": _("The provider no longer knows a batch, or has lost its replies."),
    "batch_interrupted": _("The batch was never sent: the work was interrupted before."),
    "batch_failed": _("The provider refused the batch as a whole."),
    "batch_expired": _("The provider did not finish the batch in time."),
    "batch_cancelled": _("The batch was cancelled."),
    "failed_share": _("More than a tenth of a part's results failed."),
    "no_value": _("There is no value yet."),
}

RULES = {
    "unknown_check": _("Nobody defines the question's check."),
    "no_check_phrases": _("The check has no phrases to look for."),
    "negation_not_confirmed": _("It counts although it seems negated; no morphological analysis is installed."),
    "no_retrieved_ids": _("The retrieved passages have no ids."),
    "no_retrieval_scores": _("A retrieved passage has no score."),
    "scores_off_unit": _("The retrieval scores are not between 0 and 1."),
    "no_next_steps": _("The profile defines no next steps."),
    "no_citations": _("The answer cites nothing."),
}

OVERALL = {
    "no_overall": _("The profile has no overall score."),
    "no_parts": _("No part of the overall score applies."),
    "missing_parts": _("Parts of the overall score are missing."),
    "failed_part": _("A part of the overall score has failed."),
}

SENTENCES = {**NOT_APPLICABLE, **CALLS, **JUDGE, **WORK, **RULES, **OVERALL, **figures.SENTENCES}
