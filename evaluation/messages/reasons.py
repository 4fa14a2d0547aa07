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
    "not_negative": _("This is not a negative question."),
    "no_nuggets": _("The question has no nuggets."),
    "no_required_info": _("The question lists no required information."),
    "no_persona": _("The question has no persona."),
    "no_history": _("The question has no earlier turns."),
    "other_category": _("The criterion doesn't apply to questions of this category."),
    "baseline_has_no_rule": _("The offline baseline can't read rubrics and has no rule for this one."),
    "no_relevant_chunks": _("The question has no relevant passages."),
    "does_not_retrieve": _("The system doesn't retrieve passages."),
    "no_contexts": _("No passages were retrieved."),
    "no_claims": _("The judge found no verifiable claims in the answer."),
    "admits_ignorance": _("The answer admits not knowing and makes no verifiable claims."),
    "says_nothing": _("The answer has no content."),
    "no_statements": _("The expected answer contains no statements to look for."),
    "no_token_model": _("No local model for comparing token embeddings is configured."),
    "language": _("The embedding model doesn't support the language of the text."),
    "no_questions": _("The judge generated no questions."),
    "no_embeddings": _("No embedding endpoint or local embedding model is configured."),
    "no_latency": _("No response time was recorded."),
    "no_answer": _("The system gave no answer."),
    "not_generated": _("Only retrieval was evaluated."),
    "flag_confirmed": _("A lead confirmed that the question or its expected answer is wrong."),
    # Calls
    "timeout": _("The call took longer than allowed."),
    "connection": _("Couldn't connect to the endpoint, or the connection was lost."),
    "name_unknown": _("The endpoint's host name couldn't be resolved."),
    "unreached": _("Connection refused: nothing is listening at the endpoint's address."),
    "unreadable": _("Most of the judge's recent replies couldn't be read."),
    "first_values": _("The judge's first values all failed for the same reason."),
    "tls": _("The endpoint doesn't use TLS, or its certificate isn't valid."),
    "blocked": _("The endpoint's address isn't allowed. Nothing was sent."),
    "rate_limited": _("The endpoint rejected the call: too many requests."),
    "overloaded": _("The endpoint is overloaded."),
    "server_error": _("The endpoint reported an internal error."),
    "unauthorised": _("The endpoint did not accept the key."),
    "forbidden": _("The key isn't allowed to use this model."),
    "not_found": _("The endpoint has no such path or model."),
    "no_credit": _("The account has no credit left."),
    "bad_request": _("The endpoint did not accept the request."),
    "redirect": _("The endpoint redirected the request. Redirects are never followed."),
    "too_large": _("The reply was larger than allowed."),
    "wrong_content": _("The endpoint's reply doesn't have the expected format."),
    "unknown_ending": _("The reply ended for an unknown reason and may be incomplete."),
    "not_sent": _("The call was returned unsent."),
    "interrupted": _("The call was cut off when work was interrupted. It may be billed."),
    "cached": _("Reused the reply to an identical earlier call."),
    # Systems
    "system_error": _("The system reported an error."),
    "program_failed": _("The program or function failed."),
    "model_refused": _("The model refused to answer."),
    "command_not_allowed": _("The system's program is not on the list of allowed programs."),
    "function_not_allowed": _("The system's function is not on the list of allowed functions."),
    "function_missing": _("The system's function was not found."),
    "no_passages": _("The system returned no passages."),
    "system_origin_not_allowed": _("The system's address is not on the list of allowed addresses."),
    "variable_missing": _("An environment variable named in the system's settings is not set."),
    "not_asked": _("The system's answers are imported, so it can't be sent questions."),
    # Judges
    "jury_asks_nobody": _("A jury makes no calls itself. Choose one of its members."),
    "jury_short": _("Too few jury members gave a value."),
    "jury_split": _("The jury has no majority."),
    "scale": _("The value is not on the metric's scale."),
    "parse": _("The reply doesn't have the requested format."),
    "truncated": _("The reply was cut off."),
    "refused": _("The judge refused to answer."),
    "filtered": _("The provider's content filter stopped the reply."),
    "no_logprobs": _(
        "The endpoint doesn't return the token probabilities that the judge needs. Choose a judge that "
        "uses levels as given. With several repeats, you get their mean."
    ),
    "low_mass": _("The scale's levels cover too little of the token probability to compute an expected score."),
    "no_rung": _("The judge gives no readable verdict in any response format."),
    "empty": _("The reply was empty."),
    "reported": _("Reported as failed in the imported file."),
    "cannot_judge": _("The expert could not judge."),
    # Work
    "upstream": _("A required step failed."),
    "crash_loop": _("This step crashed several times and was set aside."),
    "job_failed": _("It failed several times. Request it again. If it fails again, ask the operator to check the log."),
    "turn_lost": _("Another process took over the comparison."),
    "cancelled": _("The run was cancelled."),
    "paused": _("The run was paused."),
    "budget": _("The run's budget is used up."),
    "budget_untold": _("Call costs are unknown because replies contain no token counts, so no budget can be enforced."),
    "embedding_changed": _("The embedding model has changed since the run was created."),
    "embedding_space": _("Embeddings from one model differ in length."),
    "semantic_not_installed": _("Local embeddings need the extra “semantic”."),
    "local_model_unreadable": _("The folder of the local embedding model contains no readable model."),
    "origin_not_allowed": _("The endpoint's origin is not on the list of allowed origins."),
    "origin_never_allowed": _(
        "The address belongs to the network itself or to a metadata service. It is never called."
    ),
    "origin_invalid": _("The endpoint's base URL isn't a valid address."),
    "key_missing": _("The endpoint's key is not set."),
    "key_name": _("The environment variable set as the endpoint's key isn't meant for keys (CONCORD_KEY_…)."),
    "key_unreadable": _("The endpoint's stored key can no longer be read. Enter it again."),
    "parameters_unsupported": _("The judge has parameters that the endpoint's provider doesn't take."),
    "logprobs_unsupported": _("The judge scores by token probabilities, which the endpoint's provider doesn't return."),
    "bedrock_not_installed": _("Signed calls to Amazon Bedrock need the extra “bedrock”."),
    "aws_region_missing": _("Neither the endpoint's base URL nor the environment names an AWS region."),
    "aws_credentials_missing": _("The endpoint has no key, and the environment has no AWS credentials."),
    "endpoint_busy": _("Nothing was sent: the endpoint is paused, or other work uses its full quota. Try again later."),
    "storage_full": _("The database disk is nearly full."),
    "no_batches": _("The endpoint doesn't support batches."),
    "feature_off": _("This installation lacks a required feature."),
    "batch_unknown": _(
        "Unknown whether a batch was created: the connection was lost, and the provider has no batch list."
    ),
    "batch_lost": _("The provider no longer has the batch, or lost its replies."),
    "batch_interrupted": _("The batch was never sent because work was interrupted first."),
    "batch_failed": _("The provider rejected the whole batch."),
    "batch_expired": _("The provider did not finish the batch in time."),
    "batch_cancelled": _("The batch was cancelled."),
    "failed_share": _(
        "More than a tenth of a part's results failed, or rely only on the judge reporting that there is nothing."
    ),
    "no_value": _("No value yet."),
    "corpus_unknown": _("The project does not have the corpus that the system searches."),
    "embeddings_unknown": _("There is no embedding endpoint with that name."),
    "vectors_missing": _("Some chunks of the corpus have no vector for these embeddings."),
    # Rules
    "unknown_check": _("The question's check is not defined."),
    "no_check_phrases": _("The check has no phrases to look for."),
    "negation_not_confirmed": _("Counted although it seems negated, because no morphological analysis is installed."),
    "no_retrieved_ids": _("The retrieved passages have no IDs."),
    "no_retrieval_scores": _("A retrieved passage has no score."),
    "scores_off_unit": _("The retrieval scores are not between 0 and 1."),
    "not_vague": _("The question isn't marked as one where asking back is welcome."),
    "no_next_steps": _("The profile defines no next steps."),
    "no_citations": _("The answer has no citations."),
    # Own metrics
    "metric_raised": _("The metric's code raised an error."),
    "metric_invalid": _("The metric's code returned no valid result."),
    "metric_timeout": _("The metric's code took longer than allowed and was ended."),
    "metric_died": _("The process of the metric's code ended unexpectedly."),
    "metric_not_loaded": _("The metric's package couldn't be loaded by the worker."),
    "package_changed": _("A package of own metrics has changed since the run was created."),
    # Overall scores
    "no_overall": _("The profile has no overall score."),
    "no_parts": _("None of the metrics in the overall score apply here."),
    "missing_parts": _("Parts of the overall score are missing."),
    "failed_part": _("A part of the overall score failed."),
    # The audit log
    "event_changed": _("An audit log event was changed."),
    "event_missing": _("Audit log events before this one are missing."),
    "head_missing": _("The separately stored event is missing or different: the end of the audit log was cut off."),
    "rows_differ": _("Table rows have changed since they were sealed."),
    "texts_differ": _("Table texts have changed since they were sealed, and nobody has erased them."),
    "row_unsupported": _("A row contradicts other tables or its content hash. It was changed or added from outside."),
    "trigger_missing": _("A trigger is missing."),
    "trigger_changed": _("A trigger was altered or is disabled."),
    "trigger_unknown": _("There is an unknown trigger."),
    "triggers_unchecked": _("Triggers can only be checked as the owner of the tables."),
    # Figures
    "not_finished": _("The run has not finished."),
    "no_values": _("There are no values to average."),
    "not_reviewed": _("No expert has rated it yet."),
    "carried": _(
        "Experts rated only identical answers in earlier answer sets. A corrected score needs a sample "
        "of these answers."
    ),
    "tuned": _(
        "Rated answers were changed more often than others, so their ratings say little about new questions. "
        "In this release, rate answers to at least 20 questions that experts never rated."
    ),
    "drifted": _("Experts rate identical answers differently today, so no verdict can use their earlier ratings."),
    "not_both_rated": _("Experts have not rated the same metrics in both runs."),
    "metric_versions_differ": _("A part of the score is missing in one run, or has another version there."),
    "latency_in_score": _("Latency is part of the score, so unchanged answers may differ too."),
    "rules_only": _("No judge was used: there are only rules."),
    "served_model": _(
        "Different models answered under the same judge name, so the difference may come from the "
        "models. Score both runs with the same model, or request the gate across models."
    ),
    "partial": _("Not every part of the overall score was computed."),
    "classes": _("Classes have no mean. See their shares."),
    "repeats_tied": _("The judge's repeats are tied between several classes."),
    # Agreement
    "no_pairs": _("No answer has both a judge score and an expert rating."),
    "judge_constant": _("The judge gave every answer the same score."),
    "expert_constant": _("The experts gave every answer the same score."),
    "one_value_only": _("Can't be computed: everyone gave the same score."),
    "no_expert_positive": _("The experts rated no answer acceptable."),
    "no_expert_negative": _("The experts rated every answer acceptable."),
    "no_judge_positive": _("The judge rated no answer acceptable."),
    "no_positive": _("Neither judge nor experts rated any answer acceptable."),
    "one_expert_class": _("The experts used only one class."),
    "yes_no_only": _("Only available for yes/no metrics."),
    "classes_have_no_order": _("Classes have no order."),
    "needs_binning": _("Values without levels must be binned first."),
    "no_direction": _("Not applicable between experts."),
    "too_few_raters": _("No answer was rated by two experts."),
    "too_few_groups": _("There is only one group of questions."),
    "no_variation": _("The values do not vary, so there is no interval."),
    "often_undefined": _("Undefined in too many resamples."),
    "few_groups": _("Fewer than 20 groups of questions: treat the interval with caution."),
    # Corrected scores
    "outside_pool": _("The run retrieved passages that are not in the repair's pool. Create a repair with this run."),
    "no_sum": _("Not a sum over passages, so it can't be corrected while passages are unrated."),
    "other_k": _("The runs use different retrieval depths."),
    "other_repair": _("No repair of the retrieval labels covers both runs."),
    "unrated_passages": _(
        "Retrieval metrics count in this score and treat relevant passages without a label as misses. "
        "Gate on precision_at_k, recall_at_k or ndcg_at_k, which are corrected, or ask experts to rate "
        "the whole pool."
    ),
    "more_passages": _("Rating more passages in the pool or adding questions would settle it."),
    "too_few_labels": _("Too few answers are rated."),
    "stratum_too_few_labels": _("A stratum of the sample has fewer than two ratings."),
    "non_response": _("More than a tenth of the assigned answers were not rated."),
    "not_estimable": _("All ratings are the same, so they say nothing about the other answers."),
    "no_probability": _(
        "The rated answers were not sampled with known probabilities. If they were chosen at random, "
        "import their ratings again and state how: uniformly, all, or with a probability per answer in "
        "the file. Otherwise, sample answers for a queue."
    ),
    "unplanned_round": _(
        "The score includes a round of review that was not planned with the first one. Its interval is valid, but "
        "gates and comparisons give no verdict. Plan all rounds when you open the first queue."
    ),
    "partly_corrected": _("Some judged parts of the score have no ratings, so it is only partly corrected."),
    "rated_as_equal": _(
        "For some parts, experts rated only identical answers in earlier answer sets. Those ratings "
        "count in the reviewed score, not here."
    ),
    "small_frame": _("Fewer than 20 answers: rate all of them."),
    "components_withheld": _("A part of the overall score cannot be corrected yet."),
    "few_off_commonest": _("Fewer than five ratings differ from the most common one."),
    "failed_stratum_bounds": _(
        "The judge failed on answers of which too few are rated, so the interval allows for any value."
    ),
    "clipped": _("Cut off at the end of the scale."),
    "unseen_answers": _("Few ratings on a skewed scale: much of the width allows for answers unlike those rated."),
}

