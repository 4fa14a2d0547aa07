"""A figure with its interval, or the reason why it is withheld, as JSON and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from django.utils.formats import date_format
from django.utils.timesince import timesince
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evaluation.messages.explanations import category_name, explain_reason
from review.statistics.agreement.statistic import Undefined
from review.statistics.correction.outcome import CorrectionOutcome, Estimate, Target
from review.statistics.paired_tests.gate import gate_confidence
from review.statistics.sampling.draw import ALL, CERTAIN, CHANGED, FAILS, REST, STANDING
from review.statistics.sampling.member import FAILED
from review.statistics.sampling.rotation import STRATUM_JOINER

# Rounding that keeps values readable: 0.762 instead of 0.7619999999999999.
DIGITS = 12
# Reason against a verdict on a corrected figure with an unplanned round.
UNPLANNED_ROUND = "unplanned_round"


_PLAIN = {str, int, bool}


def plain(value: Any) -> Any:
    """Convert to JSON values: numbers rounded to 12 digits, datetimes in ISO 8601, decimals as text."""
    # The most common case.
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Figure):
        return plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Withheld(StrEnum):
    """Reasons for a missing figure. ``evaluation/messages/reasons.py`` words them; profiles and correction add
    codes."""

    NOT_FINISHED = "not_finished"
    NO_VALUES = "no_values"
    NOT_REVIEWED = "not_reviewed"
    # Experts rated only equal answers of earlier answer sets.
    CARRIED = "carried"
    # Experts rated different parts of the two compared runs.
    NOT_BOTH_RATED = "not_both_rated"
    RULES_ONLY = "rules_only"
    PARTIAL = "partial"
    # The system was tuned to the ratings, and too few never-rated questions are rated now.
    TUNED = "tuned"
    # Labels have no mean; reports show their shares instead.
    CLASSES = "classes"


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval, or ``withheld`` with a reason code, followed by ``": "`` and names if it concerns any.

    ``n`` counts answers (for latency and means: those with a value). ``low`` and ``high`` are the 95% interval.
    ``target`` is ``questions_like_these`` (variation over questions, not judge error) or ``this_run`` (all answers of
    the run, of which a sample was rated). ``no_interval`` is the reason for a missing interval. ``worst`` and ``best``
    bound the figure if failed results were at the ends of their scales; ``None`` if nothing failed.
    ``extra`` has keys of corrected figures: ``labels, effective_labels, lambda, method, warnings, response_bounds,
    as_it_came, partly_corrected, missing``, ``rounds, looks, planned`` if they differ from
    one planned round, and ``assumption`` (by, at, bias) if a lead accepted one about unrated
    parts. ``any_time`` (low, high, labels) holds at every look while ratings come in. ``carried`` counts labels from
    equal answers of earlier answer sets."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    target: str = ""
    n: int = 0
    withheld: str = ""
    no_interval: str = ""
    worst: float | None = None
    best: float | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        if (self.value is None) != bool(self.withheld):
            raise ValueError("a figure has either a value or a reason")

    @property
    def partly_corrected(self) -> Mapping[str, float]:
        """Unrated judged parts with their weight in the score. Empty if the score is fully corrected."""
        return self.extra.get("partly_corrected") or _NOTHING

    @property
    def looks(self) -> int:
        """Planned number of looks that share the error of verdicts on a corrected figure."""
        return int(self.extra.get("looks", 1))

    @property
    def is_planned(self) -> bool:
        """False for a corrected figure with a round of ratings that was not planned, which allows no verdict."""
        return bool(self.extra.get("planned", True))

    @property
    def has_width(self) -> bool:
        """Return whether there is an interval, and not a single exact value."""
        return self.low is not None and self.high is not None and self.high - self.low > MIN_WIDTH

    def text(self, digits: int, to: str) -> str:
        """Format the value, with its interval in brackets if there is one. ``to`` separates the ends."""
        if self.low is None or self.high is None:
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} {to} {self.high:.{digits}f})"

    def to_dict(self) -> dict[str, Any]:
        """Stable JSON form: ``value, low, high, target, n`` or ``withheld``, with bounds only if results failed."""
        bounds = {} if self.worst is None else {"worst": self.worst, "best": self.best}
        if self.withheld:
            return {"withheld": self.withheld, "n": self.n, **bounds, **self.extra}
        document = {name: getattr(self, name) for name in ("value", "low", "high", "target", "n")}
        if self.no_interval:
            document["no_interval"] = self.no_interval
        return document | bounds | dict(self.extra)


def day_and_age(at: datetime) -> dict[str, str]:
    return {"day": date_format(localtime(at), "SHORT_DATE_FORMAT"), "age": timesince(at, depth=1)}


def withheld(reason: str, n: int = 0, **extra: Any) -> Figure:
    return Figure(n=n, withheld=reason, extra=extra)


_NO_TITLES: Mapping[str, str] = MappingProxyType({})
MAX_NAMED_STRATA = 5


def withheld_reason(figure: Figure, titles: Mapping[str, str] = _NO_TITLES) -> str:
    """Reason for a missing figure and what would provide it. ``titles`` name metrics."""
    return " ".join([explain_reason(figure.withheld), *_missing_sentences(figure.extra.get("missing") or {}, titles)])


def notes(figure: Figure, titles: Mapping[str, str] = _NO_TITLES) -> list[str]:
    """Warnings, nonresponse and its possible effect, and unrated parts."""
    sentences = [*round_notes(figure), *(explain_reason(str(code)) for code in figure.extra.get("warnings") or ())]
    bounds = figure.extra.get("response_bounds")
    if bounds:
        share = {"share": f"{100 * float(figure.extra.get('non_response') or 0.0):.0f}%"}
        share |= {"worst": f"{bounds[0]:.2f}", "best": f"{bounds[1]:.2f}"}
        text = _(
            "%(share)s of the assigned answers have no rating. The interval covers all of them being worst "
            "(%(worst)s) or best (%(best)s)."
        )
        sentences.append(text % share)
    if sentence := any_time_sentence(figure):
        sentences.append(sentence)
    if count := figure.extra.get("carried"):
        text = ngettext(
            "Includes %(count)d rating of an identical answer in an earlier answer set.",
            "Includes %(count)d ratings of identical answers in an earlier answer set.",
            count,
        )
        sentences.append(text % {"count": count})
    if count := figure.extra.get("built_on"):
        text = ngettext(
            "%(count)d rating was used to build the judge prompt, so it counts only for its own answer.",
            "%(count)d ratings were used to build the judge prompt, so each counts only for its own answer.",
            count,
        )
        sentences.append(text % {"count": count})
    if count := figure.extra.get("sealed"):
        text = ngettext(
            "The ratings of %(count)d locked answer are sealed and treated as missing at random.",
            "The ratings of %(count)d locked answers are sealed and treated as missing at random.",
            count,
        )
        sentences.append(text % {"count": count})
    if figure.partly_corrected:
        sentences.append(_partly_corrected(figure, titles))
    if metric_names := figure.extra.get("as_it_came"):
        names = ", ".join(titles.get(name, name) for name in metric_names)
        sentences.append(_("Exact by definition, so not corrected: %(names)s.") % {"names": names})
    return sentences


def round_notes(figure: Figure) -> list[str]:
    """Round of the review, weights of a composite, rounds left out, and the confidence that verdicts use."""
    rounds, sentences = figure.extra.get("rounds") or (), []
    if rounds:
        facts = {"count": len(rounds), "weights": ", ".join(f"{100 * entry['weight']:.0f}%" for entry in rounds)}
        sentences.append(_("Weighted mean of the estimates of %(count)d rounds of review (%(weights)s).") % facts)
    for number, entry in enumerate(rounds, 1):
        if entry.get("left_out"):
            facts = {"round": number, "why": explain_reason(entry["left_out"])}
            if entry["weight"]:
                sentences.append(_("Round %(round)d is left out for part of the score: %(why)s") % facts)
            else:
                sentences.append(_("Round %(round)d is left out: %(why)s") % facts)
    if not figure.is_planned:
        return [*sentences, explain_reason(UNPLANNED_ROUND)]
    if figure.looks > 1:
        confidence = f"{100 * gate_confidence(figure.looks):.4g}%"
        facts = {"round": max(1, len(rounds)), "looks": figure.looks, "confidence": confidence}
        text = _(
            "Round %(round)d of %(looks)d planned. Gates and comparisons use a %(confidence)s interval, so that a "
            "wrong verdict stays as rare with all rounds as with one."
        )
        sentences.append(text % facts)
    return sentences


def _partly_corrected(figure: Figure, titles: Mapping[str, str]) -> str:
    weights = figure.partly_corrected.items()
    parts = ", ".join(f"{titles.get(name, name)} ({100 * weight:.0f}%)" for name, weight in weights)
    if not (assumption := figure.extra.get("assumption")):
        text = _(
            "Partly corrected. Parts of the score without ratings: %(parts)s. The interval covers any "
            "score experts could give there."
        )
        return text % {"parts": parts}
    text = _(
        "Partly corrected. Parts of the score without ratings: %(parts)s. On %(day)s, %(who)s accepted "
        "that the judge is off there by at most %(bias)s of the scale, the most it may be off on rated "
        "parts. This was not measured."
    )
    day = date_format(localtime(datetime.fromisoformat(assumption["at"])), "SHORT_DATE_FORMAT")
    return text % {"parts": parts, "who": assumption["by"], "day": day, "bias": f"{100 * assumption['bias']:.0f}%"}


def any_time_sentence(figure: Figure) -> str:
    """Sentence on the interval that holds at every look while ratings come in. Empty otherwise."""
    if not (ends := figure.extra.get("any_time")):
        return ""
    facts = {"low": f"{ends['low']:.2f}", "high": f"{ends['high']:.2f}", "labels": ends["labels"]}
    return (
        _(
            "Ratings are still coming in (%(labels)d so far). This run's figure is between %(low)s and "
            "%(high)s in 95%% of such reviews, however often you check. You can stop once the interval is "
            "narrow enough."
        )
        % facts
    )


MIN_WIDTH = 1e-12
_STANDARD = ("value", "low", "high", "target", "n", "withheld")


def to_figure(outcome: CorrectionOutcome) -> Figure:
    """Convert an outcome of the correction. Fields that only corrections have go to ``extra``."""
    extra = {key: value for key, value in outcome.to_dict().items() if key not in _STANDARD}
    if isinstance(outcome, Estimate):
        figure = Figure(outcome.value, outcome.low, outcome.high, str(outcome.target), outcome.n, extra=extra)
        constant = outcome.target is Target.QUESTIONS_LIKE_THESE and outcome.high - outcome.low <= MIN_WIDTH
        # All answers of a run may be known, but never all questions like these.
        if constant:
            return replace(figure, low=None, high=None, no_interval=str(Undefined.NO_VARIATION))
        return figure
    return Figure(target=str(outcome.target), n=outcome.n, withheld=str(outcome.reason), extra=extra)


def add_constant(figure: Figure, constant: float) -> Figure:
    """Add a profile's constant to the figure and its interval."""
    if not constant or figure.value is None:
        return figure
    low, high = (None if end is None else end + constant for end in (figure.low, figure.high))
    return replace(figure, value=figure.value + constant, low=low, high=high)


