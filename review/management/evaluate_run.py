"""Implementation of the ``evaluate`` command: create the run, work it off here, write reports, print figures."""

import json
from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from evaluation.management.output import finish_run
from evaluation.models import AnswerSet, Run
from evaluation.models.run_spec import ASK_OPTIONS, RUN_OPTIONS, RunSpec
from evaluation.runs.creation import CollectionRequest, draft_run, equal_rules_run
from evaluation.runs.experiments import resolve_judges
from evaluation.runs.planning import Plan, plan_draft, plan_sentences
from evaluation.runs.selectors import answers_of_run, get_project, get_question_set, newest_answers
from evaluation.specs.flags import option_values
from evaluation.systems.services import connected_version
from evaluation.worker.lifecycle import start
from review.agreement.pages import render_agreement_plots
from review.comparisons.gates import run_gate
from review.management.options import command_errors, read_gate_request
from review.management.tables import show_results
from review.queues.planning import next_review_json
from review.reports.exports import REPORT_EXPORTS, export_to
from review.reports.inputs import load_inputs


def evaluate(command: BaseCommand, options: dict[str, Any]) -> None:
    """Create and complete the run in this process, write the reports and print the figures.

    :raises CommandError: for refused input."""
    gate_request = read_gate_request(options)
    with command_errors(), transaction.atomic():
        for path in options["output"]:
            REPORT_EXPORTS.format_for_path(path)
        run = _draft_run(options)
        if options["dry_run"]:
            _print_plan(command, plan_draft(run), options["format"])
            transaction.set_rollback(True)
            return
        # Named runs are wanted for themselves.
        if not options["name"] and (equal_run := equal_rules_run(run)):
            transaction.set_rollback(True)
            run = equal_run
    start(run)
    # The first line of standard output is the gate, if there is one.
    to_stderr = options["format"] == "json" or gate_request.is_set
    (command.stderr if to_stderr else command.stdout).write(f"run {run.pk}")
    run = finish_run(run)
    with command_errors():
        gate = run_gate(run, gate_request)
    basis = load_inputs(run)
    for path in options["output"]:
        with command_errors():
            export_to(run, path, gate, pictures=render_agreement_plots, planned=next_review_json, basis=basis)
    show_results(command, run, gate, options["format"], basis)


def _print_plan(command: BaseCommand, plan: Plan, form: str) -> None:
    if form == "json":
        command.stdout.write(json.dumps(plan.as_json(), indent=2))
        return
    asking_note = f", {plan.questions} questions to the system" if plan.questions else ""
    command.stdout.write(f"{plan.units} units, {plan.calls} judge calls{asking_note}")
    for sentence in plan_sentences(plan):
        command.stdout.write(sentence)


def _draft_run(options: dict[str, Any]) -> Run:
    answers = _select_answers(options)
    judge, *other_judges = resolve_judges(answers.question_set.project, options["judge"]) or [""]
    judges = {"judge": None if options["no_judge"] else judge, "beside": other_judges}
    return draft_run(answers, RunSpec(**option_values(RUN_OPTIONS.values(), options) | judges), by=None)


def _select_answers(options: dict[str, Any]) -> AnswerSet | CollectionRequest:
    """Return existing answers, or a request to collect them."""
    if options["reuse_answers"]:
        return answers_of_run(options["reuse_answers"], options["project"], options["questions"])
    questions = get_question_set(get_project(options["project"]), options["questions"])
    version = None if options["no_ask"] else connected_version(questions.project, options["system"])
    if version is None:
        return newest_answers(questions, options["system"])
    return CollectionRequest(question_set=questions, version=version, **option_values(ASK_OPTIONS.values(), options))
