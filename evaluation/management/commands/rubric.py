"""Manage versions of judge prompts: list, show, compare, draft, propose, activate, retire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.criteria.rubrics import (
    activate,
    draft,
    find_version,
    propose,
    retire,
    rubric_scope,
    usable_rubrics,
    version_statuses,
)
from evaluation.judges.shipped import judge_row, shipped_rubric_row
from evaluation.judging.catalogue import families
from evaluation.judging.draft_checks import rubric_yaml, unified_diff
from evaluation.judging.rubric import parse_rubric
from evaluation.management.output import add_format_option, command_errors, print_json, print_table
from evaluation.management.site_command import SiteCommand
from evaluation.models import JudgeVersion
from evaluation.runs.selectors import get_project


class Command(SiteCommand):
    """``rubric VERB``: for the judge named by ``--judge``, else the project's default."""

    help = "List, show, compare, draft, propose, activate and retire versions of judge prompts."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add one subparser for each verb."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        list_parser = verbs.add_parser("list", help="list all versions with their status for the judge")
        list_parser.add_argument("family", nargs="?", default="", help="list only this family")
        add_format_option(list_parser)
        show_parser = verbs.add_parser("show", help="print a version as YAML")
        show_parser.add_argument("version", metavar="FAMILY@V")
        diff_parser = verbs.add_parser("diff", help="compare a version with a second one, or with the active one")
        diff_parser.add_argument("version", metavar="FAMILY@V")
        diff_parser.add_argument("other", metavar="FAMILY@V", nargs="?", default="")
        draft_parser = verbs.add_parser("draft", help="store a YAML file as a draft, which runs can name")
        draft_parser.add_argument("file", type=Path)
        draft_parser.add_argument("--note", default="", help="reason for the draft")
        propose_parser = verbs.add_parser("propose", help="propose a draft for acceptance")
        propose_parser.add_argument("version", metavar="FAMILY@V")
        activate_parser = verbs.add_parser("activate", help="use a version for new runs of the judge")
        activate_parser.add_argument("version", metavar="FAMILY@V")
        activate_parser.add_argument("--reason", required=True)
        retire_parser = verbs.add_parser("retire", help="return to the shipped version for new runs")
        retire_parser.add_argument("family")
        retire_parser.add_argument("--reason", required=True)
        for subparser in (
            list_parser,
            show_parser,
            diff_parser,
            draft_parser,
            propose_parser,
            activate_parser,
            retire_parser,
        ):
            help_text = "name of the judge; default: the project's, or the baseline"
            subparser.add_argument("--judge", default="", help=help_text)
            subparser.add_argument("--project", default="", help="name of the project; required if there are several")

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(self):
            project = get_project(options["project"])
            judge = judge_row(project, options["judge"])
            getattr(self, f"_{options['verb']}")(judge, options)

    def _list(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        language = rubric_scope(judge, "").language
        for family in families():
            shipped_rubric_row(family, language)
        rows = usable_rubrics([judge.project_id]).filter(language=language, family__in=families())
        if options["family"]:
            rows = rows.filter(family=options["family"])
        statuses = {family: version_statuses(rubric_scope(judge, family)) for family in {row.family for row in rows}}
        records = [
            {
                "rubric": f"{row.family}@{row.version}",
                "language": row.language,
                "standing": statuses[row.family].status_of(row),
            }
            | {"judge": judge.name, "note": row.note}
            for row in rows.order_by("family", "version")
        ]
        if options["format"] == "json":
            print_json(self, records)
        else:
            print_table(
                self, ["rubric", "language", "status", "judge", "note"], [list(record.values()) for record in records]
            )

    def _show(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        language = rubric_scope(judge, "").language
        self.stdout.write(rubric_yaml(find_version(judge.project_id, language, options["version"]).rubric))

    def _diff(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        language = rubric_scope(judge, "").language
        version = find_version(judge.project_id, language, options["version"])
        other = find_version(judge.project_id, language, options["other"]) if options["other"] else None
        before, after = (
            (version, other) if other else (version_statuses(rubric_scope(judge, version.family)).active, version)
        )
        for line in unified_diff(before.rubric, after.rubric, (str(before), str(after))):
            self.stdout.write(line)

    def _draft(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        try:
            text = options["file"].read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise CommandError(f"{options['file']}: {error}") from error
        version = draft(judge.project, parse_rubric(text, file=options["file"].name), by=None, note=options["note"])
        self.stdout.write(f"{version.family}@{version.version}")

    def _propose(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        version = find_version(judge.project_id, rubric_scope(judge, "").language, options["version"])
        self.stdout.write(str(propose(version, judge, by=None)))

    def _activate(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        version = find_version(judge.project_id, rubric_scope(judge, "").language, options["version"])
        self.stdout.write(str(activate(version, judge, by=None, reason=options["reason"])))

    def _retire(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        event = retire(judge, options["family"], by=None, reason=options["reason"])
        self.stdout.write(str(event))
