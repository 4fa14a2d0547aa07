"""Formula of an overall score, and the scores that other shipped profiles give the same values."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language, gettext

from evaluation.metrics.catalogue import is_rule_metric, rule_metric_named
from evaluation.profiles.arithmetic import FigureLabel
from evaluation.profiles.spec import ProfileSpec, shipped_profiles
from review.reports.inputs import ReportInputs
from review.reports.lines import MetricLine
from review.reports.scores import score_side

# Smaller differences are invisible at three decimals.
MIN_VISIBLE_DIFFERENCE = 0.0005


@dataclass(frozen=True, slots=True)
class Formula:
    """Weights of the run's profile by metric, and its ``constant``.

    The metric ``whole`` alone scores questions of ``whole_of`` categories. ``others`` are differing judge-only scores
    under other shipped profiles. ``lacking`` profiles need metrics that the run did not compute."""

    profile: str
    weights: tuple[tuple[str, float], ...]
    constant: float
    whole: str
    whole_of: tuple[str, ...]
    others: tuple[tuple[str, float], ...]
    lacking: tuple[str, ...]


def formula_of(basis: ReportInputs) -> Formula | None:
    """Formula of the run's profile. ``None`` if the profile sums no parts."""
    profile = basis.profile
    if not profile.parts:
        return None
    own_score = basis.machine.figure.value if basis.machine.outcome.label is FigureLabel.OVERALL_SCORE else None
    others: list[tuple[str, float]] = []
    lacking: list[str] = []
    for spec in shipped_profiles() if own_score is not None else ():
        if spec.name == profile.name or not spec.parts:
            continue
        value = _judge_only_score(basis, spec)
        if value is None:
            lacking.append(spec.name)
        elif own_score is not None and abs(value - own_score) >= MIN_VISIBLE_DIFFERENCE:
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


def _judge_only_score(basis: ReportInputs, spec: ProfileSpec) -> float | None:
    """Judge-only score under another profile. ``None`` if a metric is missing or was matched by other rules."""
    side = basis.sides.machine
    needed = {part.metric for part in spec.parts} | ({spec.whole_score.metric} if spec.whole_score else set())
    if needed - side.metrics.keys() or spec.matching != basis.profile.matching:
        return None
    score = score_side(spec, side)
    return score.figure.value if score.outcome.label is FigureLabel.OVERALL_SCORE else None


def formula_in_words(formula: Formula | None, metrics: tuple[MetricLine, ...]) -> str:
    """Profile and weighted sum in one line. Empty without a formula."""
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
    text = f"{formula.profile}: {' + '.join(terms)}"
    if formula.whole:
        whole = {"metric": title(formula.whole), "categories": ", ".join(formula.whole_of)}
        text += "; " + gettext("only %(metric)s for questions in: %(categories)s") % whole
    return text


def other_profiles_in_words(formula: Formula | None) -> str:
    """Differing judge-only scores under other shipped profiles."""
    return ", ".join(f"{name} {value:.3f}" for name, value in formula.others) if formula else ""
