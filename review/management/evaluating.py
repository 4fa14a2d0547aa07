"""What ``evaluate`` does with its options: draft the run, work it off here, write its reports and print its figures."""

import json
from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from evaluation.management.working import work_off
from evaluation.models import AnswerSet, Run
from evaluation.models.run_spec import ASKING, OPTIONS, RunSpec
from evaluation.runs.experiments import judges_named
from evaluation.runs.making import Asking, draft_run
from evaluation.runs.planning import Plan, plan_of, plan_sentences
from evaluation.runs.selectors import answers_of_run, newest_answers, project_named, question_set_named
from evaluation.specs.flags import values_of
from evaluation.systems.services import asked_version
from evaluation.worker.lifecycle import start
from review.agreement.pages import agreement_pictures
from review.comparisons.gating import gate_of
from review.management.options import gate_asked, refusals
from review.management.tables import show_results
from review.queues.planning import planned_review
from review.reports.exporting import REPORT_EXPORTS, export_to
from review.reports.gathering import gather


def evaluate(command: BaseCommand, options: dict[str, Any]) -> None:
    """Make the run, do its units here, write the reports and print the figures.

    :raises CommandError: for our own errors.
    """
    asked = gate_asked(options)
    with refusals(), transaction.atomic():
        for path in options["output"]:
            REPORT_EXPORTS.format_of(path)
        run = _draft(options)
        if options["dry_run"]:
            _say(command, plan_of(run), options["format"])
            transaction.set_rollback(True)
            return
    start(run)
    aside = options["format"] == "json" or asked.anything  # the first line tells the gate, where there is one
    (command.stderr if aside else command.stdout).write(f"run {run.pk}")
    run = work_off(run)
    with refusals():
        gate = gate_of(run, asked)
    basis = gather(run)
    for path in options["output"]:
        with refusals():
            export_to(run, path, gate, pictures=agreement_pictures, planned=planned_review, basis=basis)
    show_results(command, run, gate, options["format"], basis)


def _say(command: BaseCommand, plan: Plan, form: str) -> None:
    if form == "json":
        command.stdout.write(json.dumps(plan.as_json(), indent=2))
        return
    asks = f", {plan.questions} questions to the system" if plan.questions else ""
    command.stdout.write(f"{plan.units} units, {plan.calls} judge calls{asks}")
    for sentence in plan_sentences(plan):
        command.stdout.write(sentence)


def _draft(options: dict[str, Any]) -> Run:
    answers = _answers(options)
    judge, *beside = judges_named(answers.question_set.project, options["judge"]) or [""]
    judges = {"judge": None if options["no_judge"] else judge, "beside": beside}
    return draft_run(answers, RunSpec(**values_of(OPTIONS.values(), options) | judges), by=None)


def _answers(options: dict[str, Any]) -> AnswerSet | Asking:
    """Existing answers, or those that the run asks for."""
    if options["reuse_answers"]:
        return answers_of_run(options["reuse_answers"], options["project"], options["questions"])
    questions = question_set_named(project_named(options["project"]), options["questions"])
    version = None if options["no_ask"] else asked_version(questions.project, options["system"])
    if version is None:
        return newest_answers(questions, options["system"])
    return Asking(question_set=questions, version=version, **values_of(ASKING.values(), options))
