"""Make a review queue from one or several runs."""

import json
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.judges.shipping import own_names
from evaluation.management.site_command import SiteCommand
from evaluation.messages import numbers
from evaluation.specs.flags import add_flags, number
from review.management.options import (
    add_queue_options,
    refusals,
    reviewers_of,
    run_named,
    sharing_of,
    spec_of,
)
from review.models import ReviewQueue
from review.models.queue_spec import SETTINGS
from review.queues.criteria import criteria_of
from review.queues.design import GUESS, Design, designs, expected_interval, told
from review.queues.making import make_queue
from review.queues.planning import Goal, Staff, goals, size_for
from review.queues.preview import QueuePreview, queue_preview
from review.queues.sharing import picked


class Command(SiteCommand):
    """``make_queue RUN… [--size 60] [--strategy stratified] [--metrics …] [--reviewers …]``: prints ``queue ID``."""

    help = "Draw answers of a run for review and open a queue of them."

    def add_arguments(self, parser: CommandParser) -> None:
        """What is drawn, who rates it, and how."""
        parser.add_argument("run", type=int, nargs="+", help="one or several, whose answers are mixed")
        size = parser.add_mutually_exclusive_group()
        add_flags(size, [SETTINGS["size"]])
        size.add_argument("--width", type=_positive, metavar="W", help="as many as an interval of W either way takes")
        size.add_argument(
            "--difference", type=_positive, metavar="D", help="as many as find D between two runs four times in five"
        )
        parser.add_argument(
            "--guess", type=_positive, default=GUESS, help="how far the judge is off, as a share of the scale"
        )
        add_queue_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="only say how much work it is and what it brings")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what it asks of people and what it is expected to bring, and make it."""
        runs = [run_named(one) for one in options["run"]]
        with refusals():
            metrics = criteria_of(runs, spec_of(options), own_names(runs, options["metrics"]))
            people = reviewers_of(runs[0], options["reviewers"])
            planned = designs(runs, metrics, options["size"], options["guess"])
            if options["width"] or options["difference"]:
                options["size"] = _size(planned[runs[0].pk], options, spec_of(options).share_asked(len(metrics)))
                planned = designs(runs, metrics, options["size"], options["guess"])
            spec, sharing = spec_of(options), sharing_of(options, people)
            params = told(planned, spec, picked(runs, options["answers"], options["questions"]))
            found = queue_preview(runs, metrics, spec, reviewers=len(people), params=params)
            queue = None
            if not options["dry_run"]:
                names = [metric.name for metric in metrics]
                queue = make_queue(runs, spec, metrics=names, reviewers=people, sharing=sharing, params=params)
        first, share = planned[runs[0].pk], spec.share_asked(len(metrics))
        staff = Staff(len(people), spec.ratings_each, found.pace)
        self._say(queue, found, first, goals(first, staff, options["width"], options["difference"], share), options)

    def _say(
        self,
        queue: ReviewQueue | None,
        found: QueuePreview,
        planned: Design,
        takes: Sequence[Goal],
        options: dict[str, Any],
    ) -> None:
        turns = found.in_turn
        share = spec_of(options).share_asked(turns.criteria if turns else 1)
        expected = expected_interval(planned, found.drawn, share)
        half_width = expected.half_width if expected else None
        if options["format"] == "json":
            facts = {
                "queue": queue.pk if queue else None,
                "name": queue.name if queue else None,
                "items": found.items,
                "frame": found.frame,
                "strata": found.strata,
                "per_reviewer": found.per_reviewer,
                "minutes_each": round(found.seconds_each / 60, 1),
                "expected_half_width": half_width,
                "guessed": planned.errors.guessed if planned.errors else None,
                "neyman": planned.neyman,
                "criteria_each": turns.each if turns else None,
                "fewest_ratings": turns.labels if turns else None,
                "goals": [asdict(one) for one in takes],
            }
            self.stdout.write(json.dumps(facts, ensure_ascii=False, allow_nan=False))
            return
        if queue is not None:
            self.stdout.write(f"queue {queue.pk}")
        facts = {"items": found.items, "frame": found.frame, "strata": found.strata}
        self.stdout.write(_("%(items)d of %(frame)d answers from %(strata)d strata") % facts)
        work = {"each": found.per_reviewer, "time": numbers.about(found.seconds_each)}
        self.stdout.write(_("%(each)d ratings for each reviewer, about %(time)s") % work)
        if turns:
            text = _("%(each)d of %(criteria)d criteria for each answer, in turn; at least %(labels)d ratings by each")
            self.stdout.write(text % {"each": turns.each, "criteria": turns.criteria, "labels": turns.labels})
        if half_width == 0:
            self.stdout.write(_("every answer would be rated: the corrected score is exact for this run"))
        elif half_width is not None:
            self.stdout.write(
                _("expected interval of the corrected score: %(width).3f either way") % {"width": half_width}
            )
        for one in takes:
            goal = {"items": one.items, "time": numbers.about(one.minutes_each * 60)}
            goal |= {"width": one.half_width, "difference": one.difference}
            text = _("  %(items)d answers, %(time)s each: exact for this run")  # where nothing is estimated
            if one.half_width:
                text = _(
                    "  %(items)d answers, %(time)s each: %(width).3f either way, finds a difference of %(difference).3f"
                )
            self.stdout.write(text % goal)


def _size(planned: Design, options: dict[str, Any], share: float) -> int:
    """The size that what is asked for takes.

    :raises CommandError: where that cannot be told.
    """
    size = size_for(planned, options["width"], options["difference"], share)
    if size is None:
        text = _("Nothing is left to draw, or the criteria are no part of an overall score. Give a --size.")
        raise CommandError(text, returncode=2)
    return size


def _positive(text: str) -> float:
    """A number above 0 and at most 1."""
    value = number(text)
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value
