"""Let a version of a judge prompt prove itself on the hold-out of a gold set."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from evaluation.criteria.rubrics import slot_of, version_named
from evaluation.judges.shipping import judge_row
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, refusals
from evaluation.runs.selectors import project_named
from review.calibration.accepting import Foreseen, foresee
from review.calibration.looking import accept
from review.calibration.overview import gold_set_named
from review.models import LookResult
from review.statistics.acceptance import Claim

NOT_ACCEPTED = 100


class Command(SiteCommand):
    """``accept FAMILY@V --judge J --gold SET``: exit 0 when accepted (the version is then in force), 100 when not."""

    help = "Take a look: judge the hold-out by a version and the one in force; says whether it is accepted."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to test, for whom, on what."""
        parser.add_argument("version", metavar="FAMILY@V")
        parser.add_argument("--judge", default="", help="name of a judge; the project's own, else the baseline")
        parser.add_argument("--gold", required=True, metavar="NAME", help="gold set; its newest version is tested on")
        parser.add_argument("--claim", choices=[*Claim], default=str(Claim.BETTER), help="what it is to show")
        parser.add_argument(
            "--beside",
            default="",
            metavar="JUDGE",
            help="a judge proved on the gold set, from which this one may not fall off (with --claim not_worse)",
        )
        parser.add_argument("--repeat", type=int, default=1, help="judgements of each answer, whose mean counts")
        parser.add_argument(
            "--added-since",
            type=int,
            default=1,
            metavar="V",
            help="test only groups added since that version of the gold set, which have a budget of their own",
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what a look could tell; spends nothing")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Foresee, or look."""
        with refusals(self):
            project = project_named(options["project"])
            judge = judge_row(project, options["judge"])
            version = version_named(project.pk, slot_of(judge, "").language, options["version"])
            gold_set = gold_set_named(project.pk, options["gold"])
            since = options["added_since"]
            if options["dry_run"]:
                self._foresee(foresee(gold_set, judge, version, since=since), options["format"])
                return
            asked = {"claim": Claim(options["claim"]), "repeat": options["repeat"], "since": since}
            beside = judge_row(project, options["beside"]) if options["beside"] else None
            told = accept(gold_set, judge, version, by=None, beside=beside, **asked)
        if options["format"] == "json":
            as_json(self, asdict(told))
        else:
            self.stdout.write(str(LookResult.Outcome(told.outcome).label))
            self.stdout.write(f"look {told.number}; {told.looks} looks taken, {told.left:.4f} of 0.05 left")
        if told.outcome != LookResult.Outcome.ACCEPTED:
            raise SystemExit(NOT_ACCEPTED)

    def _foresee(self, ahead: tuple[Foreseen, ...], form: str) -> None:
        if form == "json":
            as_json(self, [asdict(one) for one in ahead])
            return
        if not ahead:
            self.stdout.write("nothing to foresee by: judge validation answers by this version and by the one in force")
        for one in ahead:
            said = one.forecast
            if said is None:
                self.stdout.write(f"{one.metric}: both versions say the same of {one.validation} validation answers")
                continue
            self.stdout.write(
                f"{one.metric}: loss {said.improvement:+.3f} lower on {one.validation} validation answers; as look "
                f"{one.step} an improvement of {said.detectable:.3f} is found in 4 of 5 cases, this one in "
                f"{said.power:.0%}; harm in a category of 20 from {said.harm:.3f} on"
            )
            if one.residuals is not None:
                self.stdout.write(_residuals(one))


def _residuals(one: Foreseen) -> str:
    found = one.residuals
    if found is None:
        return ""
    said = f"{one.metric}: residual variance {found.candidate:.3f}, of the version in force {found.active:.3f}"
    return f"{said}; shown to be larger, so a look would not accept it" if one.noisier else said
