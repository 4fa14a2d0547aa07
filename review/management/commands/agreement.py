"""Print how far judges and experts agree."""

import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils.translation import gettext as _

from review.management.options import run_named
from review.management.sheets import NOTHING, Sheet, number, write
from review.results.run_agreement import Agreement, By, agreement_of
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.pair import PairAgreement
from review.web.pages.agreement import variation_cards

SHOWN = ("exact", "within_one", "mae", "bias", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic")


class Command(BaseCommand):
    """``agreement RUN [--format json] [--by category|period] [--seed N] [--resamples N]``."""

    help = "Print the agreement of every judge with the experts, and of the experts among themselves."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run and how intervals are made."""
        parser.add_argument("run", type=int)
        parser.add_argument("--format", choices=["text", "json"], default="text")
        parser.add_argument("--by", choices=[str(By.CATEGORY), str(By.PERIOD)], default="")
        parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")
        parser.add_argument("--resamples", type=int, default=2000, help="of the bootstrap; 0 for no intervals")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print."""
        resampling = Resampling(options["resamples"], options["seed"]) if options["resamples"] > 0 else None
        found = agreement_of(run_named(options["run"]), resampling=resampling, by=By(options["by"]))
        if options["format"] == "json":
            self.stdout.write(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
        elif not found.judges and not found.experts:
            self.stdout.write("no blind expert ratings yet")
        else:
            write(self.stdout, _sheets(found))


def _sheets(found: Agreement) -> Iterator[Sheet]:
    rows = [(one.author, one.metric, one.agreement) for one in found.judges]
    rows += [(f"{one.author} · {part}", one.metric, pair) for one in found.judges for part, pair in one.parts.items()]
    yield Sheet("Judges against experts", ("judge", "metric", "n", *SHOWN), [_row(*row) for row in rows], 2)
    experts = [
        (
            one.metric,
            str(len(one.agreement.raters)),
            str(one.agreement.n),
            number(one.agreement.statistics["krippendorff_alpha_nominal"].value),
            number(one.agreement.statistics["krippendorff_alpha_interval"].value),
            number(one.agreement.statistics["cohen_kappa"].value),
        )
        for one in found.experts
    ]
    header = ("metric", "experts", "n", "alpha nominal", "alpha interval", "mean pairwise kappa")
    yield Sheet("Experts among themselves", header, experts)
    yield from _variation(found)


def _variation(found: Agreement) -> Iterator[Sheet]:
    """Where values vary, and what to spend next."""
    for card in variation_cards({one.metric: one.to_dict() for one in found.variation or ()}):
        rows = [(row.title, row.missing or row.variance, row.share or NOTHING) for row in card.rows]
        title = f"{card.title}: {card.advice}" if card.advice else card.title
        yield Sheet(title, (_("Source"), _("variance"), _("share")), rows)


def _row(author: str, metric: str, pair: PairAgreement) -> tuple[str, ...]:
    cells = []
    for name in SHOWN:
        text = number(pair.statistics[name].value, 6)
        if name in pair.intervals:
            low, high = pair.intervals[name]
            text += f" ({low:.3f} – {high:.3f})"
        cells.append(text if pair.statistics[name].value is not None else NOTHING)
    return author, metric, str(pair.n), *cells
