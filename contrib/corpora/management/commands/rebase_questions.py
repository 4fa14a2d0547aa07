"""Map the relevant passages of a question set to another version of their corpus."""

from typing import Any

from django.core.management.base import CommandParser

from contrib.corpora.question_mapping import carry_questions
from contrib.corpora.selectors import get_corpus
from evaluation.management.output import add_format_option, command_errors, print_json, problem_line
from evaluation.management.site_command import SiteCommand
from evaluation.runs.selectors import get_project, get_question_set


class Command(SiteCommand):
    """``rebase_questions NAME --from CORPUS@1 --to CORPUS@2``: exit 0 with the version of the set for the new chunks, 1
    if passages are not found."""

    help = "Create the next version of a question set with relevant passages from another version of its corpus."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("questions", metavar="NAME[@VERSION]")
        parser.add_argument("--from", dest="old", required=True, metavar="CORPUS@VERSION")
        parser.add_argument("--to", dest="new", required=True, metavar="CORPUS@VERSION")
        parser.add_argument("--drop-lost", action="store_true", help="leave out passages that the other version lacks")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(self):
            project = get_project(options["project"])
            questions = get_question_set(project, options["questions"])
            old, new = (get_corpus(project, options[name]) for name in ("old", "new"))
            carried_set = carry_questions(questions, old, new, drop_lost=options["drop_lost"], by=None)
        mapping, imported = carried_set.mapping, carried_set.imported
        if options["format"] == "json":
            facts: dict[str, Any] = {"question_set": imported.question_set.pk, "version": imported.question_set.version}
            facts |= {"carried": len(mapping.chunks), "lost": list(mapping.lost), "unknown": list(mapping.unknown)}
            print_json(self, facts | {"created": imported.created})
            return
        self.stdout.write(problem_line(imported.note))
        self.stdout.write(
            f"carried\t{len(mapping.chunks)}\nlost\t{len(mapping.lost)}\nnot in {old}\t{len(mapping.unknown)}"
        )
