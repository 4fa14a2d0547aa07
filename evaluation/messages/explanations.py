"""Translated messages for codes: refusals of actions here, others in the neighbouring modules; and names of categories.

A question category is the author's word and is unchanged in files, commands and REST. Pages show a readable name for
the categories of the source documents and of the product's own data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.functional import Promise
from django.utils.translation import get_language, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from evaluation.core.errors import DomainError, Problem
from evaluation.messages import corpora, databases, gold_sets, problems, reasons, retrieval_truth

REFUSALS = {
    # Imports
    "bad_definition": _(
        "“%(definition)s” doesn't define a scale. Use NAME=1..5, NAME=0..1:real, NAME=-2..2, NAME=bool "
        "or NAME=class:a|b, each name once."
    ),
    "metric_known": _(
        "“%(metric)s” is a built-in metric with the scale %(scale)s, so it can't be defined as "
        "%(given)s. Rename the imported metric."
    ),
    "bad_name": problems.PROBLEM_MESSAGES["bad_name"],
    "unknown_upload_kind": _("Files of type “%(kind)s” can't be uploaded here."),
    "upload_expired": _("The upload of %(file)s wasn't confirmed within a day. Upload the file again."),
    **corpora.REFUSALS,
    **databases.REFUSALS,
    # Endpoints
    "origin_invalid": _("“%(url)s” isn't a valid address. Use https://host/path without user, password or query."),
    "origin_not_allowed": _(
        "%(origin)s isn't an allowed judge address. Ask an operator to add it to CONCORD_JUDGE_ORIGINS."
    ),
    "origin_never_allowed": _(
        "%(origin)s is a reserved network address or a cloud metadata service, which can expose "
        "secrets. It is never called, even if a list allows it."
    ),
    # Systems
    "system_origin_not_allowed": _(
        "%(origin)s isn't an allowed system address. Ask an operator to add it to CONCORD_SYSTEM_ORIGINS."
    ),
    "webhook_origin_not_allowed": _(
        "%(origin)s isn't an allowed webhook address. Ask an operator to add it to CONCORD_WEBHOOK_ORIGINS."
    ),
    "variable_missing": _("The environment variable %(variable)s from the system's settings isn't set."),
    "command_not_allowed": _(
        "Systems aren't allowed to run “%(command)s”. Ask an operator to add it to CONCORD_SYSTEM_COMMANDS."
    ),
    "function_not_allowed": _(
        "Systems aren't allowed to call “%(function)s”. Ask an operator to add it to CONCORD_SYSTEM_CALLABLES."
    ),
    "function_missing": _("CONCORD_SYSTEM_CALLABLES points to a function that doesn't exist: “%(function)s”."),
    "answers_unfinished": _("Another run is still collecting these answers. Wait for it to finish, or resume it."),
    "not_asked": _("%(system)s only has imported answers, so it can't be queried. Add a version with a connector."),
    "no_traces": _("There are no traces of “%(system)s” to import. None is complete, or none was sampled."),
    "rule_invalid": _("“%(rule)s” isn't a valid JMESPath expression (%(detail)s)."),
    # Embeddings
    "embedding_changed": _("The embedding model has changed since the run was created. Start a new run."),
    "no_local_model": _(
        "No local embedding model found. Install the extra “semantic” and a model, or set "
        "CONCORD_LOCAL_MODEL to its folder."
    ),
    "semantic_not_installed": _("Local embeddings need the extra “semantic”. Install it, or configure an endpoint."),
    "local_model_unreadable": _("The folder “%(folder)s” contains no readable BERT model (%(detail)s)."),
    "no_such_layer": _("The model has %(layers)s layers, so layer %(layer)s doesn't exist."),
    # Evaluating
    "no_project": _("There are no projects yet. Ask an administrator to add one in the back office (/admin/)."),
    "project_needed": _("There are several projects (%(names)s). Specify one."),
    "no_question_selected": _("No questions match the filters."),
    "no_answers": _("The system “%(system)s” has no answers to %(questions)s. Import them first."),
    "other_questions": _("Run %(run)s doesn't use the question set %(questions)s."),
    # Runs
    "key_missing": _(
        "The environment variable %(variable)s for the endpoint's key isn't set. Set it in the "
        "environment or the .env file of web and workers, or store the key at the endpoint."
    ),
    "key_name": _(
        "Environment variables for endpoint keys must begin with CONCORD_KEY_. Not allowed: "
        "%(variable)s. An operator sets CONCORD_KEY_… to the key, and an administrator enters that "
        "name at the endpoint."
    ),
    "key_unreadable": _("The endpoint's stored key can no longer be read. Enter it again."),
    "parameters_unsupported": _(
        "%(provider)s doesn't take these judge parameters: %(names)s. Remove them. It takes: %(supported)s."
    ),
    "logprobs_unsupported": _(
        "%(provider)s returns no log probabilities. Choose the scoring method “the level the judge states”."
    ),
    "bedrock_not_installed": _(
        "Signed calls to Amazon Bedrock need the extra “bedrock”. Install it with pip install 'concord-eval[bedrock]' "
        "for web and workers, or enter a Bedrock API key as the endpoint's key."
    ),
    "aws_region_missing": _(
        "The base URL names no AWS region. Enter https://bedrock-runtime.REGION.amazonaws.com, or set "
        "AWS_DEFAULT_REGION for web and workers."
    ),
    "aws_credentials_missing": _(
        "The endpoint has no key, and AWS credentials can't be read (%(detail)s). Set them for web and workers, or "
        "enter a Bedrock API key as the endpoint's key."
    ),
    "judge_needed": _(
        "The project has several judges but no default: %(names)s. Specify one, or ask an "
        "administrator to choose the default in the back office (Projects)."
    ),
    "jury_too_small": _("A jury needs at least two different judges, and none of them may be a jury."),
    "jury_asks_nobody": _("A jury makes no calls itself. Choose one of its members."),
    "jury_languages": _("All judges of a jury must use rubrics in the same language. Languages here: %(languages)s."),
    "nothing_failed": _("Nothing failed, so there is nothing to retry."),
    "run_not_retryable": _("Draft and cancelled runs can't be retried."),
    "run_not_running": _("Only a running run can be paused. This run is %(state)s."),
    "budget_of_batches": _(
        "A batch is billed as a whole, so a budget can't be enforced. Use either batches or a budget."
    ),
    "budget_unpriced": _(
        "A budget needs prices, but the CONCORD_PRICES table has none for %(models)s. Add them, or remove the budget."
    ),
    "budget_used_up": _("The run has used $%(spent)s of its budget of $%(budget)s. Raise the budget to continue."),
    "run_not_paused": _("Only a paused run can be resumed. This run is %(state)s."),
    "no_batches": _(
        "None of the run's judges uses an endpoint with batch support. Ask an administrator to enable "
        "batches for the endpoint, or run without batches."
    ),
    "feature_off": _("The feature “%(feature)s” isn't installed (INSTALLED_APPS in the settings)."),
    "last_superuser": _("This is the site's last administrator. Make someone else an administrator first."),
    "run_ended": _("The run has already ended (%(state)s), so it can't be cancelled."),
    "start_token_used": _("This start token was already used for another run. Reload the page, or send a new token."),
    # Criteria
    "criterion_name_taken": _("The name “%(name)s” is used by another metric or criterion. Choose another name."),
    "rubric_active": _("%(judge)s already uses %(rubric)s."),
    "rubric_not_activated": _("%(judge)s already uses the shipped version of “%(family)s”."),
    "rubric_other_language": _(
        "%(rubric)s isn't in the judge's language (%(language)s). Choose a version in that language."
    ),
    "rubric_of_criterion": _("Rubrics of custom criteria are created when a criterion is activated."),
    "rubric_differs": _(
        "Differs from the shipped rubric of “%(family)s”: %(parts)s. A version may only change the "
        "wording. Metrics, scales, levels, labels and steps must stay, because replies depend on them."
    ),
    "rubric_unseen": _("The rubric contains invisible characters (%(characters)s). Remove them."),
    "rubric_too_long": _("The rubric's texts exceed %(limit)s characters. Shorten them."),
    "rubric_not_used": _(
        "The run doesn't use these rubrics: %(families)s. Choose versions of rubrics that its profile "
        "uses, or add a metric of the rubric."
    ),
    "rubric_of_baseline": _("The offline baseline only compares words and uses no rubric. Choose another judge."),
    "rubrics_of_jury": _("A jury uses one version of each rubric. Choose one, or compare versions without a jury."),
    "rubric_needs_answers": _(
        "An unproven version can only judge existing answers. Collect the answers in a separate run "
        "first, then judge them with this version."
    ),
    **gold_sets.REFUSALS,
    # Questions that a machine writes, a file that sets a site up, criteria
    "generation_of_baseline": _("The offline baseline and juries can't write questions. Choose a judge with a model."),
    "generation_size": _(
        "Choose at least one kind of question, 1 to %(passages)s passages, and 1 to %(questions)s "
        "questions per passage."
    ),
    "generation_nothing_to_ask": _("No passage in %(corpus)s is long enough for a question."),
    "generation_under_way": _("Questions are still being generated. Review them afterwards."),
    "generation_nothing_accepted": _("No questions have been accepted yet."),
    "draft_invalid": _("Not a valid question: %(error)s"),
    "draft_empty": _("A question needs text and an expected answer."),
    "draft_verb": _("Accept or reject the question."),
    "provision_baseline": _("This name is reserved for the offline baseline."),
    "provision_no_endpoint": _("The endpoint “%(name)s” exists neither here nor in the file."),
    "provision_no_person": _("The person “%(name)s” exists neither here nor in the file."),
    "provision_no_judge": _("The judge “%(name)s” exists neither here nor in the file."),
    "provision_token": _("%(variable)s must contain the token, at least %(least)s characters."),
    "provision_token_taken": _("The token in %(variable)s is already in use."),
    "criterion_active": _("%(criterion)s is already in force."),
    "criterion_not_active": _("Not in force: %(names)s. A lead must activate a version of the criterion first."),
    "criterion_not_weighable": _(
        "%(names)s can't have a weight: an overall score needs numbers where higher is better. Report "
        "it next to the overall score instead."
    ),
    "metric_not_installed": _(
        "The package of these own metrics is not installed: %(names)s. Ask the operator to install it, or remove the "
        "metrics from the profile."
    ),
    # Draws
    "empty_frame": _("There are no answers to sample."),
    "unknown_keys": _("These answers aren't in the sampling frame: %(keys)s."),
    "no_fail_threshold": _("Set the score below which an answer counts as failed."),
    "fails_exceed_size": _(
        "%(fails)s answers failed, more than the sample size of %(size)s. Increase the sample size."
    ),
    "no_spread": _("Sampling by uncertainty needs repeats, a jury or token probabilities."),
    "draw_too_small": _(
        "%(strata)s strata need at least %(needed)s answers. Increase the sample size, or use fewer strata."
    ),
    # Queues
    "all_rated": _("All answers are rated on these criteria or waiting in an open queue. None are left to sample."),
    "unpaired_runs": _(
        "The two runs did not answer the same version of a question set, so their answers can't be paired."
    ),
    "not_comparable": _(
        "The overall scores of the two runs can't be compared, because a part is missing or has another version."
    ),
    "pairs_waiting": _("A queue of pairs for these two runs is still open. Finish or close it first."),
    "all_pairs_rated": _("All changed answers are rated in both runs, or none changed. No pairs are left to sample."),
    "nothing_rated_once": _("No answer has been rated by exactly one expert, so none needs a second opinion."),
    "nothing_to_recheck": _(
        "No answer is due for a recheck: there are no ratings of identical answers in earlier releases, or enough of "
        "them were rated again."
    ),
    "second_opinion_pool": _(
        "For second opinions, choose “Anyone available takes the next answer”. Each answer goes to "
        "people who haven't rated it."
    ),
    "nothing_picked": _("Choose the questions whose answers should be reviewed."),
    "size_below_one": _("Sample at least one answer."),
    "no_run": _("Choose at least one run."),
    "several_projects": _("All runs of a queue must belong to the same project."),
    "no_metrics": _("Choose at least one metric to rate."),
    "no_reviewers": _("Choose at least one reviewer."),
    "not_in_project": _("These people have no role in the project: %(people)s. Assign them one first."),
    "no_round_left": _("All planned rounds of this review exist (%(looks)s)."),
    "round_not_finished": _(
        "%(count)s answers of this round are not rated yet. Rate them or close the queue, then start the next round."
    ),
    "too_few_reviewers": _("%(needed)s reviewers per answer require at least as many people. There are %(people)s."),
    "unknown_questions": _("The runs have no answers to: %(ids)s."),
    "no_fields": _("Assign tags or categories to reviewers, one per line, such as “tax: kim, lee”."),
    "nobody_named": _("Choose a person."),
    "no_moment": _("“%(text)s” isn't a valid date and time."),
    "same_person": _("Choose someone else to take over the answers."),
    "deadline_passed": _("The deadline has already passed."),
    "not_a_reviewer": _("These people aren't reviewers of the queue: %(people)s."),
    "too_few_for_tag": _("Answers tagged %(tags)s need %(needed)s reviewers. Only %(people)s have one of these tags."),
    "too_few_for_repeats": _(
        "Hidden repeats need at least %(least)s answers per reviewer to be far enough apart. Here there are %(each)s."
    ),
    "setting_range": _("“%(field)s” must be between %(low)s and %(high)s."),
    "queue_name_tells": _(
        "Reviewers see the name before they rate. Don't mention the system, judge or sampling: %(words)s."
    ),
    # Reviewing
    "queue_closed": _("The queue is closed. Your input is kept as a draft."),
    "not_a_member": _("You aren't a reviewer of this queue."),
    "slot_taken": _("Your reservation expired and someone else has taken the item. Your input is kept."),
    "password_by_others_link": _(
        "Your password was set with a link that someone else created. You can do this 7 days after that."
    ),
    "not_held": _("You no longer hold this item."),
    "not_yours": _("Someone else is working on this item."),
    "already_rated": _("You have already rated this item. Use Undo to change your rating."),
    "bad_key": _("This form was already sent. Reload the page and try again."),
    "key_reused": _(
        "This form was already sent with other values. The first values are kept. Reload the page to see them."
    ),
    "metrics_missing": _("Not rated yet: %(metrics)s."),
    "metrics_unknown": _("The queue doesn't ask for: %(metrics)s."),
    "one_value": _("Give exactly one score for %(metric)s, or mark it as impossible to judge."),
    "off_scale": _("%(value)s isn't on the scale of %(metric)s (%(scale)s)."),
    "comment_too_long": _("The comment has %(length)s characters. The limit is %(limit)s."),
    "draft_too_large": _("The draft is too large to save (at most %(limit)s characters)."),
    "judge_already_seen": _("You have seen the judge's score, so your first rating can't be changed."),
    "not_the_last": _("Only your last rating can be undone."),
    "nothing_to_undo": _("There is nothing to undo."),
    "not_rated_yet": _("Rate the item first."),
    "not_revealed": _("The judge isn't shown for this item."),
    "already_final": _("You have already decided on this item."),
    "reason_needed": _("%(metric)s changed by two or more levels, or crossed its threshold. Choose a reason."),
    "unknown_reason": _("“%(reason)s” isn't a listed reason: %(known)s."),
    "unknown_why_not": _("“%(reason)s” isn't a listed reason why something can't be judged: %(known)s."),
    "parts_undecided": _("%(metric)s: not decided yet: number %(parts)s."),
    "unknown_verdict": _("%(metric)s: “%(verdicts)s” isn't one of its verdicts (%(known)s)."),
    "unknown_part": _("%(metric)s: this part isn't among those to decide on."),
    "no_parts": _("%(metric)s: there is nothing to decide on. Add what is missing, or mark it as impossible to judge."),
    "parts_needed": _("%(metric)s is rated part by part. Its score is computed from the parts."),
    "too_many_parts": _("%(metric)s: add at most %(limit)s parts with 1 to %(characters)s characters each."),
    "not_finished": _("Only finished items can be rated again."),
    "adjudicated_already": _("A lead has decided on this value, so your rating can't be changed."),
    "unknown_key_action": _("The review screen has no such actions: %(actions)s."),
    "unknown_key": _("These keys can't be used: %(keys)s. Choose from: %(known)s."),
    "key_used_twice": _("Two actions use the same key: %(keys)s. Choose another key."),
    # Overrides and adjudication
    "reason_required": _("Enter a reason."),
    "reason_too_long": _("The reason has %(length)s characters. Shorten it to at most %(limit)s."),
    "adjudicated": _("This value was adjudicated, so only a lead can override it."),
    "changed_meanwhile": _("Someone else decided at the same time. Check the new value and try again."),
    "no_answers_chosen": _("No answers selected."),
    "too_many_answers": _("%(count)s answers selected. At most %(limit)s can be decided at once."),
    "selection_changed": _("The matching answers have changed in the meantime. Check them again before you confirm."),
    "nothing_to_revert": _("There is no override to undo."),
    "own_rating": _("You rated this answer yourself. Another lead must decide."),
    "own_flag": _("You raised this yourself. Another lead must decide."),
    "ruled_already": _("Someone else has already decided on this. Check their decision."),
    "not_raised": _("Only a flag or an escalation can be upheld or dismissed."),
    "nothing_decided": _("Choose a value, or uphold or dismiss what was raised."),
    "text_needed": _("This text can't be empty."),
    "text_too_long": _("The text is too long. The limit is %(limit)s characters."),
    "anchor_too_long": _("A level's text can have at most %(limit)s characters."),
    "question_gone": _("The newest version of the question set no longer contains the question “%(question)s”."),
    # Pairs
    "pairs_same_answers": _("Both runs score the same answers. Choose runs of different systems or versions."),
    "no_shared_answers": _("The runs have no questions in common."),
    "pair_set_exists": _("A comparison named “%(name)s” already exists. Choose another name."),
    "pairs_closed": _("This comparison is closed."),
    "comparison_in_work": _(
        "Another process is comparing these pairs with this judge. Wait for it to finish. If it was "
        "killed, it is replaced after two minutes."
    ),
    "jury_compares_nothing": _("A jury can't compare pairs. Use each of its members instead."),
    "pairs_left": _("You are a rater in this comparison. You can see the results after you rate all your pairs."),
    "preference_range": _("Choose one of the five preferences."),
    **retrieval_truth.REFUSALS,
    # Exports
    "too_many_exports": _("You have reached the limit of %(limit)s files per hour. Try again in %(minutes)s min."),
    "too_many_figures": _(
        "You have reached the limit of %(limit)s computed figures per hour. Try again in %(minutes)s min."
    ),
    "figures_in_making": _("A background worker is computing this from all scores and ratings. Try again shortly."),
    # Gates
    "gate_needs_baseline": _("A maximum drop needs a baseline run to compare with."),
    "gate_no_drop": _("A pass rate can't be gated on a drop. Set a minimum instead (--fail-under)."),
    "gate_needs_drop": _("A baseline run needs a maximum drop."),
    "margin_needs_drop": _("A margin needs a baseline run and a maximum drop."),
    "margin_not_positive": _("The margin within which two runs count as equal must be above 0, not %(margin)s."),
}


_SIZE_PROBLEMS = {"file_too_large", "workbook_too_large", "docx_too_large"}
_TABLE_EXTENSIONS = (".csv", ".tsv", ".xlsx", ".parquet", ".arrow", ".feather")


def explain(problem: Problem) -> str:
    """File, line (row in a table) and field, followed by the problem and its fix."""
    location = ", ".join(part for part in (problem.file, _line(problem), problem.field) if part)
    sentence = explain_without_location(problem)
    return f"{location}: {sentence}" if location else sentence


_MAX_LINES = 5


def explain_without_location(problem: Problem) -> str:
    """Message without the location, with the number of other lines that have the same problem."""
    sentence = _fill(problems.PROBLEM_MESSAGES, problem.code, _readable_params(problem))
    count = len(problem.more_lines)
    if not count:
        return sentence
    lines = ", ".join(map(str, problem.more_lines[:_MAX_LINES])) + (", …" if count > _MAX_LINES else "")
    if problem.file.lower().endswith(_TABLE_EXTENSIONS):
        text = ngettext("Also in %(count)d other row: %(lines)s.", "Also in %(count)d other rows: %(lines)s.", count)
    else:
        text = ngettext("Also in %(count)d other line: %(lines)s.", "Also in %(count)d other lines: %(lines)s.", count)
    return f"{sentence} {text % {'count': count, 'lines': lines}}"


# Django's Korean translation of this text is wrong ("view and edit"); the project's catalogue takes precedence.
DJANGO_MESSAGES = (_("You don’t have permission to view or edit anything."),)


def explain_reason(reason: str) -> str:
    """Message of a reason code, followed by its detail.

    A detail that is a reason itself (``upstream: timeout``) is explained too."""
    code, _colon, detail = reason.partition(": ")
    if code not in reasons.REASON_MESSAGES:
        return reason
    sentence = str(reasons.REASON_MESSAGES[code])
    return f"{sentence} ({explain_reason(detail)})" if detail else sentence


def advise(reason: str) -> str:
    """Advice for the reason of a paused run; empty if no action is needed."""
    return str(reasons.ADVICE.get(reason.partition(": ")[0], ""))


def explain_judge_warning(code: str, params: Mapping[str, Any]) -> str:
    return _fill(reasons.JUDGE_WARNINGS, code, params)


def explain_lapse(code: str, params: Mapping[str, Any]) -> str:
    """Message for the reason why a prompt's approval does not hold for a run."""
    return _fill(reasons.APPROVAL_LAPSES, code, params)