#: Reason of a paused run -> advice.
ADVICE = {
    "unauthorised": _(
        "Enter a valid key for the endpoint, then resume the run. For Amazon Bedrock without a key, renew the AWS "
        "credentials of web and workers, or correct their clock. Existing scores are kept."
    ),
    "forbidden": _("Allow the key to use this model, or use another key, then resume the run."),
    "not_found": _(
        "Check the endpoint's base URL and the judge's model name. If the endpoint is now correct, "
        "resume the run. If the judge must change, start a new run: finished calls are not paid for "
        "again."
    ),
    "no_credit": _("Add credit to the provider's account, then resume the run."),
    "redirect": _("Enter the endpoint's final address as its base URL, then resume the run."),
    "blocked": _("Ask the operator to add the endpoint's origin to CONCORD_JUDGE_ORIGINS, then resume the run."),
    "origin_not_allowed": _(
        "Ask the operator to add the endpoint's origin to CONCORD_JUDGE_ORIGINS, then resume the run."
    ),
    "origin_never_allowed": _("Enter another base URL for the endpoint, then resume the run."),
    "tls": _(
        "Fix the endpoint's certificate, or begin its base URL with http:// if it doesn't use TLS. Then resume the run."
    ),
    "key_missing": _("Enter the endpoint's key or set its environment variable for web and workers, then resume."),
    "key_name": _(
        "Ask the operator to set the key as CONCORD_KEY_… for web and workers, name it at the endpoint, then resume."
    ),
    "parameters_unsupported": _("Save the judge with parameters that the provider takes, and start a new run."),
    "logprobs_unsupported": _("Save the judge with the other scoring method, and start a new run."),
    "bedrock_not_installed": _(
        "Ask the operator to install concord-eval[bedrock] for web and workers, or enter a Bedrock API key as the "
        "endpoint's key. Then resume the run."
    ),
    "aws_region_missing": _(
        "Enter https://bedrock-runtime.REGION.amazonaws.com as the endpoint's base URL, or ask the operator to set "
        "AWS_DEFAULT_REGION for web and workers. Then resume the run."
    ),
    "aws_credentials_missing": _(
        "Ask the operator to give web and workers AWS credentials, or enter a Bedrock API key as the endpoint's key. "
        "Then resume the run."
    ),
    "budget": _("Raise the budget and resume the run, or leave it as it is. Existing scores are kept."),
    "budget_untold": _("Make the endpoint report its token counts (usage), or create a run without a budget."),
    "storage_full": _("Free space on the database disk, then resume the run. Nothing was lost."),
    "key_unreadable": _("Enter the endpoint's key again, then resume the run."),
    "origin_invalid": _("Correct the endpoint's base URL, then resume the run."),
    "no_rung": _(
        "The model may be too small, its output limit too low or a parameter not supported. Change the "
        "judge, test it with attack_judge, and start a new run."
    ),
    "rate_limited": _("The endpoint is still too busy. Resume the run later, or lower its concurrent calls."),
    "overloaded": _("The endpoint is still overloaded. Resume the run later, or lower its concurrent calls."),
    "server_error": _("Check the endpoint's log, then resume the run."),
    "connection": _("Check that the endpoint is running and the workers can reach it, then resume the run."),
    "unreadable": _(
        "Check the judge's replies to the failed answers, its model and its output limit. Once replies "
        "have the requested format, retry the failed answers and resume the run."
    ),
    "first_values": _(
        "Check the judge's replies. Change the judge or its rubric and start a new run, or resume this one."
    ),
    "name_unknown": _(
        "Correct the host in the endpoint's base URL, or check that the workers can resolve names, then resume the run."
    ),
    "unreached": _(
        "Start the endpoint's server, or correct the port in its base URL. A firewall may also refuse "
        "connections. Then resume the run."
    ),
    "timeout": _("Check that the endpoint replies in time, or raise CONCORD_CALL_SECONDS, then resume."),
    "no_batches": _(
        "Check the endpoint's base URL, or turn off batches for the endpoint. Then resume the run. "
        "Calls are sent one by one."
    ),
    "feature_off": _("Ask an operator to add the feature's app back to INSTALLED_APPS, then resume the run."),
    "package_changed": _(
        "Install the version of the package that the run began with, restart web and workers, and resume the run. Or "
        "start a new run: finished calls are not paid for again."
    ),
    "batch_unknown": _(
        "Check the provider's batch list for a batch of this run. Resuming the run sends its calls "
        "again, regardless of what that batch cost."
    ),
    "batch_lost": _(
        "Check the provider's batch list. Resuming the run sends the calls without a reply again, "
        "regardless of what the batch cost."
    ),
}

