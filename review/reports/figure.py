"""One figure with its interval, or the reason why it is withheld, as JSON and in words: what stands beside a corrected
figure is what is missing where it is withheld, else what a reader should know of it."""

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

from evaluation.messages.sentences import category_name, explain_reason
from review.statistics.agreement.statistic import Undefined
from review.statistics.correction.outcome import Estimate, Outcome, Target
from review.statistics.sampling.draw import ALL, CERTAIN, FAILS, REST
from review.statistics.sampling.member import FAILED
from review.statistics.sampling.turns import JOINED

DIGITS = 12  # values are exact to here and stay readable: 0.762 instead of 0.7619999999999999


_PLAIN = {str, int, bool}


def plain(value: Any) -> Any:
    """JSON values: numbers rounded to 12 digits, moments in ISO 8601, money as text without loss."""
    if value is None or type(value) in _PLAIN:  # most are
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
    """Why there is no figure; sentences in ``evaluation/messages/reasons.py``. Profile arithmetic and the correction
    have further codes of their own."""

    NOT_FINISHED = "not_finished"
    NO_VALUES = "no_values"
    NOT_REVIEWED = "not_reviewed"
    CARRIED = "carried"  # experts rated equal answers of earlier answer sets alone
    NOT_BOTH_RATED = "not_both_rated"  # a comparison in which experts rated other parts of one run than of the other
    RULES_ONLY = "rules_only"
    PARTIAL = "partial"
    CLASSES = "classes"  # labels have no mean; their shares stand instead


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval, or ``withheld`` with a reason code (after ``": "`` the names it is about).

    ``n`` counts the answers (latency and means: those with a value). ``low`` and ``high`` are the 95% interval,
    ``target`` what it is about (``questions_like_these``: variation over questions, not judge error; ``this_run``:
    all answers of the run, of which a sample was rated); without an interval ``no_interval`` says why. ``worst`` and
    ``best`` bound the figure had the failed results been at the ends of their scales; ``None`` where nothing failed.
    ``extra`` holds what only corrected figures have: ``labels, effective_labels, lambda, method, warnings,
    response_bounds, as_it_came, partly_corrected, missing``, and ``assumption`` (by, at, bias) where a lead accepted
    one about the parts that nobody rated. Of a metric whose ratings still come in ``any_time`` (low, high, labels)
    holds at every look; ``carried`` counts the labels that equal answers of earlier answer sets gave.
    """

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
        """Judged parts that nobody rated, with their weight in the score; empty where it is corrected wholly."""
        return self.extra.get("partly_corrected") or _NOTHING

    def text(self, digits: int, to: str) -> str:
        """The value with its interval in brackets where there is one, ``to`` between its ends."""
        if self.low is None or self.high is None:
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} {to} {self.high:.{digits}f})"

    def to_dict(self) -> dict[str, Any]:
        """The stable JSON form: ``value, low, high, target, n`` or ``withheld``; bounds only where something failed."""
        bounds = {} if self.worst is None else {"worst": self.worst, "best": self.best}
        if self.withheld:
            return {"withheld": self.withheld, "n": self.n, **bounds, **self.extra}
        found = {name: getattr(self, name) for name in ("value", "low", "high", "target", "n")}
        if self.no_interval:
            found["no_interval"] = self.no_interval
        return found | bounds | dict(self.extra)


def day_and_age(at: datetime) -> dict[str, str]:
    """The ``day`` of a moment and how long it is ``ago``, for sentences."""
    return {"day": date_format(localtime(at), "SHORT_DATE_FORMAT"), "age": timesince(at, depth=1)}


def withheld(reason: str, n: int = 0, **extra: Any) -> Figure:
    """No figure, and why."""
    return Figure(n=n, withheld=reason, extra=extra)


_NO_TITLES: Mapping[str, str] = MappingProxyType({})
MOST_NAMED = 5


def why_withheld(figure: Figure, titles: Mapping[str, str] = _NO_TITLES) -> str:
    """Why there is no figure, and how much of what would give one; ``titles`` are the metrics' by their names."""
    return " ".join([explain_reason(figure.withheld), *_missing(figure.extra.get("missing") or {}, titles)])


def notes(figure: Figure, titles: Mapping[str, str] = _NO_TITLES) -> list[str]:
    """Its warnings, those who did not answer and what they could have changed, and parts that nobody rated."""
    found = [explain_reason(str(code)) for code in figure.extra.get("warnings") or ()]
    bounds = figure.extra.get("response_bounds")
    if bounds:
        share = {"share": f"{100 * float(figure.extra.get('non_response') or 0.0):.0f}%"}
        share |= {"worst": f"{bounds[0]:.2f}", "best": f"{bounds[1]:.2f}"}
        text = _(
            "%(share)s of the answers served got no rating. The interval allows for all of them being worst "
            "(%(worst)s) or best (%(best)s)."
        )
        found.append(text % share)
    if sentence := any_time_sentence(figure):
        found.append(sentence)
    if count := figure.extra.get("carried"):
        text = ngettext(
            "%(count)d of its ratings was given to an equal answer of an earlier answer set.",
            "%(count)d of its ratings were given to equal answers of an earlier answer set.",
            count,
        )
        found.append(text % {"count": count})
    if count := figure.extra.get("built_on"):
        text = ngettext(
            "The judge prompt was worked out on %(count)d of the ratings, which stands for its own answer alone.",
            "The judge prompt was worked out on %(count)d of the ratings, which stand for their own answers alone.",
            count,
        )
        found.append(text % {"count": count})
    if count := figure.extra.get("sealed"):
        text = ngettext(
            "The ratings of %(count)d locked answer are sealed and count as missing at random.",
            "The ratings of %(count)d locked answers are sealed and count as missing at random.",
            count,
        )
        found.append(text % {"count": count})
    if figure.partly_corrected:
        found.append(_partly_corrected(figure, titles))
    if named := figure.extra.get("as_it_came"):
        names = ", ".join(titles.get(name, name) for name in named)
        found.append(_("Exact by definition, so taken as they came: %(names)s.") % {"names": names})
    return found


