"""What stands beside a corrected figure: what is missing where it is withheld, else what a reader should know of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evaluation.wording.messages import category_name, explain_reason
from review.reports.figure import Figure
from review.statistics.sampling.draw import ALL, CERTAIN, FAILS, REST
from review.statistics.sampling.stratify import FAILED

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
            "%(share)s of the answers served got no rating; were all of them worst or best: %(worst)s or %(best)s."
        )
        found.append(text % share)
    if named := figure.extra.get("as_it_came"):
        names = ", ".join(titles.get(name, name) for name in named)
        found.append(_("Not rated, so taken as it came: %(names)s.") % {"names": names})
    return found


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
