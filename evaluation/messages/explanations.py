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
        "“%(definition)s” defines no scale. Write NAME=1..5, NAME=0..1:real, NAME=-2..2, NAME=bool or NAME=class:a|b, "
        "each name once."
    ),
    "metric_known": _(
        "“%(metric)s” is a metric of the product with the scale %(scale)s; it cannot be defined as %(given)s. "
        "Give the imported metric another name."
    ),
    "bad_name": problems.PROBLEM_MESSAGES["bad_name"],
    "unknown_upload_kind": _("Files of the kind “%(kind)s” cannot be uploaded here."),
    "upload_expired": _("The upload of %(file)s was not confirmed within a day. Upload the file again."),
    **corpora.REFUSALS,
    **databases.REFUSALS,
    # Endpoints
    "origin_invalid": _("“%(url)s” is no plain address. Write https://host/path, without user, password or query."),
    "origin_not_allowed": _(
        "%(origin)s is not on the list of allowed judge addresses. An operator adds it to CONCORD_JUDGE_ORIGINS."
    ),
    "origin_never_allowed": _(
        "%(origin)s is an address of the network itself or of a cloud's metadata service, which tells secrets of the "
        "machine. It is never called, whatever the lists say."
    ),
    # Systems
    "system_origin_not_allowed": _(
        "%(origin)s is not on the list of addresses of systems. An operator adds it to CONCORD_SYSTEM_ORIGINS."
    ),
    "variable_missing": _("The environment variable %(variable)s, which the system's settings name, is not set here."),
    "command_not_allowed": _(
        "“%(command)s” is not among the programs that systems may run. An operator adds it to CONCORD_SYSTEM_COMMANDS."
    ),
    "function_not_allowed": _(
        "“%(function)s” is not among the functions that systems may call. An operator adds it to "
        "CONCORD_SYSTEM_CALLABLES."
    ),
    "function_missing": _("There is no function where CONCORD_SYSTEM_CALLABLES says “%(function)s” is."),
    "answers_unfinished": _("Another run still asks the system for these answers. Wait for it, or resume it."),
    "not_asked": _("Answers of %(system)s are imported, so it cannot be asked. Add a version with a connector."),
    "no_traces": _("There is no trace of “%(system)s” to import: none is whole, or the sampling takes none."),
    "rule_invalid": _("“%(rule)s” is no JMESPath expression (%(detail)s)."),
    # Embeddings
    "embedding_changed": _("The embedding model is no longer the one the run was made with. Start a new run."),
    "no_local_model": _(
        "There is no local embedding model. Install the extra “semantic” and a model, or name its folder in "
        "CONCORD_LOCAL_MODEL."
    ),
    "semantic_not_installed": _("Local embeddings need the extra “semantic”. Install it, or configure an endpoint."),
    "local_model_unreadable": _("The folder “%(folder)s” holds no BERT model that can be read (%(detail)s)."),
    "no_such_layer": _("The model has %(layers)s layers, so there is no layer %(layer)s."),
    # Evaluating
    "no_project": _("There is no project yet. An administrator adds one in the back office (/admin/)."),
    "project_needed": _("There are several projects (%(names)s). Name the one you mean."),
    "no_question_selected": _("The filters leave no question."),
    "no_answers": _("The system “%(system)s” has no answers to %(questions)s. Import them first."),
    "other_questions": _("Run %(run)s answered other questions than %(questions)s."),
    # Runs
    "key_missing": _(
        "The environment variable %(variable)s with the endpoint's key is not set. Set it in the environment or the "
        "file .env of web and workers, or enter the key at the endpoint."
    ),
    "key_name": _(
        "Keys of endpoints are in environment variables whose names begin with CONCORD_KEY_; %(variable)s is none of "
        "them. An operator sets CONCORD_KEY_… to the key, and an administrator names it at the endpoint."
    ),
    "key_unreadable": _("The stored key of the endpoint cannot be read any more. Enter it again."),
    "judge_needed": _(
        "The project has several judges and no default: %(names)s. Name one, or have an administrator choose the "
        "default in the back office (Projects)."
    ),
    "jury_too_small": _("A jury needs at least two different judges, and no jury among them."),
    "jury_asks_nobody": _("A jury asks nobody itself. Choose one of its members."),
    "jury_languages": _("The judges of a jury read rubrics in one language; these read %(languages)s."),
    "nothing_failed": _("Nothing has failed, so there is nothing to retry."),
    "run_not_retryable": _("A draft or cancelled run cannot be retried."),
    "run_not_running": _("Only a running run can be paused; this one is %(state)s."),
    "budget_of_batches": _("A batch is paid for as a whole, so no budget can hold. Leave out one of the two."),
    "budget_unpriced": _(
        "A budget needs prices, and the table that CONCORD_PRICES names has none for %(models)s. Add them there, or "
        "leave out the budget."
    ),
    "budget_used_up": _("The run has cost $%(spent)s of its budget of $%(budget)s. Raise the budget to go on."),
    "run_not_paused": _("Only a paused run can be resumed; this one is %(state)s."),
    "no_batches": _(
        "No judge of the run is at an endpoint that takes batches. Have an administrator say so of the endpoint, or "
        "leave batches out."
    ),
    "feature_off": _("This installation does not have the feature “%(feature)s” (INSTALLED_APPS in its settings)."),
    "last_superuser": _("This is the last administrator of the site. Make somebody else one first."),
    "run_ended": _("The run has ended (%(state)s), so there is nothing to cancel."),
    "start_token_used": _("This start token has started another run. Reload the page, or send a new token."),
    # Criteria
    "criterion_name_taken": _("The name “%(name)s” belongs to another metric or criterion. Choose another one."),
    "rubric_active": _("%(judge)s works by %(rubric)s already."),
    "rubric_not_activated": _("%(judge)s works by the shipped version of “%(family)s” already."),
    "rubric_other_language": _(
        "%(rubric)s is in another language than the judge works in (%(language)s). Name a version in that language."
    ),
    "rubric_of_criterion": _("Rubrics of custom criteria are made by activating a criterion."),
    "rubric_differs": _(
        "Not as in the shipped rubric of “%(family)s”: %(parts)s. A version may change words only; metrics, scales, "
        "levels, labels and steps stay, because replies are read by them."
    ),
    "rubric_unseen": _("The rubric holds characters that nobody sees (%(characters)s). Remove them."),
    "rubric_too_long": _("The rubric's texts are longer than %(limit)s characters. Shorten them."),
    "rubric_not_used": _(
        "The run does not judge by: %(families)s. Name versions of families that its profile uses, or add a metric of "
        "the family."
    ),
    "rubric_of_baseline": _("The offline baseline counts words and reads no rubric. Name another judge."),
    "rubrics_of_jury": _("A jury judges by one version of each family. Name one, or compare them without a jury."),
    "rubric_needs_answers": _(
        "A version that has not proved itself judges answers that are there. Ask the system in a run of its own, then "
        "judge those answers with this version."
    ),
    **gold_sets.REFUSALS,
    # Questions that a machine writes, a file that sets a site up, criteria
    "generation_of_baseline": _("The offline baseline and juries write no questions. Name a judge with a model."),
    "generation_size": _(
        "At least one kind of question, 1 to %(passages)s passages, and 1 to %(questions)s questions a passage."
    ),
    "generation_nothing_to_ask": _("No passage of %(corpus)s is long enough to be asked about."),
    "generation_under_way": _("Questions are still being written. Decide on them afterwards."),
    "generation_nothing_accepted": _("No question is accepted yet."),
    "draft_invalid": _("This is no question: %(error)s"),
    "draft_empty": _("A question needs its text and an expected answer."),
    "draft_verb": _("A question is accepted or rejected."),
    "provision_baseline": _("That is the name of the offline baseline."),
    "provision_no_endpoint": _("There is no endpoint “%(name)s”, neither here nor in the file."),
    "provision_no_person": _("There is no person “%(name)s”, neither here nor in the file."),
    "provision_no_judge": _("There is no judge “%(name)s”, neither here nor in the file."),
    "provision_token": _("%(variable)s has to hold the text of the token, %(least)s characters at least."),
    "provision_token_taken": _("The text in %(variable)s is another token's already."),
    "criterion_active": _("%(criterion)s is in force already."),
    "criterion_not_active": _("Not in force: %(names)s. A lead activates a version of the criterion first."),
    "criterion_not_weighable": _(
        "%(names)s cannot carry a weight: an overall score needs numbers of which more is better. Report it beside the "
        "overall score instead."
    ),
    # Draws
    "empty_frame": _("There is no answer to draw from."),
    "unknown_keys": _("These answers are not in the frame: %(keys)s."),
    "no_fail_threshold": _("Say below which value an answer counts as failed."),
    "fails_exceed_size": _("%(fails)s answers failed, more than the %(size)s to be drawn. Draw more."),
    "no_spread": _("Drawing by uncertainty needs repeats, a jury or token probabilities."),
    "draw_too_small": _("%(strata)s strata need at least %(needed)s answers. Draw more, or use fewer strata."),
    # Queues
    "all_rated": _("Every answer is rated by these criteria, or waits in an open queue. Nothing is left to draw."),
    "nothing_rated_once": _("No answer has the rating of exactly one expert, so none needs a second opinion."),
    "second_opinion_pool": _(
        "For second opinions, choose “Whoever is free takes the next one”: each answer goes to people who have not "
        "rated it."
    ),
    "nothing_picked": _("Name the questions whose answers are to be reviewed."),
    "size_below_one": _("Draw at least one answer."),
    "no_run": _("Choose at least one run."),
    "several_projects": _("All runs of a queue belong to one project."),
    "no_metrics": _("Choose at least one metric to be rated."),
    "no_reviewers": _("Choose at least one reviewer."),
    "not_in_project": _("These people have no role in the project: %(people)s. Give them one first."),
    "too_few_reviewers": _("%(needed)s reviewers per answer need at least as many people; there are %(people)s."),
    "unknown_questions": _("The runs have no answer to: %(ids)s."),
    "no_fields": _("Say which tags or categories are whose: one line each, such as “tax: kim, lee”."),
    "nobody_named": _("Choose a person."),
    "no_moment": _("“%(text)s” is no date and time."),
    "same_person": _("Choose somebody else to give the answers to."),
    "deadline_passed": _("The deadline has passed already."),
    "not_a_reviewer": _("These people are not among the reviewers of the queue: %(people)s."),
    "too_few_for_tag": _("Answers tagged %(tags)s need %(needed)s reviewers; only %(people)s have such a tag."),
    "too_few_for_repeats": _(
        "Hidden repeats need at least %(least)s answers for each reviewer, so that one comes much later; here there "
        "are %(each)s."
    ),
    "setting_range": _("“%(field)s” must lie between %(low)s and %(high)s."),
    "queue_name_tells": _(
        "Reviewers read the name before they rate. It must not name the system, the judge or the strategy: %(words)s."
    ),
    # Reviewing
    "queue_closed": _("The queue is closed. What you entered is kept as a draft."),
    "not_a_member": _("You are not among the reviewers of this queue."),
    "slot_taken": _("Your reservation ran out and somebody else has taken the item. What you entered is kept."),
    "password_by_others_link": _(
        "Your password was set through a link that another person created. You can do this again seven days later."
    ),
    "not_held": _("You no longer hold this item."),
    "not_yours": _("This item is in somebody else's hands."),
    "already_rated": _("You have rated this item already. Take it back with Undo to change it."),
    "bad_key": _("This form was sent before. Reload the page and try again."),
    "key_reused": _("This form was sent before with other values. The first ones stay; reload the page to see them."),
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
    "unknown_why_not": _("“%(reason)s” is not on the list of reasons why something cannot be judged: %(known)s."),
    "parts_undecided": _("%(metric)s: still to be decided: number %(parts)s."),
    "unknown_verdict": _("%(metric)s: “%(verdicts)s” is not one of its verdicts (%(known)s)."),
    "unknown_part": _("%(metric)s: that part is not among those to be decided."),
    "no_parts": _("%(metric)s: there is nothing to decide. Add what is missing, or say that it cannot be judged."),
    "parts_needed": _("%(metric)s is rated by its parts; the figure follows from them."),
    "too_many_parts": _("%(metric)s: add at most %(limit)s parts of 1 to %(characters)s characters each."),
    "not_finished": _("Only an item that you have finished can be rated again."),
    "adjudicated_already": _("A lead has decided on this value, so your rating stays as it is."),
    "unknown_key_action": _("These are no actions of the review screen: %(actions)s."),
    "unknown_key": _("These keys cannot be chosen: %(keys)s. Choose from: %(known)s."),
    "key_used_twice": _("The same key would do two things: %(keys)s. Choose another one."),
    # Overrides and adjudication
    "reason_required": _("Give a reason."),
    "reason_too_long": _("The reason has %(length)s characters; at most %(limit)s are kept. Shorten it."),
    "adjudicated": _("This value was adjudicated; only a lead can override it."),
    "changed_meanwhile": _("Somebody else decided at the same moment. Look at the new value and try again."),
    "no_answers_chosen": _("No answer is chosen."),
    "too_many_answers": _("These are %(count)s answers; at most %(limit)s can be decided at once."),
    "selection_changed": _("The answers that match have changed since you looked. Look again before you confirm."),
    "nothing_to_revert": _("There is no override to take back."),
    "own_rating": _("You rated this answer yourself; another lead has to decide."),
    "own_flag": _("You raised this yourself; another lead has to decide."),
    "ruled_already": _("Somebody else has decided on this already. Look at what they said."),
    "not_raised": _("Only a flag or an escalation can be upheld or dismissed."),
    "nothing_decided": _("Choose a value, or uphold or dismiss what was raised."),
    "text_needed": _("This text must not be empty."),
    "text_too_long": _("The text is too long; at most %(limit)s characters are kept."),
    "anchor_too_long": _("The text of a level has at most %(limit)s characters."),
    "question_gone": _("The newest version of the question set has no question “%(question)s” any more."),
    # Pairs
    "pairs_same_answers": _("Both runs score the same answers. Choose runs of two systems or versions."),
    "no_shared_answers": _("The runs have answered no question in common."),
    "pair_set_exists": _("There is a comparison named “%(name)s” already. Choose another name."),
    "pairs_closed": _("This comparison is closed."),
    "comparison_in_work": _(
        "Another process has this judge compare these pairs. Wait for it; a process that was killed is replaced after "
        "two minutes."
    ),
    "jury_compares_nothing": _("A jury cannot compare pairs. Have each of its members do it."),
    "pairs_left": _("You rate in this comparison yourself. Rate all your pairs first; then you see what came of it."),
    "preference_range": _("Choose one of the five preferences."),
    **retrieval_truth.REFUSALS,
    # Exports
    "too_many_exports": _(
        "You have reached the limit of files within an hour (%(limit)s). The next one can be had in %(minutes)s min."
    ),
    "too_many_figures": _(
        "You have reached the limit of computed figures within an hour (%(limit)s). The next ones can be had in "
        "%(minutes)s min."
    ),
    "figures_in_making": _("A background worker is making this from all scores and ratings. Ask again a little later."),
    # Gates
    "gate_needs_baseline": _("A largest drop needs a baseline run to be measured against."),
    "gate_no_drop": _("A pass rate has no drop that could be gated; ask for a least one (--fail-under)."),
    "gate_needs_drop": _("A baseline run needs a largest drop that is allowed."),
    "margin_needs_drop": _("A margin needs a baseline run and a largest drop that is allowed."),
    "margin_not_positive": _("The margin within which two runs are alike is above 0, not %(margin)s."),
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
        text = ngettext(
            "The same in %(count)d other row: %(lines)s.", "The same in %(count)d other rows: %(lines)s.", count
        )
    else:
        text = ngettext(
            "The same in %(count)d other line: %(lines)s.", "The same in %(count)d other lines: %(lines)s.", count
        )
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
    "aggregation": _("gathered facts"),
    "inference": _("reasoning"),
    "negative": _("negative question"),
    "comparison": pgettext_lazy("category of questions", "comparison"),
    "conditional": pgettext_lazy("category of questions", "with a condition"),
}


def category_name(category: str) -> str:
    """Readable name of a known category; others unchanged."""
    return str(CATEGORY_NAMES.get(category, category))
