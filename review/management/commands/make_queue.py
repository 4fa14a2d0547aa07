"""Create a review queue from one or several runs."""

import json
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.judges.shipped import metric_names
from evaluation.management.site_command import SiteCommand
from evaluation.messages import numbers
from evaluation.specs.flags import add_flags, number
from review.management.options import (
    add_queue_options,
    command_errors,
    find_reviewers,
    find_run,
    read_named_reviewers,
    read_queue_spec,
)
from review.models import ReviewQueue
from review.models.queue_spec import SETTINGS
from review.queues.creation import make_queue
from review.queues.criteria import select_criteria
from review.queues.design import DEFAULT_GUESS, SampleDesign, design_samples, draw_params_by_run, expected_interval
from review.queues.distribution import pick_answers
from review.queues.planning import PrecisionGoal, ReviewStaff, precision_goals, size_for_goal
from review.queues.preview import QueuePreview, queue_preview


class Command(SiteCommand):
    """``make_queue RUN… [--size 60] [--strategy stratified] [--metrics …] [--reviewers …]``: prints ``queue ID``."""

    help = "Draw answers of a run for review and open a queue of them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, nargs="+", help="one or several, whose answers are mixed")
        size = parser.add_mutually_exclusive_group()
        add_flags(size, [SETTINGS["size"]])
        size.add_argument(
            "--width", type=_parse_fraction, metavar="W", help="as many as an interval of W either way takes"
        )
        size.add_argument(
            "--difference",
            type=_parse_fraction,
            metavar="D",
            help="as many as find D between two runs four times in five",
        )
        parser.add_argument(
            "--guess",
            type=_parse_fraction,
            default=DEFAULT_GUESS,
            help="how far the judge is off, as a share of the scale",
        )
        add_queue_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="only say how much work it is and what it brings")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the expected effort and precision, and create the queue."""
        runs = [find_run(pk) for pk in options["run"]]
        with command_errors():
            metrics = select_criteria(runs, read_queue_spec(options), metric_names(runs, options["metrics"]))
            people = find_reviewers(runs[0], options["reviewers"])
            run_designs = design_samples(runs, metrics, options["size"], options["guess"])
            if options["width"] or options["difference"]:
                options["size"] = _required_size(
                    run_designs[runs[0].pk], options, read_queue_spec(options).share_per_criterion(len(metrics))
                )
                run_designs = design_samples(runs, metrics, options["size"], options["guess"])
            spec, sharing = read_queue_spec(options), read_named_reviewers(options, people)
            params = draw_params_by_run(run_designs, spec, pick_answers(runs, options["answers"], options["questions"]))
            preview = queue_preview(runs, metrics, spec, reviewers=len(people), params=params)
            queue = None
            if not options["dry_run"]:
                names = [metric.name for metric in metrics]
                queue = make_queue(runs, spec, metrics=names, reviewers=people, named_reviewers=sharing, params=params)
        design, share = run_designs[runs[0].pk], spec.share_per_criterion(len(metrics))
        staff = ReviewStaff(len(people), spec.ratings_per_answer, preview.pace)
        self._print_preview(
            queue,
            preview,
            design,
            precision_goals(design, staff, options["width"], options["difference"], share),
            options,
        )

    def _print_preview(
        self,
        queue: ReviewQueue | None,
        preview: QueuePreview,
        design: SampleDesign,
        goal_rows: Sequence[PrecisionGoal],
        options: dict[str, Any],
    ) -> None:
        rotation = preview.rotation
        share = read_queue_spec(options).share_per_criterion(rotation.criteria if rotation else 1)
        expected = expected_interval(design, preview.single_sample, share)
        half_width = expected.half_width if expected else None
        if options["format"] == "json":
            facts = {
                "queue": queue.pk if queue else None,
                "name": queue.name if queue else None,
                "items": preview.items,
                "frame": preview.frame_size,
                "strata": preview.strata,
                "per_reviewer": preview.per_reviewer,
                "minutes_each": round(preview.seconds_per_reviewer / 60, 1),
                "expected_half_width": half_width,
                "guessed": design.errors.guessed if design.errors else None,
                "neyman": design.uses_neyman,
                "criteria_each": rotation.per_answer if rotation else None,
                "fewest_ratings": rotation.fewest_labels if rotation else None,
                "goals": [asdict(goal_row) for goal_row in goal_rows],
            }
            self.stdout.write(json.dumps(facts, ensure_ascii=False, allow_nan=False))
            return
        if queue is not None:
            self.stdout.write(f"queue {queue.pk}")
        facts = {"items": preview.items, "frame": preview.frame_size, "strata": preview.strata}
        self.stdout.write(_("%(items)d of %(frame)d answers from %(strata)d strata") % facts)
        work = {"each": preview.per_reviewer, "time": numbers.format_duration(preview.seconds_per_reviewer)}
        self.stdout.write(_("%(each)d ratings for each reviewer, about %(time)s") % work)
        if rotation:
            text = _("%(each)d of %(criteria)d criteria for each answer, in turn; at least %(labels)d ratings by each")
            self.stdout.write(
                text % {"each": rotation.per_answer, "criteria": rotation.criteria, "labels": rotation.fewest_labels}
            )
        if half_width == 0:
            self.stdout.write(_("every answer would be rated: the corrected score is exact for this run"))
        elif half_width is not None:
            self.stdout.write(
                _("expected interval of the corrected score: %(width).3f either way") % {"width": half_width}
            )
        for goal_row in goal_rows:
            goal = {"items": goal_row.items, "time": numbers.format_duration(goal_row.minutes_each * 60)}
            goal |= {"width": goal_row.half_width, "difference": goal_row.difference}
            # Without sampling nothing is estimated.
            text = _("  %(items)d answers, %(time)s each: exact for this run")
            if goal_row.half_width:
                text = _(
                    "  %(items)d answers, %(time)s each: %(width).3f either way, finds a difference of %(difference).3f"
                )
            self.stdout.write(text % goal)


def _required_size(design: SampleDesign, options: dict[str, Any], share: float) -> int:
    """Return the size that the requested width or difference needs.

    :raises CommandError: if it cannot be computed."""
    size = size_for_goal(design, options["width"], options["difference"], share)
    if size is None:
        text = _("Nothing is left to draw, or the criteria are no part of an overall score. Give a --size.")
        raise CommandError(text, returncode=2)
    return size


def _parse_fraction(text: str) -> float:
    """Parse a number above 0 and at most 1."""
    value = number(text)
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value
