"""The pictures of agreement for a report that is one file: the plots of the agreement page, without a script."""

from __future__ import annotations

from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from evaluation.models import Run
from review.comparisons.trend import trends_of
from review.results.run_agreement import By, agreement_of
from review.results.run_agreement_cache import agreement_if_kept
from review.web.pages.agreement import scorer_title
from review.web.pages.agreement_plots import JudgePlots, judge_plots, trend_page


@dataclass(frozen=True, slots=True)
class MetricPictures:
    """The plots of every judge of one metric."""

    title: str
    plots: tuple[JudgePlots, ...]


def agreement_pictures(run: Run) -> SafeString:
    """The section as HTML, empty where nobody has rated an answer of the run; with intervals where they have been
    computed, since a file does not wait for them."""
    kept = agreement_if_kept(run, by=By.CATEGORY)
    found = agreement_of(run, by=By.CATEGORY).to_dict() if kept is None else kept
    metrics = []
    for name, experts in found["experts"].items():
        judges = [(author, of[name]) for author, of in found["judges"].items() if name in of]
        ranked = sorted(judges, key=lambda one: (not one[1]["primary"], one[0]))
        plots = [judge_plots(scorer_title(who, baseline=of["baseline"]), of, unfolded=True) for who, of in ranked]
        title = experts["title"]["ko" if get_language() == "ko" else "en"]
        metrics.append(MetricPictures(title, tuple(one for one in plots if one.any)))
    shown = tuple(one for one in metrics if one.plots)
    if not shown:
        return SafeString("")
    return render_to_string("review/report_pictures.html", {"metrics": shown, "page": trend_page(trends_of(run))})
