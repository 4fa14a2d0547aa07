"""The formula behind an overall score, and the scores that other shipped profiles give the same values."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language, gettext

from evaluation.metrics.catalogue import is_rule_metric, rule_metric_named
from evaluation.profiles.arithmetic import Label
from evaluation.profiles.spec import ProfileSpec, shipped_profiles
from review.reports.gathering import Gathered
from review.reports.lines import MetricLine
from review.reports.scores import score_side

NOTICEABLE = 0.0005  # below it two scores are the same in three digits


@dataclass(frozen=True, slots=True)
class Formula:
    """The weights of the run's profile by metric, with its ``constant`` and the metric that alone scores questions of
    ``whole_of`` categories. ``others`` are the judge-only scores of other shipped profiles where they differ;
    ``lacking`` are shipped profiles that need metrics the run did not compute."""

    profile: str
    weights: tuple[tuple[str, float], ...]
    constant: float
    whole: str
    whole_of: tuple[str, ...]
    others: tuple[tuple[str, float], ...]
    lacking: tuple[str, ...]


def formula_of(basis: Gathered) -> Formula | None:
    """The formula of a run's profile; ``None`` where the profile sums no parts."""
    profile = basis.profile
    if not profile.parts:
        return None
    own = basis.machine.figure.value if basis.machine.outcome.label is Label.OVERALL_SCORE else None
    others: list[tuple[str, float]] = []
    lacking: list[str] = []
    for spec in shipped_profiles() if own is not None else ():
        if spec.name == profile.name or not spec.parts:
            continue
        value = _score(basis, spec)
        if value is None:
            lacking.append(spec.name)
        elif own is not None and abs(value - own) >= NOTICEABLE:
            others.append((spec.name, value))
    whole = profile.whole_score
    return Formula(
        str(basis.run.profile_version),
        tuple((part.metric, part.weight) for part in profile.parts),
        profile.constant,
        whole.metric if whole else "",
        whole.categories if whole else (),
        tuple(others),
        tuple(lacking),
    )


def _score(basis: Gathered, spec: ProfileSpec) -> float | None:
    """The judge-only score under another profile; ``None`` where the run lacks one of its metrics, or computed it by
    other rules."""
    side = basis.sides.machine
    needed = {part.metric for part in spec.parts} | ({spec.whole_score.metric} if spec.whole_score else set())
    if needed - side.metrics.keys() or spec.matching != basis.profile.matching:
        return None
    found = score_side(spec, side)
    return found.figure.value if found.outcome.label is Label.OVERALL_SCORE else None


def formula_in_words(formula: Formula | None, metrics: tuple[MetricLine, ...]) -> str:
    """Profile and weighted sum, in one line; empty where nothing is summed."""
    if formula is None:
        return ""
    language = get_language() or "en"
    titles = {line.name: line.title.in_language(language) for line in metrics}

    def title(name: str) -> str:
        if name not in titles and is_rule_metric(name):
            return rule_metric_named(name).spec.title.in_language(language)
        return titles.get(name, name)

    terms = [f"{weight:.2f} × {title(name)}" for name, weight in formula.weights]
    if formula.constant:
        terms.append(f"{formula.constant:.2f}")
    said = f"{formula.profile}: {' + '.join(terms)}"
    if formula.whole:
        whole = {"metric": title(formula.whole), "categories": ", ".join(formula.whole_of)}
        said += "; " + gettext("%(metric)s alone for questions of: %(categories)s") % whole
    return said


def other_profiles_in_words(formula: Formula | None) -> str:
    """The judge-only scores under shipped profiles that give another one; empty where none does."""
    return ", ".join(f"{name} {value:.3f}" for name, value in formula.others) if formula else ""
