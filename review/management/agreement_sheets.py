"""The agreement of a run as tables of texts."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from review.agreement.pages import variation_cards
from review.agreement.run_agreement import Agreement
from review.management.sheets import NOTHING, Sheet, number
from review.statistics.agreement.pair import PairAgreement

SHOWN = ("exact", "within_one", "mae", "bias", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic")


def agreement_sheets(found: Agreement) -> Iterator[Sheet]:
    """Judges against experts, experts among themselves, and where values vary."""
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
