"""What people and judges prefer over the pairs of a comparison."""

import json
from typing import Any

from django.core.management.base import CommandParser

from contrib.pairs.figures import PairFigures, pair_figures
from contrib.pairs.making import pair_set_named
from evaluation.management.site_command import SiteCommand
from review.management.sheets import Sheet, number, write
from review.statistics.agreement.bootstrap import Resampling

HEADER = ("who", "pairs", "A", "=", "B", "mean", "low", "high", "rho with experts", "orders disagree")


class Command(SiteCommand):
    """``pairs COMPARISON [--format json]``."""

    help = "Print what people and judges prefer, and how far judges agree with people."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which comparison, and how intervals are made."""
        parser.add_argument("comparison", help="id or name of the comparison")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--resamples", type=int, default=2000)
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print."""
        found = pair_set_named(options["comparison"])
        resampling = Resampling(resamples=options["resamples"], seed=options["seed"])
        figures = pair_figures(found, resampling=resampling)
        if options["format"] == "json":
            self.stdout.write(json.dumps({name: one.to_dict() for name, one in figures.items()}, ensure_ascii=False))
            return
        write(self.stdout, [Sheet(name, HEADER, _rows(one)) for name, one in figures.items()])


def _rows(figures: PairFigures) -> list[tuple[str, ...]]:
    return [
        (
            who,
            *(str(count) for count in (said.n, said.a, said.ties, said.b)),
            *(number(value) for value in (said.mean, said.low, said.high)),
            number(figures.agreement.get(who, {}).get("spearman")),
            number(figures.disagreeing_orders.get(who)),
        )
        for who, said in {"experts": figures.experts, **figures.judges}.items()
    ]
