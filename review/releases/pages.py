"""View models of the release difference on the comparison page."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext, ngettext

from evaluation.messages import numbers
from review.releases.selectors import ReleaseDifference
from review.reports.figure import notes, withheld_reason


@dataclass(frozen=True, slots=True)
class ReleaseCard:
    """What changed between two releases, what is known about it, and how much to rate, in words.

    ``plans`` is empty if nothing is left to rate. ``unplanned`` warns of a further round."""

    changed: str
    known: str
    difference: str
    notes: tuple[str, ...]
    plans: tuple[str, ...]
    guess: str
    unplanned: str
    waiting: str
    queue_id: int | None


def release_card(release: ReleaseDifference) -> ReleaseCard:
    """Build the section of two runs over the same questions."""
    figure = release.figure
    return ReleaseCard(
        changed=_changed_sentence(release),
        known=_known_sentence(release) if release.changed else "",
        difference=_difference_sentence(release) if figure.value is not None else withheld_reason(figure),
        notes=tuple(notes(figure)) if figure.value is not None else (),
        plans=tuple(_plan_sentence(plan.questions, plan.margin) for plan in release.plans),
        guess=gettext("Rough estimate, as there are too few ratings yet.") if release.guessed else "",
        unplanned=_unplanned_sentence() if release.rounds_left == 0 else "",
        waiting=_waiting_sentence(release) if release.waiting else "",
        queue_id=release.queue_id,
    )


def _changed_sentence(release: ReleaseDifference) -> str:
    params = {"changed": release.changed, "questions": release.questions}
    sentence = ngettext(
        "The answer to %(changed)d of %(questions)d questions changed. Equal answers differ by exactly 0, so only "
        "changed ones need ratings.",
        "The answers to %(changed)d of %(questions)d questions changed. Equal answers differ by exactly 0, so only "
        "changed ones need ratings.",
        release.changed,
    )
    return sentence % params


def _known_sentence(release: ReleaseDifference) -> str:
    params = {"both": release.rated_both, "one": release.rated_one, "none": release.unrated}
    sentence = gettext(
        "Rated in both runs by the same reviewers: %(both)d. Rated in one run, or by different reviewers: %(one)d. Not "
        "rated: %(none)d."
    )
    return sentence % params


def _difference_sentence(release: ReleaseDifference) -> str:
    figure = release.figure
    params = {
        "value": numbers.format_signed(figure.value or 0.0, 3),
        "interval": numbers.format_interval(figure.low, figure.high, 3),
    }
    if not figure.has_width:
        return gettext("Difference on these questions: %(value)s, exactly.") % params
    return gettext("Difference on these questions: %(value)s (%(interval)s).") % params


def _plan_sentence(questions: int, margin: float) -> str:
    params = {"count": questions, "margin": numbers.format_number(margin, 2)}
    sentence = ngettext(
        "%(count)d question in both runs for a margin of ±%(margin)s",
        "%(count)d questions in both runs for a margin of ±%(margin)s",
        questions,
    )
    return sentence % params


def _waiting_sentence(release: ReleaseDifference) -> str:
    sentence = ngettext(
        "%(count)d sampled question isn't rated in both runs yet.",
        "%(count)d sampled questions aren't rated in both runs yet.",
        release.waiting,
    )
    return sentence % {"count": release.waiting}


def _unplanned_sentence() -> str:
    return gettext("No further round was planned. Another queue narrows the interval, but then there is no verdict.")
