"""What judges are like and how far they can be trusted: the card of a run, and the pages of judges and criteria."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language, gettext

from evaluation.extras.attacks.checking import AttacksCard, attacks_card
from evaluation.judging.criteria.spec import CriterionSpec
from evaluation.models import CriterionEvent, CriterionVersion
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from evaluation.work.plugins import has
from review.comparisons.judge_records import Agreed, JudgeRecord, MetricRecord
from review.reports.lines import MetricLine
from review.reports.provenance import JudgeUsed
from review.reports.report import Report

WEAK = 0.4  # below it, agreement beyond chance is usually called poor to fair
FEW = 20  # with fewer answers a kappa says little


@dataclass(frozen=True, slots=True)
class TrustRow:
    """One judge metric. Texts are empty or a dash where there is nothing; ``reason`` says why kappa is missing."""

    title: str
    kappa: str
    reason: str
    experts: str
    baseline: str
    bias: str
    exact: str
    n: int
    weak: bool
    few: bool


@dataclass(frozen=True, slots=True)
class TrustCard:
    """The card of trust. ``judges`` names who is judged; ``baseline`` tells that it is the offline baseline itself,
    ``compared`` that the baseline's own agreement stands in a column."""

    rows: tuple[TrustRow, ...]
    judges: tuple[str, ...]
    baseline: bool
    compared: bool


def trust_card(report: Report) -> TrustCard:
    """The primary judges' agreement, metric by metric, from blind first ratings only."""
    used = report.provenance.judges
    primary = [judge for judge in used if judge.primary]
    others = [judge for judge in used if judge.baseline and not judge.primary]
    language = get_language() or "en"
    rows = [
        trust_row(line.title.in_language(language), *found)
        for line in report.metrics
        if (found := _figures(report.agreement, line, primary, others)) is not None
    ]
    names = dict.fromkeys(judge_title(judge) for judge in primary)
    return TrustCard(tuple(rows), tuple(names), any(judge.baseline for judge in primary), bool(others))


def judge_title(judge: JudgeUsed) -> str:
    """The judge as pages call it: the baseline always by that word."""
    if judge.baseline:
        return gettext("offline baseline")
    return f"{judge.judge.name} v{judge.judge.version}"


def _author(judge: JudgeUsed) -> str:
    return f"{judge.judge.name}@{judge.judge.version}"


def _figures(
    agreement: Mapping[str, Any], line: MetricLine, primary: list[JudgeUsed], others: list[JudgeUsed]
) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]] | None:
    judges: Mapping[str, Mapping[str, Any]] = agreement.get("judges", {})
    found = next((judges[_author(j)][line.name] for j in primary if line.name in judges.get(_author(j), {})), None)
    if found is None:
        return None
    beside: Mapping[str, Any] = next(
        (judges[_author(j)][line.name] for j in others if line.name in judges.get(_author(j), {})), {}
    )
    return found, agreement.get("experts", {}).get(line.name, {}), beside


def trust_row(
    title: str, judge: Mapping[str, Any], experts: Mapping[str, Any], baseline: Mapping[str, Any]
) -> TrustRow:
    """The row of one metric from the figures of judge, experts and baseline."""
    kappa = judge.get("cohen_kappa_quadratic")
    reasons: Mapping[str, str] = judge.get("undefined", {})
    n = int(judge.get("n", 0))
    return TrustRow(
        title=title,
        kappa=_number(kappa),
        reason="" if kappa is not None else explain_reason(reasons.get("cohen_kappa_quadratic", "no_pairs")),
        experts=_number(experts.get("cohen_kappa_quadratic")),
        baseline=_number(baseline.get("cohen_kappa_quadratic")),
        bias="–" if judge.get("bias") is None else numbers.signed(judge["bias"]),
        exact="–" if judge.get("exact") is None else numbers.share(judge["exact"]),
        n=n,
        weak=kappa is not None and kappa < WEAK and n >= FEW,
        few=n < FEW,
    )


def _number(value: float | None) -> str:
    return "–" if value is None else numbers.plain(value)


