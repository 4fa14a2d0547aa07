"""Test a judge prompt version on the hold-out of a gold set."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from evaluation.criteria.rubrics import find_version, rubric_scope
from evaluation.judges.shipped import judge_row
from evaluation.management.output import add_format_option, command_errors, print_json
from evaluation.management.site_command import SiteCommand
from evaluation.runs.selectors import get_project
from review.calibration.holdout_rules import HoldoutForecast, forecast_holdout_test
from review.calibration.holdout_tests import run_holdout_test
from review.calibration.overview import find_gold_set
from review.models import HoldoutTestResult
from review.statistics.acceptance import Claim

NOT_ACCEPTED = 100


class Command(SiteCommand):
    """``test_prompt FAMILY@V --judge J --gold SET``: exit 0 if accepted, which activates the version; otherwise 100."""

    help = "Run a hold-out test: judge the hold-out with a version and the active one; print whether it is accepted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("version", metavar="FAMILY@V")
        parser.add_argument("--judge", default="", help="name of the judge; default: the project's, or the baseline")
        parser.add_argument("--gold", required=True, metavar="NAME", help="gold set to test on, in its newest version")
        parser.add_argument("--claim", choices=[*Claim], default=str(Claim.BETTER), help="claim to test")
        parser.add_argument(
            "--beside",
            default="",
            metavar="JUDGE",
            help="judge with an accepted version that this judge must not be worse than (with --claim not_worse)",
        )
        parser.add_argument("--repeat", type=int, default=1, help="judgements per answer; their mean counts")
        parser.add_argument(
            "--added-since",
            type=int,
            default=1,
            metavar="V",
            help="test only groups added since this version of the gold set, with an error budget of their own",
        )
        parser.add_argument("--dry-run", action="store_true", help="only forecast the test; uses no error budget")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the hold-out test, or forecast it with ``--dry-run``."""
        with command_errors(self):
            project = get_project(options["project"])
            judge = judge_row(project, options["judge"])
            version = find_version(project.pk, rubric_scope(judge, "").language, options["version"])
            gold_set = find_gold_set(project.pk, options["gold"])
            since = options["added_since"]
            if options["dry_run"]:
                self._print_forecasts(forecast_holdout_test(gold_set, judge, version, since=since), options["format"])
                return
            parameters = {"claim": Claim(options["claim"]), "repeat": options["repeat"], "since": since}
            reference_judge = judge_row(project, options["beside"]) if options["beside"] else None
            summary = run_holdout_test(gold_set, judge, version, by=None, reference_judge=reference_judge, **parameters)
        if options["format"] == "json":
            print_json(self, asdict(summary))
        else:
            self.stdout.write(str(HoldoutTestResult.Outcome(summary.outcome).label))
            self.stdout.write(
                f"hold-out test {summary.number} of {summary.looks}; error budget left: {summary.left:.4f} of 0.05"
            )
        if summary.outcome != HoldoutTestResult.Outcome.ACCEPTED:
            raise SystemExit(NOT_ACCEPTED)

    def _print_forecasts(self, forecasts: tuple[HoldoutForecast, ...], form: str) -> None:
        if form == "json":
            print_json(self, [asdict(forecast) for forecast in forecasts])
            return
        if not forecasts:
            self.stdout.write("No forecast yet. Judge validation answers with this version and the active one first.")
        for forecast in forecasts:
            expected = forecast.forecast
            if expected is None:
                self.stdout.write(
                    f"{forecast.metric}: both versions agree on all {forecast.validation} validation answers"
                )
                continue
            self.stdout.write(
                f"{forecast.metric}: loss reduction {expected.improvement:+.3f} on {forecast.validation} validation "
                f"answers; hold-out test {forecast.step} detects a reduction of {expected.detectable:.3f} in 80% of "
                f"cases (this one in {expected.power:.0%}), and harm in a category of 20 from {expected.harm:.3f}"
            )
            if forecast.residuals is not None:
                self.stdout.write(_residuals(forecast))


def _residuals(forecast: HoldoutForecast) -> str:
    residuals = forecast.residuals
    if residuals is None:
        return ""
    variances = f"residual variance {residuals.candidate:.3f}, of the active version {residuals.active:.3f}"
    text = f"{forecast.metric}: {variances}"
    return f"{text}; significantly larger, so a hold-out test would not accept it" if forecast.noisier else text
