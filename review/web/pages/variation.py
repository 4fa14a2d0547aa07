"""Where ratings vary, in words: a table of sources, what would tell the others apart, and what to spend next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.wording import numbers
from review.statistics.agreement.variance import Missing, Source
from review.statistics.precision.spending import Spend

SOURCES: Mapping[Source, tuple[str | Promise, str | Promise]] = {
    Source.ANSWERS: (_("answers"), _("how far answers truly differ")),
    Source.REVIEWERS: (_("reviewers"), _("how lenient or strict each reviewer is")),
    Source.TASTE: (_("reviewer and answer"), _("how far reviewers differ on single answers")),
    Source.REST: (_("the rest"), _("what the same reviewer would say at another time")),
    Source.JUDGE: (_("judge"), _("how far the judge is off on an answer, whenever asked")),
    Source.NOISE: (_("judge's noise"), _("how far the judge's repeats scatter")),
}
NEEDS: Mapping[Missing, str | Promise] = {
    Missing.NEEDS_OVERLAP: _("not known: have two reviewers rate some of the same answers"),
    Missing.NEEDS_TWO_REVIEWERS: _("not known: only one reviewer has rated"),
    Missing.NEEDS_HIDDEN_REPEATS: _("not known apart: show reviewers some answers a second time"),
    Missing.NEEDS_JUDGE_REPEATS: _("not known: have the judge score every answer more than once (--repeat)"),
    Missing.NEEDS_RATINGS: _("not known: too few answers are rated"),
}
ADVICE: Mapping[Spend, str | Promise] = {
    Spend.QUESTIONS: _("Spend next on more questions: %(share)s of the mean's variance comes from how answers differ."),
    Spend.REVIEWERS: _("Spend next on more reviewers: %(share)s of the mean's variance is how strict they are."),
    Spend.RATINGS: _(
        "Spend next on more ratings: %(share)s of the mean's variance comes from the judge's errors on single answers "
        "and from single ratings."
    ),
    Spend.REPEATS: _("Spend next on repeats of the judge: %(share)s of the mean's variance is its noise."),
}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source of variance. ``missing`` instead of figures where it cannot be told apart."""

    title: str
    meaning: str
    variance: str
    share: str
    missing: str


@dataclass(frozen=True, slots=True)
class VariationCard:
    """One metric's sources; ``advice`` is empty where nothing is known or nothing varies."""

    title: str
    rows: tuple[SourceRow, ...]
    design: str
    advice: str


def variation_cards(found: Mapping[str, Any]) -> tuple[VariationCard, ...]:
    """The cards of ``variance`` as the agreement figures have it, by metric."""
    return tuple(_card(one) for one in found.values())


def _card(one: Mapping[str, Any]) -> VariationCard:
    title = one["title"]["ko" if (get_language() or "en").startswith("ko") else "en"]
    rows = tuple(row for source in Source if (row := _row(source, one)))
    return VariationCard(title, rows, _design(one["design"]), _advice(one["next"]))


def _row(source: Source, one: Mapping[str, Any]) -> SourceRow | None:
    title, meaning = map(str, SOURCES[source])
    variance, why = one["variance"].get(str(source)), one["missing"].get(str(source))
    if variance is not None:
        share = one["share"].get(str(source))
        return SourceRow(title, meaning, numbers.plain(variance, 3), "" if share is None else numbers.share(share), "")
    return SourceRow(title, meaning, "", "", str(NEEDS[Missing(why)])) if why else None


def _design(design: Mapping[str, Any]) -> str:
    facts = {
        "answers": design["answers"],
        "reviewers": design["reviewers"],
        "ratings": numbers.plain(design["ratings_per_answer"], 1),
        "judged": design["judged"],
        "repeats": numbers.plain(design["judge_repeats"], 1),
    }
    return (
        gettext(
            "From %(answers)d answers rated %(ratings)s times each by %(reviewers)d reviewers, and %(judged)d answers "
            "judged %(repeats)s times each; unweighted."
        )
        % facts
    )


def _advice(following: Mapping[str, Any]) -> str:
    first = following["spend_on"]
    if first is None:
        return ""
    return str(ADVICE[Spend(first)]) % {"share": numbers.share(following["share"][first])}
