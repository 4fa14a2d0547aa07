"""Create a review queue from one or several runs."""

import json
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.judges.shipped import metric_names
from evaluation.management.site_command import SiteCommand
from evaluation.messages import numbers
from evaluation.specs.flags import add_flags, number
from review.evidence.answers import new_seed
from review.management.options import (
    add_queue_options,
    command_errors,
    find_reviewers,
    find_run,
    read_named_reviewers,
    read_queue_spec,
)
from review.models.queue_spec import SETTINGS
from review.queues.creation import make_queue
from review.queues.criteria import select_criteria
from review.queues.design import DEFAULT_GUESS, SampleDesign, design_samples, draw_params_by_run, unrated_range
from review.queues.distribution import pick_answers
from review.queues.outcome import expected_after_review, scores_after_review, sufficient_size
from review.queues.planning import PrecisionGoal, ReviewStaff, precision_goals, size_for_goal
from review.queues.preview import queue_preview
from review.reports.figure import Figure, withheld_reason


class Command(SiteCommand):
    """``make_queue RUN… [--size 60] [--strategy stratified] [--metrics …] [--reviewers …]``: prints ``queue ID``."""

    help = "Sample answers of one or several runs for review and open a queue."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, nargs="+", help="one or several runs; their answers are mixed")
        size = parser.add_mutually_exclusive_group()
        add_flags(size, [SETTINGS["size"]])
        size.add_argument("--width", type=_parse_fraction, metavar="W", help="sample enough answers for a margin of ±W")
        size.add_argument(
            "--difference",
            type=_parse_fraction,
            metavar="D",
            help="sample enough answers to detect a difference of D between two runs in 80%% of cases",
        )
        parser.add_argument(
            "--guess",
            type=_parse_fraction,
            default=DEFAULT_GUESS,
            help="assumed error of the judge, as a share of the scale",
        )
        add_queue_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="only print the expected effort and precision")
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
            if spec.seed is None:
                spec = spec.model_copy(update={"seed": new_seed()})
            params = draw_params_by_run(run_designs, spec, pick_answers(runs, options["answers"], options["questions"]))
            preview = queue_preview(runs, metrics, spec, reviewers=people, params=params)
            bases = {pk: design.basis for pk, design in run_designs.items()}
            figures = scores_after_review(bases, metrics, spec, preview.plan)
            size = None
            if any(figure.withheld for figure in figures.values()):
                reviewer_ids = [person.pk for person in people]
                size = sufficient_size(bases, runs, metrics, spec, preview.plan, params, reviewer_ids)
            queue = None
            if not options["dry_run"]:
                names = [metric.name for metric in metrics]
                queue = make_queue(runs, spec, metrics=names, reviewers=people, named_reviewers=sharing, params=params)
        design, share = run_designs[runs[0].pk], spec.share_per_criterion(len(metrics))
        staff = ReviewStaff(len(people), spec.ratings_per_answer, preview.pace)
        widening = unrated_range(design.basis, figures[runs[0].pk])
        goals = precision_goals(design, staff, options["width"], options["difference"], share, widening)
        expected = expected_after_review(design, figures[runs[0].pk], preview.plan, share) if len(runs) == 1 else None
        facts = {
            "queue": queue.pk if queue else None,
            "name": queue.name if queue else None,
            "items": preview.items,
            "frame": preview.frame_size,
            "strata": preview.strata,
            "per_reviewer": preview.per_reviewer,
            "minutes_each": round(preview.seconds_per_reviewer / 60, 1),
            "expected_half_width": expected.half_width if expected else None,
            "withheld": {str(pk): figure.withheld for pk, figure in figures.items() if figure.withheld},
            "sufficient_size": size,
            "guessed": design.errors.guessed if design.errors else None,
            "neyman": design.uses_neyman,
            "criteria": len(metrics),
            "criteria_each": preview.criteria_per_answer if preview.criteria_per_answer < len(metrics) else None,
            "goals": [asdict(goal) for goal in goals],
            "exposed": {person.username: count for person, count in preview.exposed.items()},
        }
        if options["format"] == "json":
            self.stdout.write(json.dumps(facts, ensure_ascii=False, allow_nan=False))
            return
        for line in [*_effort_lines(facts), *_outcome_lines(facts, figures), *map(_goal_line, goals)]:
            self.stdout.write(line)


def _effort_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts["queue"] is not None:
        yield f"queue {facts['queue']}"
    yield _("%(items)d of %(frame)d answers from %(strata)d strata") % facts
    time = numbers.format_duration(facts["minutes_each"] * 60)
    yield _("%(each)d ratings per reviewer, about %(time)s") % {"each": facts["per_reviewer"], "time": time}
    if facts["criteria_each"]:
        yield _("%(criteria_each)d of %(criteria)d criteria per answer, in rotation") % facts
    for name, count in facts["exposed"].items():
        text = _("%(name)s has seen judge scores for %(count)d of these answers, so those ratings won't be blind")
        yield text % {"name": name, "count": count}


def _outcome_lines(facts: Mapping[str, Any], figures: Mapping[int, Figure]) -> Iterator[str]:
    for pk, figure in figures.items():
        if figure.withheld:
            text = _("run %(run)d: no corrected overall score from this sample. %(why)s")
            yield text % {"run": pk, "why": withheld_reason(figure)}
        elif parts := figure.partly_corrected:
            text = _("run %(run)d: partly corrected, because nobody rates %(parts)s")
            yield text % {"run": pk, "parts": ", ".join(parts)}
    if facts["sufficient_size"] is not None:
        yield _("%(sufficient_size)d answers are enough for a corrected overall score") % facts
    if facts["expected_half_width"] == 0:
        yield _("every answer would be rated: the corrected score is exact for this run")
    elif facts["expected_half_width"] is not None:
        yield _("expected margin of the corrected score: ±%(expected_half_width).3f") % facts


def _goal_line(goal: PrecisionGoal) -> str:
    # Without sampling nothing is estimated.
    text = _("  %(items)d answers, %(time)s per reviewer: exact for this run")
    if goal.half_width and goal.difference is None:
        text = _("  %(items)d answers, %(time)s per reviewer: ±%(width).3f")
    elif goal.half_width:
        text = _("  %(items)d answers, %(time)s per reviewer: ±%(width).3f, detects a difference of %(difference).3f")
    time = numbers.format_duration(goal.minutes_each * 60)
    return text % {"items": goal.items, "time": time, "width": goal.half_width, "difference": goal.difference}


def _required_size(design: SampleDesign, options: dict[str, Any], share: float) -> int:
    """Return the size that the requested width or difference needs.

    :raises CommandError: if it cannot be computed."""
    size = size_for_goal(design, options["width"], options["difference"], share)
    if size is None:
        text = _("No answers are left to sample, or the criteria aren't part of an overall score. Set --size.")
        raise CommandError(text, returncode=2)
    return size


def _parse_fraction(text: str) -> float:
    """Parse a number above 0 and at most 1."""
    value = number(text)
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value