@dataclass(frozen=True, slots=True)
class JudgeMetric:
    """A metric of a judge. ``newer`` tells of a newer version of its rubric; ``weak``: agreement on enough answers is
    low; ``few``: there are too few to say."""

    record: MetricRecord
    newer: str
    weak: bool
    few: bool


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """A judge with everything that is at hand. ``price`` is empty where it is not known."""

    record: JudgeRecord
    title: str
    price: str
    metrics: tuple[JudgeMetric, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CriterionLine:
    """A custom criterion in force, in the reader's language."""

    version: CriterionVersion
    spec: CriterionSpec
    title: str
    question: str


@dataclass(frozen=True, slots=True)
class JudgesPage:
    """All judges, the newest first, and the criteria in force."""

    judges: tuple[JudgeCard, ...]
    criteria: tuple[CriterionLine, ...]
    newer: str
    older: str


@dataclass(frozen=True, slots=True)
class JudgePage:
    """One judge with its parameters and the other versions of its name (id and title); ``attacks`` is there where this
    installation has them."""

    card: JudgeCard
    parameters: tuple[tuple[str, str], ...]
    versions: tuple[tuple[int, str], ...]
    attacks: AttacksCard | None


def judges_page(
    records: Iterable[JudgeRecord], criteria: Iterable[CriterionEvent], *, newer: str = "", older: str = ""
) -> JudgesPage:
    """The list."""
    return JudgesPage(
        tuple(judge_card(one) for one in records), tuple(_criterion(event) for event in criteria), newer, older
    )


def judge_page(record: JudgeRecord, versions: Sequence[tuple[int, str]]) -> JudgePage:
    """One judge's page."""
    parameters = tuple((str(name), str(value)) for name, value in sorted(record.judge.params.items()))
    attacks = attacks_card(record.judge) if has("attacks") else None
    return JudgePage(judge_card(record), parameters, tuple(versions), attacks)


def judge_card(record: JudgeRecord) -> JudgeCard:
    """The card of a judge."""
    judge = record.judge
    return JudgeCard(
        record=record,
        title=gettext("offline baseline") if judge.is_baseline else f"{judge.name} v{judge.version}",
        price=_price(record),
        metrics=tuple(_metric(one) for one in record.metrics),
        warnings=tuple(_warnings(record)),
    )


def _price(record: JudgeRecord) -> str:
    if record.judge.is_baseline:
        return gettext("free: no model is called")
    if record.price is None:
        return ""
    prices = {"input": f"{record.price.input:g}", "output": f"{record.price.output:g}"}
    return gettext("$%(input)s in, $%(output)s out for a million tokens") % prices


def _metric(one: MetricRecord) -> JudgeMetric:
    newer = gettext("version %(number)d is newer") % {"number": one.newer} if one.newer else ""
    return JudgeMetric(one, newer, weak=_is_weak(one.agreed), few=one.agreed is not None and one.agreed.n < FEW)


def _is_weak(agreed: Agreed | None) -> bool:
    return agreed is not None and agreed.value is not None and agreed.value < WEAK and agreed.n >= FEW


def _warnings(record: JudgeRecord) -> Iterator[str]:
    if record.judge.is_baseline:
        yield gettext("It compares words and understands nothing. It is here to be beaten.")
    elif record.price is None:
        yield gettext("No price of its model is known, so neither is the cost of its runs.")
    if record.trouble:
        yield gettext("Its last check failed: %(reason)s") % {"reason": explain_reason(record.trouble)}
    if record.changed:
        before, now = record.changed
        yield gettext(
            "Its agreement is that of %(before)s, but %(now)s answers under its name now: rate answers of a newer run."
        ) % {"before": before, "now": now}
    if record.newer:
        yield gettext("Version %(number)d of this judge is newer.") % {"number": record.newer}
    if not record.runs:
        yield gettext("No run has used it yet.")
    elif record.measured is None:
        yield gettext("Nobody has rated an answer it judged, so nobody knows how far it can be trusted.")
    if any(_is_weak(one.agreed) for one in record.metrics):
        yield gettext("It agrees weakly with the experts on some metrics.")


def _criterion(event: CriterionEvent) -> CriterionLine:
    spec, language = event.version.read(), get_language() or "en"
    title = spec.title_ko if language.startswith("ko") else spec.title_en
    return CriterionLine(event.version, spec, title, spec.texts(language).question)
