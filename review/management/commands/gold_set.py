"""Manage gold sets: create, grow, show, export, check, open and retire."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.accounts.access import may
from evaluation.core.roles import Action
from evaluation.management.output import add_format_option, command_errors, get_run, print_json, print_table
from evaluation.management.site_command import SiteCommand
from evaluation.models import HoldOutOpening, Project, User
from evaluation.runs.selectors import get_project
from evaluation.specs.flags import whole_number
from review.calibration.anchors import PASSED_RESULTS, ShiftSummary, active_passed_results, run_check, summarize_checks
from review.calibration.openings import hold_out_openings, open_hold_outs
from review.calibration.overview import GoldOverview, find_gold_set, overview, readable_labels
from review.calibration.retirement import HoldoutResult, holdout_results, retire
from review.calibration.versions import freeze, grow, secret_seed
from review.models import AnchorCheck, GoldSet
from review.statistics.gold_split import Split


class Command(SiteCommand):
    """``gold_set create|grow NAME --run ID`` · ``gold_set show|export|check|open|retire NAME``."""

    help = "Create and manage gold sets: blind first ratings, split once into examples, validation and hold-out."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        for verb, help_text in (
            ("create", "freeze the labels of a run"),
            ("grow", "add labels of another run, or new ones of the same run"),
        ):
            subparser = verbs.add_parser(verb, help=help_text)
            subparser.add_argument("name")
            subparser.add_argument("--run", type=int, required=True, metavar="ID", help="run whose answers were rated")
            if verb == "create":
                subparser.add_argument("--metrics", nargs="+", default=[], metavar="NAME", help="default: all rated")
                help_text = "random seed of the split; default: random and secret"
                subparser.add_argument("--seed", type=whole_number(), help=help_text)
            subparser.add_argument("--project", default="", help="name of the project; must be the run's")
            add_format_option(subparser)
        show_parser = verbs.add_parser("show", help="print labels, missing labels and the error budget left")
        show_parser.add_argument("name", metavar="NAME[@V]")
        add_format_option(show_parser)
        export_parser = verbs.add_parser("export", help="write labels of examples and validation as JSON lines")
        export_parser.add_argument("name", metavar="NAME[@V]")
        export_parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        check_parser = verbs.add_parser("check", help="judge anchors of accepted versions again to detect drift")
        check_parser.add_argument("name", metavar="NAME")
        add_format_option(check_parser)
        retire_parser = verbs.add_parser("retire", help="end hold-out tests and make their results visible in show")
        retire_parser.add_argument("name", metavar="NAME")
        retire_parser.add_argument("--reason", required=True, help="reason, stored permanently")
        add_format_option(retire_parser)
        open_parser = verbs.add_parser("open", help="let a lead read sealed labels on pages and by REST; recorded")
        open_parser.add_argument("name", metavar="NAME")
        open_parser.add_argument(
            "--by", required=True, metavar="USER", help="user name of the lead, who may then not draft prompts"
        )
        for subparser in (show_parser, export_parser, check_parser, retire_parser, open_parser):
            subparser.add_argument("--project", default="", help="name of the project; required if there are several")

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(self):
            if options["verb"] in {"create", "grow"}:
                run = get_run(options["run"])
                named_project = get_project(options["project"]) if options["project"] else run.project
                if named_project.pk != run.project_id:
                    raise CommandError(f"Run {run.pk} belongs to {run.project.name}, not to {named_project.name}.")
                if options["verb"] == "grow":
                    gold_set = grow(run, options["name"], by=None)
                else:
                    seed = secret_seed() if options["seed"] is None else options["seed"]
                    metrics = options["metrics"]
                    gold_set = freeze(run, options["name"], by=None, metrics=metrics, seed=seed)
                self._show(gold_set, options["format"])
                return
            project: Project = get_project(options["project"])
            gold_set = find_gold_set(project.pk, options["name"])
            if options["verb"] == "open":
                self._open(project, options["by"])
                return
            if options["verb"] == "retire":
                retire(gold_set, by=None, reason=options["reason"])
            if options["verb"] in {"show", "retire"}:
                self._show(gold_set, options["format"])
            elif options["verb"] == "check":
                self._check(gold_set, options["format"])
            else:
                self._export(gold_set, options["output"])

    def _show(self, gold_set: GoldSet, form: str) -> None:
        summary = overview(gold_set)
        results = holdout_results(gold_set) if summary.retired else []
        openings = list(hold_out_openings(gold_set))
        if form == "json":
            details: dict[str, object] = {"openings": [_opening_fields(row) for row in openings]}
            details |= {"hold_out": [asdict(result) for result in results]} if summary.retired else {}
            print_json(self, asdict(summary) | details)
            return
        self.stdout.write(f"{summary.name}@{summary.version} {summary.content_hash[:12]}")
        print_table(self, ["metric", *map(str, Split), "loss between experts"], _metric_rows(summary))
        for metric in summary.metrics:
            if not metric.is_testable:
                needed = f"{metric.needed_answers} rated answers in {metric.needed_groups} groups"
                self.stdout.write(
                    f"{metric.metric}: a hold-out test needs {needed}; there are {metric.answers} in {metric.groups}"
                )
        self.stdout.write(f"hold-out tests: {summary.looks}; error budget left: {summary.left:.4f} of 0.05")
        for row in openings:
            barred = f"; may not draft or propose {', '.join(row.families)}" if row.ended_at is None else ""
            self.stdout.write(f"full figures opened by {row.created_by} on {row.created_at:%Y-%m-%d}{barred}")
        if summary.retired:
            self.stdout.write("retired; results of its hold-out tests:")
            print_table(
                self,
                ["test", "version", "compared with", "metric", "n", "loss", "reduction", "95% CI"],
                map(_result_row, results),
            )
        for change in summary.changed:
            self.stderr.write(f"changed since it was frozen: {change}", self.style.ERROR)

    def _open(self, project: Project, name: str) -> None:
        lead = User.objects.filter(username=name).first()
        if lead is None or not may(lead, project.pk, Action.ACTIVATE):
            raise CommandError(f"{name} is not a lead of {project.name}.")
        for opening in open_hold_outs(project, by=lead):
            families = ", ".join(opening.families)
            self.stdout.write(f"{opening.lineage} is open to {name}, who may not draft or propose {families}")

    def _check(self, gold_set: GoldSet, form: str) -> None:
        passed_results = active_passed_results(
            PASSED_RESULTS.filter(test__project=gold_set.project_id, test__lineage=gold_set.name)
        )
        if not passed_results:
            raise CommandError(f"No version accepted on {gold_set.name} is active.")
        check_ids = [run_check(passed_result, by=None).pk for passed_result in passed_results]
        summaries = summarize_checks(AnchorCheck.objects.filter(pk__in=check_ids))
        if form == "json":
            print_json(self, [asdict(summary) for summary in summaries])
            return
        for summary in summaries:
            self.stdout.write(
                f"{summary.rubric} of {summary.judge}: check {summary.number}, answered by {summary.model or 'unknown'}"
            )
            if summary.shifts:
                print_table(
                    self, ["metric", "n", "change", "95% CI", "drift"], [_shift_row(shift) for shift in summary.shifts]
                )
            else:
                self.stdout.write("too few verdicts to detect judge drift")

    def _export(self, gold_set: GoldSet, path: Path) -> None:
        rows = readable_labels(gold_set)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        self.stdout.write(f"{len(rows)} labels of examples and validation")


def _opening_fields(row: HoldOutOpening) -> dict[str, object]:
    person = str(row.created_by)
    return {"opened_by": person, "families": row.families, "created_at": row.created_at, "ended_at": row.ended_at}


def _result_row(result: HoldoutResult) -> list[object]:
    ends = "–" if result.low is None or result.high is None else f"{result.low:+.3f} to {result.high:+.3f}"
    figures = [result.answers, f"{result.candidate_loss:.3f}", f"{result.lower_by:+.3f}", ends]
    return [f"{result.look} {result.outcome}", result.candidate, result.against, result.metric, *figures]


def _shift_row(shift: ShiftSummary) -> list[object]:
    ends = "–" if shift.low is None or shift.high is None else f"{shift.low:+.3f} to {shift.high:+.3f}"
    return [shift.metric, shift.answers, f"{shift.change:+.3f}", ends, "yes" if shift.moved else "no"]


def _metric_rows(summary: GoldOverview) -> list[list[object]]:
    rows: list[list[object]] = []
    for metric in summary.metrics:
        parts = [
            f"{split_counts.answers} ({split_counts.groups} groups, {split_counts.seen} seen)"
            for split_counts in metric.parts.values()
        ]
        rows.append([metric.metric, *parts, "–" if metric.expert_loss is None else f"{metric.expert_loss:.3f}"])
    return rows
