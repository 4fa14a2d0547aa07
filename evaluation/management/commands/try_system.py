"""Ask a system one question; show request, reply and mapping."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.connectors.protocol import FULL_RAG, RETRIEVAL_ONLY, SystemCall
from evaluation.core.errors import DomainError
from evaluation.core.samples import QuestionSpec
from evaluation.management.output import add_format_option, command_errors, print_json
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain_reason
from evaluation.models import Project
from evaluation.runs.selectors import get_project, get_question_set
from evaluation.systems.preview import QuestionPreview, preview_question
from evaluation.systems.services import connected_version

FAILED = 100
# Length of the raw reply on a terminal.
MAX_RAW_CHARS = 1_500


class Command(SiteCommand):
    """``try_system NAME --question TEXT``: exit 0 with an answer, 100 without one, 1 if the system cannot be asked."""

    help = "Ask a system one question and show request, reply and mapping. Nothing is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("system", metavar="NAME", help="name of a system, or NAME@VERSION")
        parser.add_argument("--question", default="", metavar="TEXT", help="question to ask")
        parser.add_argument("--questions", default="", metavar="NAME", help="question set whose first question to ask")
        parser.add_argument("--id", default="", help="id of the question in the set")
        parser.add_argument(
            "--k", type=int, default=5, choices=range(1, 51), metavar="1..50", help="number of passages to request"
        )
        parser.add_argument("--type", choices=[FULL_RAG, RETRIEVAL_ONLY], default=FULL_RAG)
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(self):
            project = get_project(options["project"])
            version = connected_version(project, options["system"])
            if version is None:
                raise DomainError("not_asked", system=options["system"])
            call = SystemCall(_read_question(project, options), options["k"], options["type"])
            trial = preview_question(version, call)
        if options["format"] == "json":
            print_json(self, {"system": str(version), **trial.as_json})
        else:
            self._print_trial(trial)
        if trial.reply.content is None:
            sys.exit(FAILED)

    def _print_trial(self, trial: QuestionPreview) -> None:
        reply = trial.reply
        summary = f"{reply.outcome} in {reply.elapsed_seconds:.2f} s"
        status = f", HTTP {reply.http_status}" if reply.http_status else ""
        for title, text in (
            ("request", _to_json(trial.request)),
            (f"reply: {summary}{status}", reply.raw[:MAX_RAW_CHARS]),
            ("mapping", explain_reason(reply.reason) if trial.mapping is None else _to_json(trial.mapping)),
        ):
            self.stdout.write(f"--- {title}\n{text}")


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _read_question(project: Project, options: dict[str, Any]) -> QuestionSpec:
    """Return the question that the options name.

    :raises CommandError: if none is named, or the set does not contain it."""
    if options["question"]:
        return QuestionSpec(id="tried", category="tried", text=options["question"])
    if not options["questions"]:
        raise CommandError("Set --question, or a question set with --questions.")
    rows = get_question_set(project, options["questions"]).questions.order_by("position")
    question = (rows.filter(external_id=options["id"]) if options["id"] else rows).first()
    if question is None:
        raise CommandError(f"The question set has no question {options['id']!r}.")
    return question.read()
