"""Terminal tables of a run's agreement."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from review.agreement.pages import variation_cards
from review.agreement.run_agreement import RunAgreement
from review.management.sheets import DASH, Sheet, number
from review.statistics.agreement.pair import PairAgreement

STATISTICS = ("exact", "within_one", "mae", "bias", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic")


def agreement_sheets(agreement: RunAgreement) -> Iterator[Sheet]:
    """Yield judges against experts, experts among themselves, and sources of variation."""
    rows = [(judge.author, judge.metric, judge.agreement) for judge in agreement.judges]
    rows += [
        (f"{judge.author} · {part}", judge.metric, pair)
        for judge in agreement.judges
        for part, pair in judge.parts.items()
    ]
    yield Sheet("Judges against experts", ("judge", "metric", "n", *STATISTICS), [_row(*row) for row in rows], 2)
    experts = [
        (
            expert.metric,
            str(len(expert.agreement.raters)),
            str(expert.agreement.n),
            number(expert.agreement.statistics["krippendorff_alpha_nominal"].value),
            number(expert.agreement.statistics["krippendorff_alpha_interval"].value),
            number(expert.agreement.statistics["cohen_kappa"].value),
        )
        for expert in agreement.experts
    ]
    header = ("metric", "experts", "n", "alpha nominal", "alpha interval", "mean pairwise kappa")
    yield Sheet("Experts among themselves", header, experts)
    yield from _variation(agreement)


def _variation(agreement: RunAgreement) -> Iterator[Sheet]:
    """Yield the sources of variation with advice."""
    for card in variation_cards({variation.metric: variation.to_dict() for variation in agreement.variation or ()}):
        rows = [(row.title, row.missing or row.variance, row.share or DASH) for row in card.rows]
        title = f"{card.title}: {card.advice}" if card.advice else card.title
        yield Sheet(title, (_("Source"), _("variance"), _("share")), rows)


def _row(author: str, metric: str, pair: PairAgreement) -> tuple[str, ...]:
    cells = []
    for name in STATISTICS:
        text = number(pair.statistics[name].value, 6)
        if name in pair.intervals:
            low, high = pair.intervals[name]
            text += f" ({low:.3f} – {high:.3f})"
        cells.append(text if pair.statistics[name].value is not None else DASH)
    return author, metric, str(pair.n), *cells
