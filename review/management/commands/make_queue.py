"""Make a review queue from one or several runs."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.core.registry import JUDGED
from evaluation.models import MetricDefinition, Run, User
from evaluation.wording import numbers
from review.management.asking import refusals, run_named
from review.management.queue_options import add_queue_options, reviewers_of, sharing_of
from review.models import ReviewQueue
from review.plans.design import Design, expected_interval
from review.plans.errors import GUESS
from review.plans.goals import Goal, Staff, goals, size_for
from review.plans.several import designs, told
from review.queues.draws import steering_metrics
from review.queues.making import MOST_REVIEWS, make_queue, metrics_of
from review.queues.picking import picked
from review.queues.preview import QueuePreview, queue_preview
from review.queues.sharing import Sharing
from review.statistics.sampling.member import DrawParams, Strategy


class Command(BaseCommand):
    """``make_queue RUN… [--size 60] [--strategy stratified] [--metrics …] [--reviewers …]``: prints ``queue ID``."""

    help = "Draw answers of a run for review and open a queue of them."

    def add_arguments(self, parser: CommandParser) -> None:
        """What is drawn, who rates it, and how."""
        parser.add_argument("run", type=int, nargs="+", help="one or several, whose answers are mixed")
        size = parser.add_mutually_exclusive_group()
        size.add_argument("--size", type=int, default=60, help="answers to draw")
        size.add_argument("--width", type=_positive, metavar="W", help="as many as an interval of W either way takes")
        size.add_argument(
            "--difference", type=_positive, metavar="D", help="as many as find D between two runs four times in five"
        )
        parser.add_argument(
            "--guess", type=_positive, default=GUESS, help="how far the judge is off, as a share of the scale"
        )
        parser.add_argument("--strategy", choices=[str(one) for one in Strategy], default=str(Strategy.STRATIFIED))
        parser.add_argument("--metrics", nargs="+", default=[], help="criteria; all that a judge scored, if not named")
        parser.add_argument("--reviews-needed", type=int, default=1, help=f"reviewers per answer, 1 to {MOST_REVIEWS}")
        parser.add_argument("--mode", choices=ReviewQueue.Mode.values, default=str(ReviewQueue.Mode.BLIND))
        parser.add_argument(
            "--reveal", choices=ReviewQueue.Reveal.values, default=str(ReviewQueue.Reveal.ON_DIFFERENCE)
        )
        parser.add_argument("--reveal-threshold", type=float, default=2.0, help="levels apart that show the judge")
        parser.add_argument(
            "--adjudicate-from", type=float, default=2.0, help="levels between two reviewers a lead decides on; 0: none"
        )
        parser.add_argument("--fail-below", type=float, help="for fails_plus_share: judge scores under it are fails")
        parser.add_argument("--share", type=float, help="for fails_plus_share: share of the other answers, 0 to 1")
        parser.add_argument("--answers", type=int, nargs="+", default=[], help="for hand_picked: ids of the answers")
        parser.add_argument("--questions", nargs="+", default=[], help="for hand_picked: ids of the questions")
        parser.add_argument("--seed", type=int)
        add_queue_options(parser)
        parser.add_argument("--name", default="", help="reviewers read it: no system, judge or strategy")
        parser.add_argument("--guideline", default="")
        parser.add_argument("--dry-run", action="store_true", help="only say how much work it is and what it brings")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what it asks of people and what it is expected to bring, and make it."""
        runs = [run_named(one) for one in options["run"]]
        with refusals():
            metrics = metrics_of(runs, options["metrics"] or [m.name for m in _judged(runs[0])])
            people = reviewers_of(runs[0], options["reviewers"])
            planned = designs(runs, metrics, options["size"], options["guess"])
            if options["width"] or options["difference"]:
                options["size"] = _size(planned[runs[0].pk], options)
                planned = designs(runs, metrics, options["size"], options["guess"])
            sharing = sharing_of(options, people)
            keys = picked(runs, options["answers"], options["questions"])
            params = told(planned, fail_below=options["fail_below"], share=options["share"], keys=keys)
            found = queue_preview(
                runs,
                metrics,
                strategy=options["strategy"],
                size=options["size"],
                reviewers=len(people),
                reviews_needed=options["reviews_needed"],
                sharing=sharing,
                params=params,
            )
            names = [metric.name for metric in metrics]
            queue = None if options["dry_run"] else _make(runs, names, people, sharing, params, options)
        first = planned[runs[0].pk]
        staff = Staff(len(people), sharing.ratings_each(options["reviews_needed"]), found.pace)
        self._say(queue, found, first, goals(first, staff, options["width"], options["difference"]), options)

    def _say(
        self,
        queue: ReviewQueue | None,
        found: QueuePreview,
        planned: Design,
        takes: Sequence[Goal],
        options: dict[str, Any],
    ) -> None:
        expected = expected_interval(planned, found.drawn)
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


def _size(planned: Design, options: dict[str, Any]) -> int:
    """The size that what is asked for takes.

    :raises CommandError: where that cannot be told.
    """
    size = size_for(planned, options["width"], options["difference"])
    if size is None:
        text = _("Nothing is left to draw, or the criteria are no part of an overall score. Give a --size.")
        raise CommandError(text, returncode=2)
    return size


def _positive(text: str) -> float:
    """A number above 0 and at most 1."""
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is no number") from None
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value


def _judged(run: Run) -> list[MetricDefinition]:
    """What a judge scored; the rules' metrics are rated only where somebody names them."""
    return [metric for metric in steering_metrics(run) if metric.kind in JUDGED] or list(steering_metrics(run))


def _make(
    runs: list[Run],
    metrics: list[str],
    people: list[User],
    sharing: Sharing,
    params: dict[int, DrawParams],
    options: dict[str, Any],
) -> ReviewQueue:
    as_given = ("name", "strategy", "size", "seed", "reviews_needed", "mode", "reveal", "reveal_threshold")
    more = ("reveal_share", "adjudicate_from", "guideline", "lease_minutes", "deadline")
    return make_queue(
        runs,
        metrics=metrics,
        reviewers=people,
        hide_system=not options["show_system"],
        sharing=sharing,
        params=params,
        **{name: options[name] for name in (*as_given, *more)},
    )
