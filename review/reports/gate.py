"""Outcome of a quality gate, in words and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from django.utils.translation import get_language
from django.utils.translation import gettext as _
from pydantic import ConfigDict

from evaluation.messages.explanations import explain_reason
from evaluation.metrics.catalogue import is_rule_metric, rule_metric_named
from evaluation.models import Run
from evaluation.specs.setting import Flag, Spec, setting, settings_of
from review.statistics.correction.outcome import Target
from review.statistics.paired_tests.gate import MAX_LOOKS, GateVerdict, Resource, SampleRequirement, gate_confidence

PASSED_CODE, GATE_CODE = 0, 100
QUESTIONS_LIKE_THESE = str(Target.QUESTIONS_LIKE_THESE)


class GateScore(StrEnum):
    """Score that a gate checks."""

    CORRECTED = "corrected"
    JUDGE_ONLY = "judge_only"
    # Only profiles with a rule for single answers have a pass rate. It is the judge's, and has no drop.
    PASS_RATE = "pass_rate"
    # A repair of retrieval truth corrects these three where relevance labels are missing.
    PRECISION = "precision_at_k"
    RECALL = "recall_at_k"
    NDCG = "ndcg_at_k"

    @property
    def is_metric(self) -> bool:
        return is_rule_metric(self)


class GateRequest(Spec):
    """Settings of a gate.

    An empty ``gate_on`` means the corrected score if anybody rated blind, else judge-only. The 5% error is shared by
    ``looks``. ``margin`` is a difference from the baseline that does not matter; it does not affect the verdict."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    baseline: Run | None = None
    fail_under: float | None = setting(
        None, limits=(-1e6, 1e6), flag=Flag("minimum overall score, such as 0.7", metavar="X")
    )
    max_drop: float | None = setting(
        None, limits=(0, 1e6), flag=Flag("maximum drop from the baseline, such as 0.02", metavar="D")
    )
    margin: float | None = setting(
        None,
        limits=(0.001, 1),
        flag=Flag(
            "difference that does not matter, such as 0.03; runs within it are reported as equivalent", metavar="M"
        ),
    )
    gate_on: GateScore | Literal[""] = setting(
        "", flag=Flag("score to test; default: the corrected score if available, or judge-only")
    )
    across_models: bool = setting(
        False,
        flag=Flag("test the drop of judge-only scores even if different models answered under the judge's name"),
    )
    looks: int = setting(
        1,
        limits=(1, MAX_LOOKS),
        flag=Flag(
            "planned number of gate checks, such as one per commit; they share the error rate of 5%%",
            metavar="N",
        ),
    )
    require_approval: bool = setting(False, flag=Flag("fail unless the judge's prompts are approved"))
    allow_undecided: bool = setting(False, flag=Flag("exit 0 with a warning if the gate is undecided"))

    @property
    def confidence(self) -> float:
        return gate_confidence(self.looks)

    @property
    def is_set(self) -> bool:
        return self.fail_under is not None or self.max_drop is not None or self.require_approval

    def runs(self, run: Run) -> list[Run]:
        """Runs behind the gate, with the baseline first if there is one."""
        return [run] if self.baseline is None else [self.baseline, run]


GATE_SETTINGS = tuple(settings_of(GateRequest).values())
NO_GATE = GateRequest()


class GateRule(StrEnum):
    FAIL_UNDER = "fail_under"
    MAX_DROP = "max_drop"


@dataclass(frozen=True, slots=True)
class GateCheck:
    """Result of one gate rule.

    ``value`` with its interval for ``target`` is the score, or for ``max_drop`` this run minus the baseline.
    ``reason`` is a code for a missing or unusable value or interval. ``limit`` is the minimum score or the maximum
    drop. ``settling`` states what would decide an open check. ``labels_alone`` is the uncorrected figure that counts
    unlabelled passages as misses. ``alike_within`` is the margin if it contains the whole interval of a difference."""

    rule: GateRule
    limit: float
    value: float | None
    low: float | None
    high: float | None
    verdict: GateVerdict
    reason: str = ""
    settling: SampleRequirement | None = None
    labels_alone: float | None = None
    alike_within: float | None = None
    target: str = QUESTIONS_LIKE_THESE

    def to_dict(self) -> dict[str, Any]:
        names = ("rule", "limit", "value", "low", "high", "target", "verdict", *(("reason",) if self.reason else ()))
        document = {name: getattr(self, name) for name in names}
        if self.labels_alone is not None:
            document["labels_alone"] = self.labels_alone
        if self.alike_within is not None:
            document["alike_within"] = self.alike_within
        if self.settling:
            document["settle"] = {"by": self.settling.resource, "needed": self.settling.needed}
        return document


@dataclass(frozen=True, slots=True)
class Gate:
    """Gate result of a run.

    ``incomplete`` is the reason why an incomplete run fails regardless of its figures. This gate is one of ``looks``
    that share the error. ``unapproved`` metrics fail the gate if approval is required. An undecided gate passes only
    with ``allow_undecided``."""

    on: GateScore
    allow_undecided: bool
    baseline_id: int | None
    checks: tuple[GateCheck, ...]
    incomplete: str = ""
    looks: int = 1
    unapproved: tuple[str, ...] = ()

    @property
    def verdict(self) -> GateVerdict:
        verdicts = {check.verdict for check in self.checks}
        if self.incomplete or self.unapproved or GateVerdict.FAILED in verdicts:
            return GateVerdict.FAILED
        return GateVerdict.UNDECIDED if GateVerdict.UNDECIDED in verdicts else GateVerdict.PASSED

    @property
    def target(self) -> str:
        """Population of the interval that is compared with the drop, or else with the minimum."""
        return self.checks[-1].target if self.checks else QUESTIONS_LIKE_THESE

    @property
    def exit_code(self) -> int:
        """0 if the gate passes, or is undecided and that is allowed; else 100."""
        passed = self.verdict is GateVerdict.PASSED or (self.verdict is GateVerdict.UNDECIDED and self.allow_undecided)
        return PASSED_CODE if passed else GATE_CODE

    def to_dict(self) -> dict[str, Any]:
        """Return the ``gate`` section of a report."""
        return {
            "on": str(self.on),
            "target": self.target,
            "verdict": str(self.verdict),
            "allow_undecided": self.allow_undecided,
            "exit_code": self.exit_code,
            "baseline": self.baseline_id,
            "looks": self.looks,
            "checks": [check.to_dict() for check in self.checks],
            **({"incomplete": self.incomplete} if self.incomplete else {}),
            **({"unapproved": list(self.unapproved)} if self.unapproved else {}),
        }


