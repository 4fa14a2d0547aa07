"""Messages for the reasons of missing values of results, work units, runs and figures.

Also advice for paused runs and warnings about a run's judge. ``messages.explain_reason`` appends details after ``":
"``."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

REASON_MESSAGES = {
    # Not applicable
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
    "no_claims": _("The judge found no claim in the answer that could be checked."),
    "admits_ignorance": _("The answer admits not to know and makes no claim that could be checked."),
    "says_nothing": _("The answer says nothing."),
    "no_statements": _("The expected answer states nothing that could be looked for."),
    "no_token_model": _("No local model is configured whose token embeddings could be compared."),
    "language": _("The embedding model does not know the language of the text."),
    "no_questions": _("The judge wrote no question."),
    "no_embeddings": _("No embedding endpoint is configured, and no local embedding model."),
    "no_latency": _("No response time was recorded."),
    "no_answer": _("The system gave no answer."),
    "not_generated": _("Only retrieval was evaluated."),
    "flag_confirmed": _("A lead confirmed that the question or its reference is bad."),
    # Calls
    "timeout": _("The call took longer than allowed."),
    "connection": _("No connection to the endpoint, or it broke."),
    "name_unknown": _("No address was found to the endpoint's name."),
    "unreached": _("Nothing listens at the endpoint's address: the connection was refused."),
    "unreadable": _("Most of the judge's last replies could not be read."),
    "first_values": _("The judge's first values all failed in one way."),
    "tls": _("The endpoint speaks no TLS, or its certificate does not hold."),
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
    "wrong_content": _("The endpoint's reply does not have the expected form."),
    "unknown_ending": _("The reply ended for a reason that is not known, so it may be incomplete."),
    "not_sent": _("The call was given back before it was sent."),
    "interrupted": _("The call was broken off when the work was interrupted; it may be billed."),
    "cached": _("Answered by an earlier reply to the identical call."),
    # Systems
    "system_error": _("The system reported an error."),
    "program_failed": _("The program or function failed."),
    "model_refused": _("The model refused to answer."),
    "command_not_allowed": _("The system's program is not among those that may be run."),
    "function_not_allowed": _("The system's function is not among those that may be called."),
    "function_missing": _("The system's function is not there."),
    "no_passages": _("The system gave no passages."),
    "system_origin_not_allowed": _("The system's address is not on the list of those that may be asked."),
    "variable_missing": _("An environment variable that the system's settings name is not set."),
    "not_asked": _("The system's answers are imported, so it cannot be asked."),
    # Judges
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
    # Work
    "upstream": _("A step this one needs has failed."),
    "crash_loop": _("The worker broke down on it several times; it was parked."),
    "job_failed": _("It failed several times. Request it again; if it fails again, ask the operator for the log."),
    "turn_lost": _("Another process has taken the comparison over."),
    "cancelled": _("The run was cancelled."),
    "paused": _("The run was paused."),
    "budget": _("The run's budget is used up."),
    "budget_untold": _("What calls cost is not known: replies come without a count of tokens, so no budget can hold."),
    "embedding_changed": _("The embedding model is no longer the one the run was made with."),
    "embedding_space": _("The embeddings of one model differ in length."),
    "semantic_not_installed": _("Local embeddings need the extra “semantic”."),
    "local_model_unreadable": _("The folder of the local embedding model holds no model that can be read."),
    "origin_not_allowed": _("The endpoint's origin is not on the list of those that may be called."),
    "origin_never_allowed": _(
        "The address belongs to the network itself or to a metadata service; it is never called."
    ),
    "origin_invalid": _("The endpoint's base URL is no address."),
    "key_missing": _("The key of the endpoint is not set."),
    "key_name": _("The endpoint names an environment variable as its key that is not for keys (CONCORD_KEY_…)."),
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
    "failed_share": _(
        "More than a tenth of a part's results failed, or rest on the judge's word that there is nothing."
    ),
    "no_value": _("There is no value yet."),
    "corpus_unknown": _("The project does not have the corpus that the system searches."),
    "embeddings_unknown": _("There is no endpoint of that name that embeds."),
    "vectors_missing": _("Chunks of the corpus have no vector for these embeddings."),
    # Rules
    "unknown_check": _("Nobody defines the question's check."),
    "no_check_phrases": _("The check has no phrases to look for."),
    "negation_not_confirmed": _("It counts although it seems negated; no morphological analysis is installed."),
    "no_retrieved_ids": _("The retrieved passages have no ids."),
    "no_retrieval_scores": _("A retrieved passage has no score."),
    "scores_off_unit": _("The retrieval scores are not between 0 and 1."),
    "not_vague": _("The question is not marked as one that may be asked back."),
    "no_next_steps": _("The profile defines no next steps."),
    "no_citations": _("The answer cites nothing."),
    # Overall scores
    "no_overall": _("The profile has no overall score."),
    "no_parts": _("No part of the overall score applies."),
    "missing_parts": _("Parts of the overall score are missing."),
    "failed_part": _("A part of the overall score has failed."),
    # The audit log
    "event_changed": _("An event of the audit log was changed."),
    "event_missing": _("Events of the audit log are missing before this one."),
    "head_missing": _("The event that was kept elsewhere is gone, or another: the end of the audit log was cut off."),
    "rows_differ": _("Rows of a table are not as they were when they were sealed."),
    "texts_differ": _("Texts of a table are not as they were when they were sealed, and nobody has erased them."),
    "row_unsupported": _("A row contradicts other tables or its content hash: it was changed or added from outside."),
    "trigger_missing": _("A trigger is missing."),
    "trigger_changed": _("A trigger does something else than it should, or is switched off."),
    "trigger_unknown": _("There is a trigger that is not ours."),
    "triggers_unchecked": _("Triggers can be checked only as the owner of the tables."),
    # Figures
    "not_finished": _("The run has not finished."),
    "no_values": _("There is no value to average."),
    "not_reviewed": _("No expert has rated it yet."),
    "carried": _(
        "Experts rated equal answers of earlier answer sets alone; a corrected score needs a sample of these answers."
    ),
    "not_both_rated": _("Experts have not rated the same parts of both runs."),
    "rules_only": _("No judge was asked: there are only the rules."),
    "served_model": _(
        "Different models answered under a judge's name, so that the difference may be theirs. Have the same model"
        " judge both runs, or ask for the gate across models."
    ),
    "partial": _("Not every part of the overall score was computed."),
    "classes": _("Classes have no mean; see their shares."),
    "repeats_tied": _("The judge's repeats are split evenly over several classes."),
    # Agreement
    "no_pairs": _("No answer has both a judge's and an expert's value."),
    "judge_constant": _("The judge gave the same value everywhere."),
    "expert_constant": _("The experts gave the same value everywhere."),
    "one_value_only": _("Only one value occurs, so chance agreement is complete."),
    "no_expert_positive": _("The experts called nothing acceptable."),
    "no_expert_negative": _("The experts called everything acceptable."),
    "no_judge_positive": _("The judge called nothing acceptable."),
    "no_positive": _("Neither judge nor experts called anything acceptable."),
    "one_expert_class": _("The experts used one class only."),
    "yes_no_only": _("Exists for yes/no metrics only."),
    "classes_have_no_order": _("Classes have no order."),
    "needs_binning": _("Numbers without levels need bins first."),
    "no_direction": _("Has no direction among equals."),
    "too_few_raters": _("No answer was rated by two experts."),
    "too_few_groups": _("There is only one group of questions."),
    "no_variation": _("The values do not vary, so there is no interval."),
    "often_undefined": _("Undefined in too many resamples."),
    "few_groups": _("Fewer than 20 groups of questions: take the interval with care."),
    # Corrected scores
    "outside_pool": _(
        "The run retrieved passages that are not in the pool of the repair. Make a repair with this run."
    ),
    "no_sum": _("It is no sum over passages, so it cannot be corrected while passages are unrated."),
    "other_k": _("The runs retrieved to different depths."),
    "other_repair": _("No repair of the retrieval labels covers both runs."),
    "unrated_passages": _(
        "Retrieval metrics have weight in this score and count relevant passages without a label as misses. Gate on "
        "precision_at_k, recall_at_k or ndcg_at_k, which are corrected, or have the whole pool rated."
    ),
    "more_passages": _("Ratings of further passages of the pool, or more questions, would settle it."),
    "too_few_labels": _("Too few answers are rated."),
    "stratum_too_few_labels": _("A part of the sample has fewer than two ratings."),
    "non_response": _("More than a tenth of the answers served got no rating."),
    "not_estimable": _("The ratings do not vary, so nothing can be said about the others."),
    "no_probability": _(
        "The rated answers were not drawn with known probabilities. If chance chose them, import their ratings again"
        " and say how: uniformly, all, or by each one's probability in the file. Else have answers drawn for a queue."
    ),
    "partly_corrected": _("Some judged part of the score was rated by nobody, so it is only partly corrected."),
    "rated_as_equal": _(
        "Of some parts experts rated equal answers of earlier answer sets alone: those ratings count in the reviewed "
        "score, not here."
    ),
    "small_frame": _("Fewer than 20 answers: rate all of them."),
    "components_withheld": _("A part of the overall score cannot be corrected yet."),
    "few_off_commonest": _("Fewer than five ratings differ from the commonest."),
    "failed_stratum_bounds": _(
        "The judge failed on answers of which too few are rated; the interval allows for any value."
    ),
    "clipped": _("Cut at the end of the scale."),
    "unseen_answers": _(
        "Few ratings of a skewed scale: much of the width allows for answers unlike all that were rated."
    ),
}

#: Reason of a paused run -> advice.
ADVICE = {
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
    "origin_never_allowed": _("Enter another base URL at the endpoint, then resume the run."),
    "tls": _(
        "Have the endpoint's certificate put in order, or begin its base URL with http:// where it speaks no TLS; then "
        "resume the run."
    ),
    "key_missing": _("Enter the endpoint's key or set its environment variable for web and workers, then resume."),
    "key_name": _(
        "Have the operator set the key as CONCORD_KEY_… for web and workers, name that at the endpoint, then resume."
    ),
    "budget": _("Raise the budget and resume the run, or leave it as it is: what is scored so far stays."),
    "budget_untold": _("Have the endpoint tell its tokens (usage), or make a run without a budget."),
    "storage_full": _("Free space on the disk of the database, then resume the run. Nothing was lost."),
    "key_unreadable": _("Enter the endpoint's key again, then resume the run."),
    "origin_invalid": _("Correct the endpoint's base URL, then resume the run."),
    "no_rung": _(
        "The model may be too small, its output limit too low or a parameter unknown to it. Change the judge, try it "
        "with attack_judge, and start a new run."
    ),
    "rate_limited": _("The endpoint stays too busy. Resume the run later, or lower its concurrent calls."),
    "overloaded": _("The endpoint stays overloaded. Resume the run later, or lower its concurrent calls."),
    "server_error": _("Look at the endpoint's own log, then resume the run."),
    "connection": _("See that the endpoint runs and can be reached from the workers, then resume the run."),
    "unreadable": _(
        "Look at the failed answers for what the judge replies, and at its model and output limit. Once it replies as "
        "asked, retry the failed answers and resume the run."
    ),
    "first_values": _(
        "Look at what the judge replied. Change the judge or its rubric and start a new run, or resume this one."
    ),
    "name_unknown": _(
        "Correct the host in the endpoint's base URL, or see that the workers can look names up, then resume the run."
    ),
    "unreached": _(
        "Start the endpoint's server, or correct the port in its base URL; a firewall refuses too. Then resume the run."
    ),
    "timeout": _("See that the endpoint answers in time, or allow more with CONCORD_CALL_SECONDS, then resume."),
    "no_batches": _(
        "Look at the endpoint's base URL, or say of the endpoint that it takes no batches; then resume the run, and "
        "its calls are made singly."
    ),
    "feature_off": _("Have an operator put the app of the feature back into INSTALLED_APPS; then resume the run."),
    "batch_unknown": _(
        "Look at the provider's list of batches for one of this run. Once you resume the run, its calls are made "
        "again, whatever that batch has cost."
    ),
    "batch_lost": _(
        "Look at the provider's list of batches. Once you resume the run, the calls without a reply are made again, "
        "whatever the batch has cost."
    ),
}

JUDGE_WARNINGS = {
    "other_model": _("%(judge)s was asked for the model %(asked)s, but %(answered)s answered."),
    "several_models": _(
        "Several models answered under the name of %(judge)s (replies of each in brackets): %(answered)s. The scores "
        "of this run are not one series."
    ),
    "changed_model": _(
        "%(judge)s was answered by %(earlier)s in run %(run)s and is answered by %(answered)s now: scores before and "
        "after are not one series."
    ),
    "same_family": _(
        "Judge and system use models of one family (%(family)s). Judges favour their own kind; have experts rate a "
        "sample, or use a judge of another family."
    ),
    "no_usage": _("%(judge)s does not tell how many tokens it uses: what the run costs stays unknown."),
    "grows_with_length": _(
        "%(metric)s grows with the length of the answer: rank correlation %(rho)s (95%% interval %(low)s to %(high)s, "
        "%(n)s answers). Longer answers may be better, or the judge may be taken in by length."
    ),
}

#: Reasons for which the approval of a judge prompt does not hold for a run.
APPROVAL_LAPSES = {
    "licence_language": _("It was proved in another language (%(language)s)."),
    "licence_rubric": _("It was proved for another version of the prompt: %(rubric)s."),
    "licence_judge": _("It was proved for another model or other parameters: %(judge)s."),
    "licence_model": _("It was proved while %(before)s answered under the judge’s name; now %(now)s answers."),
    "licence_old": _("The proof was %(days)s days old, more than %(limit)s."),
    "licence_drift": _("The judge moved by %(change)s since it was proved, as a check of %(day)s found."),
    "licence_categories": _("%(share)s%% of the answers are of categories without gold labels: %(names)s."),
}
