"""Page of the standing score: sentences, chart and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import get_language, gettext, ngettext

from evaluation.messages import numbers
from review.charts.forest import Figure as ChartFigure
from review.charts.forest import Forest, ForestRow, Shape, forest
from review.reports.figure import withheld_reason
from review.standing.selectors import MetricDrift, Release, StandingHistory
from review.statistics.standing import MIN_NEVER_RATED_LABELS, TuningTest


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """A row of the table. ``tuning`` says what the test found, empty in the first release."""

    release: Release
    tuning: str
    is_tuned: bool


@dataclass(frozen=True, slots=True)
class DriftRow:
    """Change of the experts on one metric."""

    title: str
    change: MetricDrift


@dataclass(frozen=True, slots=True)
class StandingPage:
    """Content of ``review/standing/standing.html``. ``tuning`` explains the test of the newest release where it fired,
    ``rechecks`` what is due, else empty."""

    sentence: str
    tuning: str
    rechecks: str
    chart: Forest | None
    rows: tuple[ReleaseRow, ...]
    drift: tuple[DriftRow, ...]

    @property
    def newest(self) -> Release | None:
        return self.rows[-1].release if self.rows else None


def standing_page(history: StandingHistory) -> StandingPage:
    """Build the page."""
    language = get_language() or "en"
    rows = tuple(
        ReleaseRow(release, _tuning_word(release.tuning), bool(release.tuning and release.tuning.fired))
        for release in history.releases
    )
    newest = history.releases[-1] if history.releases else None
    return StandingPage(
        sentence=score_sentence(history),
        tuning=tuning_sentence(newest) if newest and newest.tuning and newest.tuning.fired else "",
        rechecks=_recheck_sentence(newest) if newest else "",
        chart=_chart(history.releases) if history.releases else None,
        rows=rows,
        drift=tuple(DriftRow(change.title.in_language(language), change) for change in history.drift.values()),
    )


def score_sentence(history: StandingHistory) -> str:
    """Sentence on the newest release."""
    if not history.releases:
        return gettext("No run over these answers has finished with this profile yet.")
    release = history.releases[-1]
    facts = {"system": release.system, "standing": release.standing, "answers": release.answers}
    if release.score.value is None:
        text = ngettext(
            "%(system)s has no standing score yet: experts have rated %(standing)d of its %(answers)d answer in "
            "earlier releases, and too few of the others.",
            "%(system)s has no standing score yet: experts have rated %(standing)d of its %(answers)d answers in "
            "earlier releases, and too few of the others.",
            release.answers,
        )
        return text % facts
    facts["score"] = numbers.format_number(release.score.value, 2)
    facts["interval"] = numbers.format_interval(release.score.low, release.score.high, 2)
    score = gettext(
        "Experts would give %(system)s a score of %(score)s on these questions (95%% interval %(interval)s)."
    )
    return f"{score % facts} {_cost_sentence(release)}"


def _cost_sentence(release: Release) -> str:
    facts = {"rated": release.rated, "standing": release.standing}
    if not release.standing:
        text = ngettext(
            "Experts rated %(rated)d answer for this.", "Experts rated %(rated)d answers for this.", release.rated
        )
        return text % facts
    text = ngettext(
        "Experts rated %(rated)d answer for this. %(standing)d answers are the same as in earlier releases and keep "
        "their ratings.",
        "Experts rated %(rated)d answers for this. %(standing)d answers are the same as in earlier releases and keep "
        "their ratings.",
        release.rated,
    )
    return text % facts


def tuning_sentence(release: Release) -> str:
    """What the test for tuning found, and what follows for questions like these."""
    tuning = release.tuning
    if tuning is None:
        return ""
    facts = {
        "rated": numbers.format_share(tuning.rated_changed / max(1, tuning.rated)),
        "unrated": numbers.format_share(tuning.unrated_changed / max(1, tuning.unrated)),
        "least": MIN_NEVER_RATED_LABELS,
    }
    found = gettext(
        "Rated answers were changed more often (%(rated)s) than others with the same judge score (%(unrated)s), so the "
        "system seems tuned to the ratings. The standing score still holds for these questions."
    )
    if release.similar_questions.value is None:
        follows = gettext(
            "There is no score for new questions yet. In this release, rate answers to at least %(least)d questions "
            "that experts never rated."
        )
        return f"{found % facts} {follows % facts}"
    facts["score"] = numbers.format_number(release.similar_questions.value, 2)
    facts["interval"] = numbers.format_interval(release.similar_questions.low, release.similar_questions.high, 2)
    follows = gettext(
        "For questions like these, the questions that nobody had rated before give %(score)s (95%% interval "
        "%(interval)s)."
    )
    return f"{found % facts} {follows % facts}"


def _tuning_word(tuning: TuningTest | None) -> str:
    if tuning is None:
        return ""
    if tuning.p_value is None:
        return gettext("can't tell")
    return gettext("tuned") if tuning.fired else gettext("not found")


def _recheck_sentence(release: Release) -> str:
    """Number of standing answers to rate again; empty if none are due."""
    due = release.recheck_due - release.rechecked
    if due <= 0:
        return ""
    text = ngettext(
        "Have %(count)d answer with an earlier rating rated again, to check that experts still rate the same.",
        "Have %(count)d answers with earlier ratings rated again, to check that experts still rate the same.",
        due,
    )
    return text % {"count": due}


def _chart(releases: Sequence[Release]) -> Forest:
    return forest(
        [
            ForestRow(
                label=release.name,
                shape=Shape.CORRECTED,
                figure=None
                if release.score.value is None
                else ChartFigure(release.score.value, release.score.low, release.score.high),
                withheld=withheld_reason(release.score) if release.score.withheld else "",
                href=reverse("run", args=[release.run_id]),
            )
            for release in releases
        ]
    )
