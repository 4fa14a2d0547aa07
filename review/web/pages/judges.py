"""Judges and criteria: what each judge gives by which rubric, how far experts agree, what it costs, what to mind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import get_language, gettext

from evaluation.models import CriterionEvent
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from review.comparisons.judge_records import Agreed, JudgeRecord, MetricRecord
from review.web.pages.judge_attacks import AttacksCard, attacks_card
from review.web.pages.statistic_names import STATISTICS
from review.web.pages.trust import FEW, WEAK


@dataclass(frozen=True, slots=True)
class MetricLine:
    """A metric with its rubric and, where it is at hand, the agreement; texts are a dash where there is nothing.
    ``weak``: agreement on enough answers is low; ``few``: there are too few to say."""

    title: str
    rubric: str
    newer: str
    statistic: str
    meaning: str
    value: str
    interval: str
    reason: str
    experts: str
    bias: str
    n: str
    weak: bool
    few: bool


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """A judge. ``run_id`` is the run whose agreement is shown, ``waiting`` the run whose agreement has to be looked at
    first because none is at hand."""

    judge_id: int
    title: str
    model: str
    endpoint: str
    language: str
    levels: str
    baseline: bool
    price: str
    runs: int
    last_id: int | None
    last_name: str
    run_id: int | None
    run_name: str
    waiting: int | None
    metrics: tuple[MetricLine, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CriterionLine:
    """A custom criterion in force."""

    version_id: int
    name: str
    title: str
    question: str
    scale: str
    version: int


@dataclass(frozen=True, slots=True)
class JudgesPage:
    """All judges, the newest first, and the criteria in force."""

    judges: tuple[JudgeCard, ...]
    criteria: tuple[CriterionLine, ...]
    newer: str
    older: str


@dataclass(frozen=True, slots=True)
class JudgePage:
    """One judge with its parameters and the other versions of its name (id and title)."""

    card: JudgeCard
    parameters: tuple[tuple[str, str], ...]
    versions: tuple[tuple[int, str], ...]
    attacks: AttacksCard


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
    return JudgePage(judge_card(record), parameters, tuple(versions), attacks_card(record.judge))


def judge_card(record: JudgeRecord) -> JudgeCard:
    """A judge with everything that is at hand."""
    judge, measured = record.judge, record.measured
    title = f"{judge.name} v{judge.version}"
    return JudgeCard(
        judge_id=judge.pk,
        title=gettext("offline baseline") if judge.is_baseline else title,
        model=judge.model,
        endpoint=judge.endpoint.name if judge.endpoint else "",
        language=gettext("Korean") if judge.language.startswith("ko") else gettext("English"),
        levels=judge.get_method_display() if judge.endpoint else "",
        baseline=judge.is_baseline,
        price=_price(record),
        runs=record.runs,
        last_id=record.last.pk if record.last else None,
        last_name=str(record.last) if record.last else "",
        run_id=measured.pk if measured and record.kept else None,
        run_name=str(measured) if measured and record.kept else "",
        waiting=measured.pk if measured and not record.kept else None,
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


def _metric(one: MetricRecord) -> MetricLine:
    agreed = one.agreed
    newer = gettext("version %(number)d is newer") % {"number": one.newer} if one.newer else ""
    title, rubric = one.spec.title.in_language(get_language() or "en"), str(one.rubric)
    if agreed is None:
        return MetricLine(title, rubric, newer, "", "", "–", "", "", "–", "–", "–", weak=False, few=False)
    statistic, meaning = STATISTICS[agreed.statistic]
    return MetricLine(
        title=title,
        rubric=rubric,
        newer=newer,
        statistic=str(statistic),
        meaning=str(meaning),
        value=_number(agreed.value),
        interval=numbers.interval(agreed.low, agreed.high),
        reason=explain_reason(agreed.reason) if agreed.reason else "",
        experts=_number(agreed.experts),
        bias="–" if agreed.bias is None else numbers.signed(agreed.bias),
        n=str(agreed.n),
        weak=_is_weak(agreed),
        few=agreed.n < FEW,
    )


def _is_weak(agreed: Agreed) -> bool:
    return agreed.value is not None and agreed.value < WEAK and agreed.n >= FEW


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
    if any(one.agreed and _is_weak(one.agreed) for one in record.metrics):
        yield gettext("It agrees weakly with the experts on some metrics.")


def _criterion(event: CriterionEvent) -> CriterionLine:
    spec, language = event.version.read(), get_language() or "en"
    title = spec.title_ko if language.startswith("ko") else spec.title_en
    scale = numbers.scale_name(spec.scale)
    return CriterionLine(
        event.version_id, spec.name, title, spec.texts(language).question, scale, event.version.version
    )


def _number(value: float | None) -> str:
    return "–" if value is None else numbers.plain(value)
