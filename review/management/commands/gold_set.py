"""Gold sets: freeze experts' labels, look at what there is and what is missing, let one grow, write the open parts."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.accounts.access import may
from evaluation.core.roles import Action
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, refusals, run_numbered, table
from evaluation.models import HoldOutOpening, Project, User
from evaluation.runs.selectors import project_named
from review.calibration.anchors import PROOFS, ShiftTold, check_now, proofs_in_force, told_of
from review.calibration.freezing import freeze, grow, secret_seed
from review.calibration.opening import open_hold_outs, openings_of
from review.calibration.overview import GoldOverview, gold_set_named, overview, shown_items
from review.calibration.retiring import HeldOut, hold_out_figures, retire
from review.models import AnchorCheck, GoldSet
from review.statistics.gold_split import Split


class Command(SiteCommand):
    """``gold_set create|grow NAME --run ID`` · ``gold_set show|export|check|open|retire NAME``."""

    help = (
        "Freeze the blind first ratings of a run's answers as labels, split once into examples, validation, hold-out."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """One parser for each verb."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        for verb, what in (("create", "freeze the labels of a run"), ("grow", "add those of another run, or new ones")):
            making = verbs.add_parser(verb, help=what)
            making.add_argument("name")
            making.add_argument("--run", type=int, required=True, metavar="ID", help="run whose answers were rated")
            if verb == "create":
                making.add_argument("--metrics", nargs="+", default=[], metavar="NAME", help="else all that were rated")
                making.add_argument("--seed", type=int, help="seed of the split; random by default, and secret")
            making.add_argument("--project", default="", help="the run's; refused where the run is of another")
            add_format(making)
        show = verbs.add_parser("show", help="what it holds, what it lacks, what its looks have spent")
        show.add_argument("name", metavar="NAME[@V]")
        add_format(show)
        export = verbs.add_parser("export", help="labels of examples and validation as JSON lines")
        export.add_argument("name", metavar="NAME[@V]")
        export.add_argument("--output", type=Path, required=True, metavar="FILE")
        check = verbs.add_parser("check", help="judge the anchors of what was proved on it again: has the judge moved?")
        check.add_argument("name", metavar="NAME")
        add_format(check)
        retiring = verbs.add_parser("retire", help="no looks any more; show tells from then on what looks saw")
        retiring.add_argument("name", metavar="NAME")
        retiring.add_argument("--reason", required=True, help="kept for ever")
        add_format(retiring)
        opening = verbs.add_parser("open", help="let a lead read sealed labels on pages and in REST; recorded")
        opening.add_argument("name", metavar="NAME")
        opening.add_argument("--by", required=True, metavar="USER", help="the lead, who may no longer draft prompts")
        for one in (show, export, check, retiring, opening):
            one.add_argument("--project", default="", help="needed where there are several projects")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do the one verb."""
        with refusals(self):
            if options["verb"] in {"create", "grow"}:
                run = run_numbered(options["run"])
                named = project_named(options["project"]) if options["project"] else run.project
                if named.pk != run.project_id:
                    raise CommandError(f"Run {run.pk} belongs to {run.project.name}, not to {named.name}.")
                if options["verb"] == "grow":
                    made = grow(run, options["name"], by=None)
                else:
                    seed = secret_seed() if options["seed"] is None else options["seed"]
                    metrics = options["metrics"]
                    made = freeze(run, options["name"], by=None, metrics=metrics, seed=seed)
                self._show(made, options["format"])
                return
            project: Project = project_named(options["project"])
            found = gold_set_named(project.pk, options["name"])
            if options["verb"] == "open":
                self._open(project, options["by"])
                return
            if options["verb"] == "retire":
                retire(found, by=None, reason=options["reason"])
            if options["verb"] in {"show", "retire"}:
                self._show(found, options["format"])
            elif options["verb"] == "check":
                self._check(found, options["format"])
            else:
                self._export(found, options["output"])

    def _show(self, gold_set: GoldSet, form: str) -> None:
        whole = overview(gold_set)
        seen = hold_out_figures(gold_set) if whole.retired else []
        openings = list(openings_of(gold_set))
        if form == "json":
            more: dict[str, object] = {"openings": [_opening(row) for row in openings]}
            more |= {"hold_out": [asdict(one) for one in seen]} if whole.retired else {}
            as_json(self, asdict(whole) | more)
            return
        self.stdout.write(f"{whole.name}@{whole.version} {whole.content_hash[:12]}")
        table(self, ["metric", *map(str, Split), "an expert's loss"], _rows(whole))
        for one in whole.metrics:
            if one.lacks_groups or one.lacks_answers:
                lacks = f"{one.lacks_groups} groups, {one.lacks_answers} answers"
                self.stdout.write(f"{one.metric}: no look yet, the hold-out lacks {lacks}")
        self.stdout.write(f"{whole.looks} looks taken, {whole.left:.4f} of 0.05 left")
        for row in openings:
            barred = f"; may not draft or propose {', '.join(row.families)}" if row.ended_at is None else ""
            self.stdout.write(f"full figures opened by {row.created_by} on {row.created_at:%Y-%m-%d}{barred}")
        if whole.retired:
            self.stdout.write("retired; what its looks saw of the hold-out:")
            table(self, ["look", "version", "against", "metric", "n", "loss", "lower by", "95%"], map(_held, seen))
        for place in whole.changed:
            self.stderr.write(f"changed since it was frozen: {place}", self.style.ERROR)

    def _open(self, project: Project, name: str) -> None:
        lead = User.objects.filter(username=name).first()
        if lead is None or not may(lead, project.pk, Action.ACTIVATE):
            raise CommandError(f"{name} is no lead of {project.name}.")
        for opening in open_hold_outs(project, by=lead):
            families = ", ".join(opening.families)
            self.stdout.write(f"{opening.lineage} is open to {name}, who may not draft or propose {families}")

    def _check(self, gold_set: GoldSet, form: str) -> None:
        proofs = proofs_in_force(PROOFS.filter(look__project=gold_set.project_id, look__lineage=gold_set.name))
        if not proofs:
            raise CommandError(f"No version that was proved on {gold_set.name} is in force.")
        done = [check_now(proof, by=None).pk for proof in proofs]
        told = told_of(AnchorCheck.objects.filter(pk__in=done))
        if form == "json":
            as_json(self, [asdict(one) for one in told])
            return
        for one in told:
            self.stdout.write(f"{one.rubric} of {one.judge}: check {one.number}, answered by {one.model or 'unknown'}")
            if one.shifts:
                table(self, ["metric", "n", "moved by", "95%", "moved"], [_moved(shift) for shift in one.shifts])
            else:
                self.stdout.write("too few verdicts to tell whether the judge moved")

    def _export(self, gold_set: GoldSet, path: Path) -> None:
        rows = shown_items(gold_set)
        try:
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{path}: {error}") from error
        self.stdout.write(f"{len(rows)} labels of examples and validation")


def _opening(row: HoldOutOpening) -> dict[str, object]:
    person = str(row.created_by)
    return {"opened_by": person, "families": row.families, "created_at": row.created_at, "ended_at": row.ended_at}


def _held(one: HeldOut) -> list[object]:
    ends = "–" if one.low is None or one.high is None else f"{one.low:+.3f} to {one.high:+.3f}"
    figures = [one.answers, f"{one.candidate_loss:.3f}", f"{one.lower_by:+.3f}", ends]
    return [f"{one.look} {one.outcome}", one.candidate, one.against, one.metric, *figures]


def _moved(one: ShiftTold) -> list[object]:
    ends = "–" if one.low is None or one.high is None else f"{one.low:+.3f} to {one.high:+.3f}"
    return [one.metric, one.answers, f"{one.change:+.3f}", ends, "yes" if one.moved else "no"]


def _rows(whole: GoldOverview) -> list[list[object]]:
    rows: list[list[object]] = []
    for one in whole.metrics:
        parts = [f"{of.answers} ({of.groups} groups, {of.seen} seen)" for of in one.parts.values()]
        rows.append([one.metric, *parts, "–" if one.expert_loss is None else f"{one.expert_loss:.3f}"])
    return rows