def _partly_corrected(figure: Figure, titles: Mapping[str, str]) -> str:
    weights = figure.partly_corrected.items()
    parts = ", ".join(f"{titles.get(name, name)} ({100 * weight:.0f}%)" for name, weight in weights)
    if not (taken := figure.extra.get("assumption")):
        text = _(
            "Partly corrected: nobody has rated %(parts)s of the score. The interval reaches as far as experts "
            "could differ there."
        )
        return text % {"parts": parts}
    text = _(
        "Partly corrected: nobody has rated %(parts)s of the score. %(who)s accepted on %(day)s that the judge "
        "is off there by at most %(bias)s of the scale, the most it may be off where it was rated; nothing "
        "measured that."
    )
    day = date_format(localtime(datetime.fromisoformat(taken["at"])), "SHORT_DATE_FORMAT")
    return text % {"parts": parts, "who": taken["by"], "day": day, "bias": f"{100 * taken['bias']:.0f}%"}


def any_time_sentence(figure: Figure) -> str:
    """The interval that holds at every look, while ratings still come in; else empty."""
    if not (ends := figure.extra.get("any_time")):
        return ""
    facts = {"low": f"{ends['low']:.2f}", "high": f"{ends['high']:.2f}", "labels": ends["labels"]}
    return (
        _(
            "Ratings still come in (%(labels)d so far). However often you look, this run's figure lies between "
            "%(low)s and %(high)s in 95%% of such reviews: you may stop as soon as that is narrow enough."
        )
        % facts
    )


NO_WIDTH = 1e-12
_STANDARD = ("value", "low", "high", "target", "n", "withheld")


def as_figure(outcome: Outcome) -> Figure:
    """An outcome of the correction as a report's figure; everything only corrections have goes to ``extra``."""
    extra = {key: value for key, value in outcome.to_dict().items() if key not in _STANDARD}
    if isinstance(outcome, Estimate):
        figure = Figure(outcome.value, outcome.low, outcome.high, str(outcome.target), outcome.n, extra=extra)
        constant = outcome.target is Target.QUESTIONS_LIKE_THESE and outcome.high - outcome.low <= NO_WIDTH
        if constant:  # every answer of a run may be known, never every question like these
            return replace(figure, low=None, high=None, no_interval=str(Undefined.NO_VARIATION))
        return figure
    return Figure(target=str(outcome.target), n=outcome.n, withheld=str(outcome.reason), extra=extra)


def shifted(figure: Figure, constant: float) -> Figure:
    """A profile's constant is the same for every answer: it moves the figure and its ends alike."""
    if not constant or figure.value is None:
        return figure
    low, high = (None if end is None else end + constant for end in (figure.low, figure.high))
    return replace(figure, value=figure.value + constant, low=low, high=high)


def stratum_in_words(name: str) -> str:
    """A stratum by what it is; those by score and category have names of their own."""
    known = {
        CERTAIN: _("drawn earlier"),
        FAILED: _("the judge failed"),
        ALL: _("all answers"),
        FAILS: _("below the set value"),
        REST: _("all the others"),
    }
    if name in known:
        return known[name]
    if JOINED in name:
        return "; ".join(map(stratum_in_words, name.split(JOINED)))
    categories, _space, scores = name.rpartition(" ")
    named = ", ".join(category_name(one) for one in categories.split("|") if one)
    reach = _("unscored") if scores == "unscored" else scores.replace("..", "–")
    return f"{named} {reach}".strip()


def _missing(missing: Mapping[str, Any], titles: Mapping[str, str]) -> list[str]:
    found = []
    if count := missing.get("labels"):
        text = ngettext("%(count)d more rating is needed.", "%(count)d more ratings are needed.", count)
        found.append(text % {"count": count})
    if strata := missing.get("strata"):
        few = ", ".join(f"{stratum_in_words(name)} ({count})" for name, count in list(strata.items())[:MOST_NAMED])
        found.append(_("Ratings missing by stratum: %(strata)s.") % {"strata": few})
    if count := missing.get("answers"):
        text = ngettext(
            "%(count)d answer could not have been drawn.", "%(count)d answers could not have been drawn.", count
        )
        found.append(text % {"count": count})
    if share := missing.get("non_response"):
        found.append(_("It is %(share)s.") % {"share": f"{100 * share:.0f}%"})
    for name, why in (missing.get("components") or {}).items():
        said = " ".join([explain_reason(why["reason"]), *_missing(why, titles)])
        found.append(_("%(part)s: %(why)s") % {"part": titles.get(name, name), "why": said})
    return found