def stratum_in_words(name: str) -> str:
    """Title of a stratum. Strata by score and category have generated names."""
    known = {
        CERTAIN: _("sampled earlier"),
        STANDING: _("rated as identical answers"),
        CHANGED: _("changed answers"),
        FAILED: _("the judge failed"),
        ALL: _("all answers"),
        FAILS: _("below the threshold"),
        REST: _("all others"),
    }
    if name in known:
        return known[name]
    if STRATUM_JOINER in name:
        return "; ".join(map(stratum_in_words, name.split(STRATUM_JOINER)))
    categories, _space, scores = name.rpartition(" ")
    category_names = ", ".join(category_name(category) for category in categories.split("|") if category)
    score_range = _("unscored") if scores == "unscored" else scores.replace("..", "–")
    return f"{category_names} {score_range}".strip()


def _missing_sentences(missing: Mapping[str, Any], titles: Mapping[str, str]) -> list[str]:
    sentences = []
    if count := missing.get("labels"):
        text = ngettext("%(count)d more rating is needed.", "%(count)d more ratings are needed.", count)
        sentences.append(text % {"count": count})
    if strata := missing.get("strata"):
        few = ", ".join(
            f"{stratum_in_words(name)} ({count})" for name, count in list(strata.items())[:MAX_NAMED_STRATA]
        )
        sentences.append(_("Ratings missing by stratum: %(strata)s.") % {"strata": few})
    if count := missing.get("answers"):
        text = ngettext(
            "%(count)d answer could not have been sampled.", "%(count)d answers could not have been sampled.", count
        )
        sentences.append(text % {"count": count})
    if share := missing.get("non_response"):
        sentences.append(_("Share: %(share)s.") % {"share": f"{100 * share:.0f}%"})
    parts_by_reason: dict[str, list[str]] = {}
    for name, why in (missing.get("components") or {}).items():
        reason = " ".join([explain_reason(why["reason"]), *_missing_sentences(why, titles)])
        parts_by_reason.setdefault(reason, []).append(titles.get(name, name))
    for reason, parts in parts_by_reason.items():
        sentences.append(_("%(part)s: %(why)s") % {"part": ", ".join(parts), "why": reason})
    return sentences