def gate_line(gate: Gate, run: int | None = None) -> str:
    """First output line: the checked score and the verdict. ``run`` identifies the run among several."""
    on = {
        GateScore.CORRECTED: _("corrected score"),
        GateScore.JUDGE_ONLY: _("judge-only score"),
        GateScore.PASS_RATE: _("pass rate"),
    }.get(gate.on) or rule_metric_named(gate.on).spec.title.in_language(get_language() or "en")
    verdict = {
        GateVerdict.PASSED: _("passed"),
        GateVerdict.FAILED: _("failed"),
        GateVerdict.UNDECIDED: _("undecided, allowed") if gate.allow_undecided else _("undecided, not passed"),
    }[gate.verdict]
    line = _("gate on the %(score)s: %(verdict)s") % {"score": on, "verdict": verdict}
    if gate.looks > 1:
        line += " " + _("(one of %(looks)d interim checks that share the 5%% error rate)") % {"looks": gate.looks}
    return line if run is None else _("run %(run)d, %(said)s") % {"run": run, "said": line}


def gate_reasons(gate: Gate) -> list[str]:
    """One sentence per check, and one for an incomplete run."""
    reasons = [check_reason(check) for check in gate.checks]
    if gate.unapproved:
        reasons.append(_("No valid approval: %(metrics)s.") % {"metrics": ", ".join(gate.unapproved)})
    if gate.incomplete:
        reasons.insert(0, _("The run is not complete: %(reason)s") % {"reason": explain_reason(gate.incomplete)})
    return reasons


def check_title(check: GateCheck) -> str:
    if check.rule is GateRule.FAIL_UNDER:
        return _("score of at least %(limit).3f") % {"limit": check.limit}
    if check.target == Target.THIS_RUN:
        return _("drop of at most %(limit).3f against the baseline on these questions") % {"limit": check.limit}
    return _("drop of at most %(limit).3f against the baseline") % {"limit": check.limit}


def check_reason(check: GateCheck) -> str:
    """Result of a check, what would decide it, and the uncorrected figure if there is one."""
    sentences = [_check_sentence(check)]
    if check.alike_within is not None:
        margin = {"margin": margin_text(check.alike_within)}
        sentences.append(_("This run and the baseline are equivalent within %(margin)s.") % margin)
    if check.labels_alone is not None:
        alone = {"value": f"{check.labels_alone:.3f}"}
        sentences.append(_("By labels only (unlabelled relevant passages count as misses): %(value)s.") % alone)
    return " ".join(sentences)


def margin_text(margin: float) -> str:
    return f"{margin:.6f}".rstrip("0").rstrip(".")


def _check_sentence(check: GateCheck) -> str:
    title = check_title(check)
    if check.value is None:
        sentence = _("%(wanted)s: undecided. %(why)s") % {"wanted": title, "why": explain_reason(check.reason)}
        return " ".join([sentence, *([_remedy_sentence(check)] if check.settling else [])])
    value = f"{round(check.value, 3) or 0.0:+.3f}" if check.rule is GateRule.MAX_DROP else f"{check.value:.3f}"
    facts = {"wanted": title, "value": value}
    if check.low is None or check.high is None:
        reason = {"why": explain_reason(check.reason)}
        return _("%(wanted)s: undecided at %(value)s, without an interval. %(why)s") % {**facts, **reason}
    facts |= {"low": f"{check.low:.3f}", "high": f"{check.high:.3f}"}
    if check.verdict is GateVerdict.PASSED:
        return _("%(wanted)s: passed with %(value)s (%(low)s to %(high)s).") % facts
    if check.verdict is GateVerdict.FAILED:
        return _("%(wanted)s: failed with %(value)s (%(low)s to %(high)s).") % facts
    further = explain_reason(check.reason) if check.reason else _remedy_sentence(check)
    return " ".join([_("%(wanted)s: undecided at %(value)s (%(low)s to %(high)s).") % facts, further])


def _remedy_sentence(check: GateCheck) -> str:
    if check.settling is None:
        return _("The score is too close to the limit for more questions or ratings to settle it.")
    needed = {"count": check.settling.needed}
    if check.value is None:
        return _("About %(count)d rated answers are needed for a corrected score.") % needed
    if check.settling.resource is Resource.PAIRS:
        sentence = _(
            "About %(count)d changed questions rated in both runs would settle it if the value stays the same."
        )
        return sentence % needed
    if check.settling.resource is Resource.LABELS and check.rule is GateRule.MAX_DROP:
        return _("About %(count)d rated answers across both runs would settle it if the value stays the same.") % needed
    if check.settling.resource is Resource.LABELS:
        return _("About %(count)d rated answers in total would settle it if the value stays the same.") % needed
    return _("About %(count)d questions in total would settle it if the value stays the same.") % needed
