"""Versions of judge prompts: list, show, compare, draft, put in force, take out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.criteria.rubrics import (
    activate,
    draft,
    propose,
    retire,
    rubrics_for,
    slot_of,
    standings,
    version_named,
)
from evaluation.judges.shipping import judge_row, shipped_rubric_row
from evaluation.judging.catalogue import families
from evaluation.judging.drafting import as_yaml, differences
from evaluation.judging.rubric import parse_rubric
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, refusals, table
from evaluation.models import JudgeVersion
from evaluation.runs.selectors import project_named


class Command(SiteCommand):
    """``rubric VERB``: for the judge that ``--judge`` names, else the project's own."""

    help = "Versions of judge prompts: which there are, what they say, and by which one a judge works."

    def add_arguments(self, parser: CommandParser) -> None:
        """One parser for each verb."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="all versions with how they stand for the judge")
        listing.add_argument("family", nargs="?", default="", help="only this family")
        add_format(listing)
        show = verbs.add_parser("show", help="a version as YAML")
        show.add_argument("version", metavar="FAMILY@V")
        diff = verbs.add_parser("diff", help="what the second says differently; without it, the version in force")
        diff.add_argument("version", metavar="FAMILY@V")
        diff.add_argument("other", metavar="FAMILY@V", nargs="?", default="")
        drafting = verbs.add_parser("draft", help="store a YAML file as a version that runs can name")
        drafting.add_argument("file", type=Path)
        drafting.add_argument("--note", default="", help="why")
        proposing = verbs.add_parser("propose", help="offer a draft for acceptance")
        proposing.add_argument("version", metavar="FAMILY@V")
        activating = verbs.add_parser("activate", help="let new runs of the judge work by a version")
        activating.add_argument("version", metavar="FAMILY@V")
        activating.add_argument("--reason", required=True)
        retiring = verbs.add_parser("retire", help="let new runs of the judge work by the shipped version again")
        retiring.add_argument("family")
        retiring.add_argument("--reason", required=True)
        for one in (listing, show, diff, drafting, proposing, activating, retiring):
            one.add_argument("--judge", default="", help="name of a judge; the project's own, else the baseline")
            one.add_argument("--project", default="", help="needed where there are several projects")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do the one verb."""
        with refusals(self):
            project = project_named(options["project"])
            judge = judge_row(project, options["judge"])
            getattr(self, f"_{options['verb']}")(judge, options)

    def _list(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        language = slot_of(judge, "").language
        for family in families():
            shipped_rubric_row(family, language)
        rows = rubrics_for([judge.project_id]).filter(language=language, family__in=families())
        if options["family"]:
            rows = rows.filter(family=options["family"])
        stand = {family: standings(slot_of(judge, family)) for family in {row.family for row in rows}}
        found = [
            {"rubric": f"{row.family}@{row.version}", "language": row.language, "standing": stand[row.family].of(row)}
            | {"judge": judge.name, "note": row.note}
            for row in rows.order_by("family", "version")
        ]
        if options["format"] == "json":
            as_json(self, found)
        else:
            table(self, ["rubric", "language", "standing", "judge", "note"], [list(one.values()) for one in found])

    def _show(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        language = slot_of(judge, "").language
        self.stdout.write(as_yaml(version_named(judge.project_id, language, options["version"]).rubric))

    def _diff(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        language = slot_of(judge, "").language
        ours = version_named(judge.project_id, language, options["version"])
        other = version_named(judge.project_id, language, options["other"]) if options["other"] else None
        before, after = (ours, other) if other else (standings(slot_of(judge, ours.family)).active, ours)
        for line in differences(before.rubric, after.rubric, (str(before), str(after))):
            self.stdout.write(line)

    def _draft(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        try:
            text = options["file"].read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise CommandError(f"{options['file']}: {error}") from error
        made = draft(judge.project, parse_rubric(text, file=options["file"].name), by=None, note=options["note"])
        self.stdout.write(f"{made.family}@{made.version}")

    def _propose(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        version = version_named(judge.project_id, slot_of(judge, "").language, options["version"])
        self.stdout.write(str(propose(version, judge, by=None)))

    def _activate(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        version = version_named(judge.project_id, slot_of(judge, "").language, options["version"])
        self.stdout.write(str(activate(version, judge, by=None, reason=options["reason"])))

    def _retire(self, judge: JudgeVersion, options: dict[str, Any]) -> None:
        event = retire(judge, options["family"], by=None, reason=options["reason"])
        self.stdout.write(str(event))