def translate_parser_message(detail: str) -> str:
    """Translate an English parser message to the active language, so that a message is in one language."""
    if (get_language() or "en").startswith("en"):
        return detail
    normalized = detail.replace("' or '", "', '")
    matches = ((re.search(pattern, normalized, re.DOTALL), sentence) for pattern, sentence in problems.PARSER_MESSAGES)
    return next(
        (str(sentence) % match.groupdict() for match, sentence in matches if match),
        str(problems.UNKNOWN_PARSER_MESSAGE),
    )


def explain_refusal(error: DomainError) -> str:
    """Message for a refused action, with advice."""
    params = {key: ", ".join(map(str, v)) if isinstance(v, list | tuple) else v for key, v in error.params.items()}
    params |= {key: translate_parser_message(str(params[key])) for key in ("detail",) if key in params}
    return _fill(REFUSALS, error.code, params)


def _line(problem: Problem) -> str:
    if problem.line is None:
        return ""
    if problem.file.lower().endswith(_TABLE_EXTENSIONS):
        return _("row %(number)s") % {"number": problem.line}
    return _("line %(number)s") % {"number": problem.line}


def _readable_params(problem: Problem) -> Mapping[str, Any]:
    """Parameters with translated value kinds and readable file sizes."""
    params = dict(problem.params)
    if "found" in params:
        params["found"] = problems.NODE_KIND_NAMES.get(params["found"], params["found"])
    params |= {key: translate_parser_message(str(params[key])) for key in ("detail", "error") if key in params}
    if problem.code in _SIZE_PROBLEMS:
        params |= {key: filesizeformat(params[key]) for key in ("size", "limit") if key in params}
    return params


def _fill(sentences: Mapping[str, str | Promise], code: str, params: Mapping[str, Any]) -> str:
    """Message with its parameters; a code without a message is shown as it is."""
    if code not in sentences:
        details = ", ".join(f"{key} = {value}" for key, value in params.items())
        return _("Problem “%(code)s” (%(details)s).") % {"code": code, "details": details}
    return str(sentences[code]) % params


CATEGORY_NAMES = {
    "single_hop": _("one fact"),
    "multi_hop_2": _("two linked facts"),
    "multi_hop_3": _("three linked facts"),
    "aggregation": _("aggregated facts"),
    "inference": _("reasoning"),
    "negative": _("negative question"),
    "comparison": pgettext_lazy("category of questions", "comparison"),
    "conditional": pgettext_lazy("category of questions", "with a condition"),
}


def category_name(category: str) -> str:
    """Readable name of a known category; others unchanged."""
    return str(CATEGORY_NAMES.get(category, category))
