"""Carry the relevant passages of a question set over to another version of their corpus."""

from typing import Any

from django.core.management.base import CommandParser

from contrib.corpora.carrying import carry_questions
from contrib.corpora.selectors import corpus_named
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, problem_line, refusals
from evaluation.runs.selectors import project_named, question_set_named


class Command(SiteCommand):
    """``carry_questions NAME --from CORPUS@1 --to CORPUS@2``: exit 0 with the version of the set that fits the new
    chunks, 1 where passages cannot be found again."""

    help = "Make the next version of a question set, whose relevant passages are those of another version of a corpus."

    def add_arguments(self, parser: CommandParser) -> None:
        """The set and both versions."""
        parser.add_argument("questions", metavar="NAME[@VERSION]")
        parser.add_argument("--from", dest="old", required=True, metavar="CORPUS@VERSION")
        parser.add_argument("--to", dest="new", required=True, metavar="CORPUS@VERSION")
        parser.add_argument("--drop-lost", action="store_true", help="leave out passages whose words are gone")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Find the passages again and store the version."""
        with refusals(self):
            project = project_named(options["project"])
            questions = question_set_named(project, options["questions"])
            old, new = (corpus_named(project, options[name]) for name in ("old", "new"))
            made = carry_questions(questions, old, new, drop_lost=options["drop_lost"], by=None)
        found, stored = made.carried, made.imported
        if options["format"] == "json":
            facts: dict[str, Any] = {"question_set": stored.question_set.pk, "version": stored.question_set.version}
            facts |= {"carried": len(found.chunks), "lost": list(found.lost), "unknown": list(found.unknown)}
            as_json(self, facts | {"created": stored.created})
            return
        self.stdout.write(problem_line(stored.note))
        self.stdout.write(f"carried\t{len(found.chunks)}\nlost\t{len(found.lost)}\nnot of {old}\t{len(found.unknown)}")
