"""Verdict on two compared runs, its sentences, and the evidence that would settle an undecided one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext

from evaluation.messages import numbers
from evaluation.messages.explanations import explain_reason
from review.comparisons.difference import RunDifference
from review.releases.selectors import ReleaseDifference
from review.reports.figure import MIN_WIDTH, UNPLANNED_ROUND, Figure, Withheld
from review.reports.gate import GateScore, margin_text
from review.reports.retrieval import reads_labels
from review.statistics.correction.frame import MIN_LABELS
from review.statistics.correction.outcome import Target, WithheldReason
from review.statistics.paired_tests.gate import (
    DifferenceVerdict,
    Resource,
    SampleRequirement,
    difference_verdict,
    is_within_margin,
    labels_to_decide,
    questions_to_decide,
)
from review.statistics.paired_tests.gatekeeping import Multiplicity


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """Verdict on one score.

    ``reason`` is a code if the score has no difference or no interval. ``settling`` is the amount of evidence that
    would exclude no difference if the value stays. ``alike_within`` is the stated margin if the whole interval lies
    inside it, also for a run that is better or worse by less. ``target`` is the population of the interval, empty
    without one."""

    verdict: DifferenceVerdict
    reason: str = ""
    settling: SampleRequirement | None = None
    alike_within: float | None = None
    target: str = ""

    def to_dict(self) -> dict[str, Any]:
        settling = self.settling
        return {
            "verdict": str(self.verdict),
            **({"target": self.target} if self.target else {}),
            **({"reason": self.reason} if self.reason else {}),
            **({} if self.alike_within is None else {"alike_within": self.alike_within}),
            **({"settle": {"by": str(settling.resource), "needed": settling.needed}} if settling else {}),
        }


def _interval_verdict(low: float, high: float, margin: float | None) -> RunVerdict:
    """Return the verdict of an interval, with or without a margin. No difference at all is alike within 0."""
    verdict = difference_verdict(low, high)
    if max(abs(low), abs(high)) <= MIN_WIDTH:
        return RunVerdict(DifferenceVerdict.ALIKE, alike_within=0.0)
    if margin is None or not is_within_margin(low, high, margin):
        return RunVerdict(verdict)
    return RunVerdict(
        DifferenceVerdict.ALIKE if verdict is DifferenceVerdict.CANNOT_TELL else verdict, alike_within=margin
    )


def judge_only_verdict(run_difference: RunDifference) -> RunVerdict:
    """Return the verdict on judge and rule scores."""
    paired = run_difference.overall
    if paired is None or paired.low is None or paired.high is None:
        return RunVerdict(DifferenceVerdict.CANNOT_TELL, "no_values" if paired is None else "no_variation")
    run_verdict = replace(_interval_verdict(paired.low, paired.high, run_difference.margin), target=str(paired.target))
    if run_verdict.verdict is not DifferenceVerdict.CANNOT_TELL:
        return run_verdict
    half = (paired.high - paired.low) / 2.0
    return replace(run_verdict, settling=questions_to_decide(paired.groups, half, abs(paired.value)))


def corrected_verdict(run_difference: RunDifference) -> RunVerdict:
    """Return the verdict on corrected scores: for these questions if their changed answers are rated in both runs, else
    for questions like these."""
    figure = run_difference.leading
    if figure.value is None or figure.low is None or figure.high is None:
        reason = figure.withheld or figure.no_interval
        return RunVerdict(DifferenceVerdict.CANNOT_TELL, reason, labels_missing(figure))
    if not figure.is_planned:
        return RunVerdict(DifferenceVerdict.CANNOT_TELL, UNPLANNED_ROUND, target=figure.target)
    run_verdict = replace(_interval_verdict(figure.low, figure.high, run_difference.margin), target=figure.target)
    if run_verdict.verdict is not DifferenceVerdict.CANNOT_TELL:
        return run_verdict
    return replace(run_verdict, settling=settle_corrected(run_difference, abs(figure.value)))


def settle_corrected(run_difference: RunDifference, distance: float) -> SampleRequirement | None:
    """Return the evidence that narrows the corrected interval to ``distance``.

    Labels of both runs together, or questions if their variation alone is wider. For these questions: changed questions
    that are rated in both runs."""
    if run_difference.release and run_difference.release_leads:
        return settle_release(run_difference.release, distance)
    groups = run_difference.overall.groups if run_difference.overall else 0
    wide, narrow = run_difference.corrected, run_difference.corrected_this_run
    labels = int(wide.extra.get("labels") or 0)
    if not labels or narrow.value is None:
        return questions_to_decide(groups, half_width(wide), distance)
    return labels_to_decide(labels, wide.n, groups, half_width(narrow), half_width(wide), distance)


def settle_release(release: ReleaseDifference, distance: float) -> SampleRequirement | None:
    """Return the number of changed questions, rated in both runs, whose interval would just exclude ``distance``."""
    half, rated = half_width(release.figure), int(release.figure.extra.get("labels") or 0)
    requirement = labels_to_decide(rated, release.changed, 0, half, half, distance) if rated < release.changed else None
    return requirement and replace(requirement, resource=Resource.PAIRS)


def labels_missing(figure: Figure) -> SampleRequirement | None:
    """Return the total of rated answers that a withheld corrected figure needs; ``None`` if labels are not missing."""
    if figure.withheld in {Withheld.NOT_REVIEWED, Withheld.CARRIED}:
        return SampleRequirement.by_labels(MIN_LABELS)
    missing = figure.extra.get("missing") or {}
    parts = [missing, *(missing.get("components") or {}).values()]
    missing_labels = max((int(part["labels"]) for part in parts if part.get("labels")), default=0)
    return (
        SampleRequirement.by_labels(int(figure.extra.get("labels") or 0) + missing_labels) if missing_labels else None
    )


def half_width(figure: Figure) -> float:
    """Return half the interval of a figure; 0 without one."""
    return 0.0 if figure.low is None or figure.high is None else (figure.high - figure.low) / 2.0


# Reason code of a profile whose parts are not summed.
NO_OVERALL = "no_overall"


def p_text(value: float | None) -> str:
    """Format a p-value with three digits, never as zero."""
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def family_sentence(family: Multiplicity) -> str:
    """Describe the number of tests, their order, and the chance of a false verdict."""
    facts = {"error": f"{100 * family.error:.0f}%", "size": family.size, "each": f"{100 * family.confidence:.1f}%"}
    metric_note = gettext("Metrics get a verdict only if the overall score differs.")
    if family.size < 2:
        sentence = gettext("The chance of a false difference is at most %(error)s.") % facts
    else:
        sentence = (
            gettext(
                "Adjusted for %(size)d overall scores: the chance of even one false difference is at most "
                "%(error)s, so each interval is a %(each)s interval."
            )
            % facts
        )
    return f"{sentence} {metric_note}"


def sentences(run_difference: RunDifference) -> list[str]:
    """Return the leading verdict, the secondary one, and the next step, naming runs by number."""
    names = {
        "run": gettext("Run %(id)d") % {"id": run_difference.run_id},
        "baseline": gettext("Run %(id)d") % {"id": run_difference.baseline_id},
    }
    return [
        sentence
        for build_sentence in (lead_sentence, other_sentence, next_sentence)
        if (sentence := build_sentence(run_difference, names))
    ]


# Reasons that mean no judge is in the compared score.
WITHOUT_JUDGE = frozenset({NO_OVERALL, "no_parts", Withheld.RULES_ONLY})
# Reasons for a missing corrected difference that ratings of both runs remove.
NEEDS_REVIEW = frozenset(
    {Withheld.NOT_REVIEWED, Withheld.CARRIED, Withheld.NOT_BOTH_RATED}
    | (set(WithheldReason) - {WithheldReason.NO_VALUES, WithheldReason.TOO_FEW_GROUPS})
)


def lead_sentence(run_difference: RunDifference, names: dict[str, str]) -> str:
    """State the most trustworthy verdict: the corrected one, or that it is unknown; rule scores need no correction."""
    run_verdict = corrected_verdict(run_difference)
    if sentence := _retrieval_sentence(run_difference, names):
        return sentence
    if run_verdict.reason in WITHOUT_JUDGE:
        return judge_only_sentence(run_difference, names)
    sentence = corrected_sentence(run_difference, names)
    if run_verdict.reason == Withheld.NOT_REVIEWED:
        sentence = gettext("No verdict yet: no expert has rated these answers.")
        sentence = " ".join([sentence, *_evidence_sentences(run_verdict)])
    if run_difference.retrieval and any(map(reads_labels, run_difference.parts)):
        sentence += " " + gettext("Retrieval is part of the score and counts unlabelled passages as misses.")
    return sentence


def _leading_retrieval_figure(run_difference: RunDifference) -> Figure | None:
    """Return the corrected nDCG difference if it leads, that is, if no judge is in the compared score.

    It is more reliable than scores that count unlabelled passages as misses."""
    parts, reason = [reads_labels(name) for name in run_difference.parts], corrected_verdict(run_difference).reason
    leads = all(parts) if reason == Withheld.NOT_REVIEWED else reason in WITHOUT_JUDGE and (any(parts) or not parts)
    if not (run_difference.retrieval and leads):
        return None
    return next((metric.corrected for metric in run_difference.metrics if metric.name == GateScore.NDCG), None)


def _figure_verdict(figure: Figure, margin: float | None) -> RunVerdict:
    if figure.low is None or figure.high is None:
        return RunVerdict(DifferenceVerdict.CANNOT_TELL)
    return _interval_verdict(figure.low, figure.high, margin)


def _retrieval_sentence(run_difference: RunDifference, names: dict[str, str]) -> str:
    if (figure := _leading_retrieval_figure(run_difference)) is None:
        return ""
    if figure.low is None or figure.high is None:
        params = {"why": explain_reason(figure.withheld or figure.no_interval)}
        return gettext("By nDCG corrected for unlabelled passages: can't tell. %(why)s") % params
    run_verdict = _figure_verdict(figure, run_difference.margin)
    if run_verdict.verdict is DifferenceVerdict.CANNOT_TELL:
        return gettext("By nDCG corrected for unlabelled passages: can't tell.")
    params = {"said": _verdict_sentence(run_verdict, figure.low, figure.high, names)}
    return gettext("By nDCG corrected for unlabelled passages: %(said)s") % params


def other_sentence(run_difference: RunDifference, names: dict[str, str]) -> str:
    """State the judge-only verdict and why it does not lead; empty if it leads."""
    if _leading_retrieval_figure(run_difference) is not None and run_difference.overall is not None:
        sentence = gettext("By labels only (unlabelled passages count as misses): %(said)s")
        return sentence % {"said": judge_only_sentence(run_difference, names)}
    if (
        corrected_verdict(run_difference).reason in WITHOUT_JUDGE
        or _leading_retrieval_figure(run_difference) is not None
    ):
        return ""
    sentence = gettext("Judge scores only (judge error not included): %(said)s")
    return sentence % {"said": judge_only_sentence(run_difference, names)}


def next_sentence(run_difference: RunDifference, names: dict[str, str]) -> str:
    """State the next step; empty if nothing is comparable."""
    run_verdict = corrected_verdict(run_difference)
    if (retrieval_figure := _leading_retrieval_figure(run_difference)) is not None:
        run_verdict = _figure_verdict(retrieval_figure, run_difference.margin)
        if run_verdict.verdict is DifferenceVerdict.CANNOT_TELL:
            return gettext("Next: ask experts to rate more passages in the repair.")
    elif run_verdict.reason in WITHOUT_JUDGE:
        run_verdict = judge_only_verdict(run_difference)
        if run_difference.overall is None:
            return ""
    if run_verdict.verdict is DifferenceVerdict.BETTER:
        if not run_difference.worse:
            return gettext("Next: use %(run)s.") % names
        return gettext("Next: check the questions that dropped most, then use %(run)s.") % names
    if run_verdict.verdict is DifferenceVerdict.WORSE:
        # Experts and judge can disagree, so that no question dropped by the judge.
        if not run_difference.worse:
            return gettext("Next: keep %(baseline)s.") % names
        return gettext("Next: keep %(baseline)s. Check the questions that dropped most to see why.") % names
    if run_verdict.verdict is DifferenceVerdict.ALIKE:
        return gettext("Next: choose by other criteria, such as cost or time.")
    if run_verdict.settling is None and run_verdict.reason and run_verdict.reason not in NEEDS_REVIEW:
        return gettext("Next: check the questions that changed most.")
    if run_verdict.reason or (run_verdict.settling and run_verdict.settling.resource is not Resource.QUESTIONS):
        if can_pair(run_difference.release):
            return gettext("Next: ask experts to rate the changed answers of both runs.")
        return gettext("Next: ask experts to review a sample of both runs.")
    return gettext("Next: add questions, or treat the two as equal if a difference this small doesn't matter.")


def can_pair(release: ReleaseDifference | None) -> bool:
    """Return whether ratings of changed answers would say more about the difference of two runs."""
    return release is not None and bool(release.plans) and (release.decides or release.figure.withheld in NEEDS_REVIEW)


def judge_only_sentence(run_difference: RunDifference, names: dict[str, str]) -> str:
    """State the judge-only verdict; ``names`` has the keys ``run`` and ``baseline``."""
    overall, run_verdict = run_difference.overall, judge_only_verdict(run_difference)
    if overall is None:
        if run_difference.corrected.withheld == NO_OVERALL:
            return explain_reason(NO_OVERALL)
        return gettext("The runs have no common questions for any part of the score.")
    if overall.low is None or overall.high is None:
        if not overall.value:
            return gettext("Every score is the same for both.")
        return gettext("All scores differ by the same amount, so the uncertainty is unknown.")
    if run_verdict.verdict is not DifferenceVerdict.CANNOT_TELL:
        return _verdict_sentence(run_verdict, overall.low, overall.high, names)
    params = {"least": f"{overall.detectable or 0.0:.3f}"}
    sentence = (
        gettext("Can't tell. A difference of %(least)s or more would be detected in 4 of 5 such comparisons.") % params
    )
    return " ".join([sentence, *_evidence_sentences(run_verdict)])


def corrected_sentence(run_difference: RunDifference, names: dict[str, str]) -> str:
    """State the corrected verdict, or what is missing for it; empty without ratings or an overall score."""
    figure, run_verdict = run_difference.leading, corrected_verdict(run_difference)
    if run_verdict.reason in ("not_reviewed", NO_OVERALL):
        return ""
    if figure.low is None or figure.high is None:
        params = {"why": explain_reason(run_verdict.reason)}
        return " ".join(
            [gettext("By corrected scores: can't tell. %(why)s") % params, *_evidence_sentences(run_verdict)]
        )
    release = run_difference.release if run_difference.release_leads else None
    if release and not release.changed:
        return gettext("No difference: both runs gave the same answers, so experts would rate them the same.")
    if run_verdict.verdict is DifferenceVerdict.CANNOT_TELL:
        undecided = (
            gettext("By ratings of the changed answers: can't tell.")
            if release
            else gettext("By corrected scores: can't tell.")
        )
        interval = _interval_sentence(figure.low, figure.high, run_verdict.target)
        reason = [explain_reason(run_verdict.reason)] if run_verdict.reason else []
        return " ".join([undecided, interval, *reason, *_evidence_sentences(run_verdict)])
    params = {"said": _verdict_sentence(run_verdict, figure.low, figure.high, names)}
    if release:
        return gettext("By ratings of the changed answers: %(said)s") % params
    return gettext("By corrected scores: %(said)s") % params


def _interval_sentence(low: float, high: float, target: str) -> str:
    ends = {"low": numbers.format_signed(low, 3), "high": numbers.format_signed(high, 3)}
    if target == Target.THIS_RUN:
        return gettext("The difference is between %(low)s and %(high)s on these questions.") % ends
    return gettext("The difference is between %(low)s and %(high)s on questions like these.") % ends


def _verdict_sentence(run_verdict: RunVerdict, low: float, high: float, names: dict[str, str]) -> str:
    if run_verdict.verdict is DifferenceVerdict.ALIKE:
        return _alike_sentence(run_verdict, low, high, names)
    facts = {**names, "low": f"{min(abs(low), abs(high)):.3f}", "high": f"{max(abs(low), abs(high)):.3f}"}
    better = run_verdict.verdict is DifferenceVerdict.BETTER
    if high - low <= MIN_WIDTH:
        better_text, worse_text = (
            gettext("%(run)s is better by exactly %(low)s on these questions."),
            gettext("%(run)s is worse by exactly %(low)s on these questions."),
        )
    elif run_verdict.target == Target.THIS_RUN:
        better_text, worse_text = (
            gettext("%(run)s is better by %(low)s to %(high)s on these questions."),
            gettext("%(run)s is worse by %(low)s to %(high)s on these questions."),
        )
    else:
        better_text, worse_text = (
            gettext("%(run)s is better by %(low)s to %(high)s on questions like these."),
            gettext("%(run)s is worse by %(low)s to %(high)s on questions like these."),
        )
    sentence = (better_text if better else worse_text) % facts
    if run_verdict.alike_within is None:
        return sentence
    alike = gettext("The two are equivalent within %(margin)s.") % {"margin": margin_text(run_verdict.alike_within)}
    return f"{sentence} {alike}"


def _alike_sentence(run_verdict: RunVerdict, low: float, high: float, names: dict[str, str]) -> str:
    if max(abs(low), abs(high)) <= MIN_WIDTH:
        return gettext("experts rated both answers to each changed question the same.")
    facts = {"margin": margin_text(run_verdict.alike_within or 0.0), "low": f"{low:+.3f}", "high": f"{high:+.3f}"}
    if run_verdict.target == Target.THIS_RUN:
        sentence = gettext(
            "%(run)s and %(baseline)s are equivalent within %(margin)s on these questions: the difference is between "
            "%(low)s and %(high)s."
        )
    else:
        sentence = gettext(
            "%(run)s and %(baseline)s are equivalent within %(margin)s on questions like these: the "
            "difference is between %(low)s and %(high)s."
        )
    return sentence % {**names, **facts}


def _evidence_sentences(run_verdict: RunVerdict) -> list[str]:
    if run_verdict.settling is None:
        too_small = gettext("The observed difference is too small to tell how many questions would settle it.")
        return [] if run_verdict.reason else [too_small]
    params = {"count": run_verdict.settling.needed}
    if run_verdict.settling.resource is Resource.PAIRS:
        return [
            gettext("About %(count)d changed questions rated in both runs would settle it if the value stays the same.")
            % params
        ]
    if run_verdict.settling.resource is Resource.QUESTIONS:
        return [gettext("About %(count)d questions in total would settle it if the value stays the same.") % params]
    if run_verdict.reason:
        return [gettext("About %(count)d rated answers are needed for a corrected score.") % params]
    return [
        gettext("About %(count)d rated answers across both runs would settle it if the value stays the same.") % params
    ]