JUDGE_WARNINGS = {
    "other_model": _("%(judge)s was asked for the model %(asked)s, but %(answered)s answered."),
    "several_models": _(
        "Several models answered as %(judge)s (number of replies in brackets): %(answered)s. Scores "
        "within this run are not directly comparable."
    ),
    "changed_model": _(
        "%(earlier)s answered as %(judge)s in run %(run)s, and %(answered)s answers now. Scores before "
        "and after are not directly comparable."
    ),
    "same_family": _(
        "Judge and system use models of the same family (%(family)s). Judges favour their own family. "
        "Ask experts to rate a sample, or use a judge of another family."
    ),
    "no_usage": _("%(judge)s doesn't report its token usage, so the cost of the run is unknown."),
    "grows_with_length": _(
        "%(metric)s increases with answer length: rank correlation %(rho)s (95%% CI %(low)s to "
        "%(high)s, %(n)s answers). Longer answers may be better, or the judge may favour length."
    ),
}

#: Reasons for which the approval of a judge prompt does not hold for a run.
APPROVAL_LAPSES = {
    "approval_language": _("It was approved in another language (%(language)s)."),
    "approval_rubric": _("It was approved for another version of the prompt: %(rubric)s."),
    "approval_judge": _("It was approved for another model or other parameters: %(judge)s."),
    "approval_model": _("When it was approved, %(before)s answered under the judge’s name. Now %(now)s answers."),
    "approval_old": _("The approval was %(days)s days old (limit: %(limit)s)."),
    "approval_drift": _("The judge has drifted by %(change)s since the approval (check of %(day)s)."),
    "approval_categories": _("%(share)s%% of the answers are in categories without gold labels: %(names)s."),
}
