"""Preferences of people and judges over the pairs of a comparison."""

import json
from typing import Any

from django.core.management.base import CommandParser

from contrib.pairs.figures import PairFigures, pair_figures
from contrib.pairs.services import find_pair_set
from evaluation.management.site_command import SiteCommand
from review.management.options import add_resampling_arguments
from review.management.sheets import Sheet, number, write
from review.statistics.agreement.bootstrap import Resampling

HEADER = ("rater", "pairs", "A", "=", "B", "mean", "low", "high", "rho with experts", "orders disagree")


class Command(SiteCommand):
    """``pairs COMPARISON [--format json]``."""

    help = "Print preferences of people and judges, and their agreement."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("comparison", help="id or name of the comparison")
        add_resampling_arguments(parser)
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        pair_set = find_pair_set(options["comparison"])
        resampling = Resampling(resamples=options["resamples"], seed=options["seed"])
        figures = pair_figures(pair_set, resampling=resampling)
        if options["format"] == "json":
            self.stdout.write(
                json.dumps(
                    {name: metric_figures.to_dict() for name, metric_figures in figures.items()}, ensure_ascii=False
                )
            )
            return
        write(self.stdout, [Sheet(name, HEADER, _rows(metric_figures)) for name, metric_figures in figures.items()])


def _rows(figures: PairFigures) -> list[tuple[str, ...]]:
    return [
        (
            source,
            *(str(count) for count in (summary.n, summary.a, summary.ties, summary.b)),
            *(number(value) for value in (summary.mean, summary.low, summary.high)),
            number(figures.agreement.get(source, {}).get("spearman")),
            number(figures.disagreeing_orders.get(source)),
        )
        for source, summary in {"experts": figures.experts, **figures.judges}.items()
    ]
