"""Ask a system one question and show what was sent, what came back, and what it was mapped to."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.connectors.protocol import FULL_RAG, RETRIEVAL_ONLY, SystemCall
from evaluation.core.errors import Refused
from evaluation.core.samples import QuestionSpec
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, refusals
from evaluation.messages.sentences import explain_reason
from evaluation.models import Project
from evaluation.runs.selectors import project_named, question_set_named
from evaluation.systems.services import asked_version
from evaluation.systems.trying import Tried, try_question

FAILED = 100
SHOWN = 1_500  # characters of the raw reply on a terminal


class Command(SiteCommand):
    """``try_system NAME --question TEXT``: exit 0 when there is an answer, 100 when there is none, 1 when the system
    cannot be asked."""

    help = "Ask a system one question: what is sent, what comes back, what it is mapped to. Nothing is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        """The system and the question."""
        parser.add_argument("system", metavar="NAME", help="name of a system, or NAME@VERSION")
        parser.add_argument("--question", default="", metavar="TEXT", help="what to ask")
        parser.add_argument("--questions", default="", metavar="NAME", help="or a question set, whose first is asked")
        parser.add_argument("--id", default="", help="or the one with this id")
        parser.add_argument("--k", type=int, default=5, choices=range(1, 51), metavar="1..50", help="passages wanted")
        parser.add_argument("--type", choices=[FULL_RAG, RETRIEVAL_ONLY], default=FULL_RAG)
        parser.add_argument("--project", default="", help="needed where there are several projects")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask and print."""
        with refusals(self):
            project = project_named(options["project"])
            version = asked_version(project, options["system"])
            if version is None:
                raise Refused("not_asked", system=options["system"])
            call = SystemCall(_question(project, options), options["k"], options["type"])
            tried = try_question(version, call)
        if options["format"] == "json":
            as_json(self, {"system": str(version), **tried.facts})
        else:
            self._show(tried)
        if tried.reply.told is None:
            sys.exit(FAILED)

    def _show(self, tried: Tried) -> None:
        reply = tried.reply
        said = f"{reply.outcome} in {reply.elapsed_seconds:.2f} s"
        status = f", HTTP {reply.http_status}" if reply.http_status else ""
        for title, text in (
            ("request", _written(tried.request)),
            (f"reply: {said}{status}", reply.raw[:SHOWN]),
            ("mapping", explain_reason(reply.reason) if tried.mapping is None else _written(tried.mapping)),
        ):
            self.stdout.write(f"--- {title}\n{text}")


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _question(project: Project, options: dict[str, Any]) -> QuestionSpec:
    """The question of the options.

    :raises CommandError: where none is named, or the set does not have it.
    """
    if options["question"]:
        return QuestionSpec(id="tried", category="tried", text=options["question"])
    if not options["questions"]:
        raise CommandError("name a --question, or a set with --questions")
    rows = question_set_named(project, options["questions"]).questions.order_by("position")
    found = (rows.filter(external_id=options["id"]) if options["id"] else rows).first()
    if found is None:
        raise CommandError(f"the set has no question {options['id']!r}")
    return found.read()
