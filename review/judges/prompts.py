"""The card of a judge: by which prompts it works, how they were proved, how far it agrees with experts and beside what,
how it took attacks, what it costs, and what happened to its prompts. One tree for the page, Markdown and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils.translation import gettext

from evaluation.core.errors import UnknownName
from evaluation.core.scales import Scale
from evaluation.criteria.rubrics import slot_of, standings
from evaluation.judging.catalogue import families
from evaluation.judging.drafting import as_yaml
from evaluation.messages import numbers
from evaluation.models import JudgeVersion, Preflight, Reply, RubricEvent, RubricVersion, Run, RunJudge
from evaluation.models.runs import UNPROVEN
from evaluation.runs.progress import CACHED, UNSENT
from review.agreement.run_agreement import By, kept_agreement, kept_of
from review.calibration.anchors import CheckTold, told_of
from review.comparisons.trend import judge_records
from review.judges.pages import attacks_of
from review.models import AnchorCheck, Licence, Look
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.variance import Source


@dataclass(frozen=True, slots=True)
class Agreement:
    """A metric's agreement in the newest run it was measured in. ``value`` is the ``statistic``, with its interval;
    ``experts``, ``baseline`` and ``constant`` are what experts among themselves, the offline baseline and the best
    constant guess reach by it. ``bias`` and ``bias_by_category`` are judge minus experts; ``bias_by_length`` is
    Spearman's correlation of that with the length of the answer, with its interval: above 0 the judge favours long
    ones. ``noise`` is the standard deviation of the judge's repeats of an answer, ``None`` where each was asked once.
    """

    metric: str
    statistic: str
    n: int
    value: float | None
    interval: tuple[float, float] | None
    experts: float | None
    baseline: float | None
    constant: float | None
    bias: float | None
    bias_by_category: dict[str, float | None]
    bias_by_length: dict[str, float] | None
    noise: float | None


@dataclass(frozen=True, slots=True)
class Proof:
    """A licence of the version in force: metric and questions, since when, by how many answers, which model."""

    metric: str
    questions: str
    proved_on: str
    answers: int
    seen: int
    model: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The version of a family that the judge works by. ``thousand`` is what 1,000 answers cost in US dollars, ``None``
    where it is unknown; ``looks`` are those at any version of the family, each with its one word; ``checks`` tell
    whether the judge moved since its proof."""

    family: str
    version: int
    content_hash: str
    text: str
    thousand: float | None
    proofs: list[Proof]
    looks: list[str]
    checks: list[CheckTold]
    history: list[str]


@dataclass(frozen=True, slots=True)
class JudgeCardFile:
    """The card. ``asked`` is the way of asking that the last preflight found, ``answered_by`` the model that answered
    it; ``measured_in`` names the run of the agreement, empty where there is none to show. ``attacks`` is passed of all,
    empty where it was never put to any."""

    judge: str
    model: str
    language: str
    parameters: dict[str, Any]
    method: str
    asked: str
    answered_by: str
    attacks: str
    measured_in: str
    agreement: list[Agreement]
    prompts: list[Prompt]

    @property
    def metrics(self) -> set[str]:
        """The names of all metrics it tells of."""
        shifts = (shift for prompt in self.prompts for check in prompt.checks for shift in check.shifts)
        licences = (proof for prompt in self.prompts for proof in prompt.proofs)
        return {one.metric for of in (self.agreement, licences, shifts) for one in of}

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


def judge_prompts(judge: JudgeVersion, *, in_words: bool = False) -> JudgeCardFile:
    """The card as things stand now; ``in_words`` for a page, with looks and history in the reader's language."""
    pinned = Preflight.objects.filter(judge_version=judge, outcome="ok").order_by("-id").first()
    attacks = attacks_of(judge)
    measured, agreement = _agreement(judge)
    return JudgeCardFile(
        judge=str(judge),
        model=judge.model,
        language=judge.language,
        parameters=judge.params,
        method=judge.method,
        asked=pinned.rung if pinned else "",
        answered_by=pinned.model_returned if pinned else "",
        attacks=attacks.passed if attacks else "",
        measured_in=measured,
        agreement=agreement,
        prompts=[] if judge.endpoint_id is None else list(_prompts(judge, in_words)),
    )


def _agreement(judge: JudgeVersion) -> tuple[str, list[Agreement]]:
    """The run it was measured in and the figures; none of a run in which a version judged that had not proved itself:
    made before a gold set was locked, it may hold verdicts on what is locked now."""
    (record,) = judge_records([judge])
    run = record.measured
    if run is None or run.judges.filter(judge_version=judge, standing__in=UNPROVEN).exists():
        return "", []
    found = _agreed(str(judge), kept_of([run]).get(run.pk, {}))
    return str(run) if found else "", found


def imported_card(run: Run, author: str) -> JudgeCardFile:
    """The card of a judge whose scores were imported: what they tell beside the experts of a run.

    :raises UnknownName: where no such judge gave scores that experts can be compared with.
    """
    figures = kept_agreement(run, by=By.CATEGORY)
    if not (found := _agreed(author, figures)):
        known = [name for name, of in figures["judges"].items() if any(one["imported"] for one in of.values())]
        raise UnknownName("imported judge", author, known)
    nothing = dict.fromkeys(("model", "language", "method", "asked", "answered_by", "attacks"), "")
    return JudgeCardFile(judge=author, parameters={}, measured_in=str(run), agreement=found, prompts=[], **nothing)


def _agreed(author: str, figures: dict[str, Any]) -> list[Agreement]:
    """What the figures of a run tell of a judge."""
    judges, experts = figures.get("judges", {}), figures.get("experts", {})
    found = []
    for metric, of in judges.get(author, {}).items():
        name = _statistic(of)
        beside = [
            said[metric].get(name) for author, said in judges.items() if metric in said and said[metric]["baseline"]
        ]
        interval = of.get("intervals", {}).get(name)
        found.append(
            Agreement(
                metric=metric,
                statistic=name,
                n=of["n"],
                value=of.get(name),
                interval=None if interval is None else (interval[0], interval[1]),
                experts=experts.get(metric, {}).get(name),
                baseline=beside[0] if beside else None,
                constant=(of["constant_guess"] or {}).get(name),
                bias=of.get("bias"),
                bias_by_category={part: said.get("bias") for part, said in of.get(f"by_{By.CATEGORY}", {}).items()},
                bias_by_length=of.get("bias_by_length"),
                noise=_noise(figures.get("variance", {}).get(metric, {}), author),
            )
        )
    return found


def _noise(of: dict[str, Any], author: str) -> float | None:
    variance = of.get("variance", {}).get(str(Source.NOISE)) if of.get("judge") == author else None
    return None if variance is None else math.sqrt(max(0.0, variance))


def _statistic(of: dict[str, Any]) -> str:
    return headline_statistic(Scale.parse(of["scale"]))


def _prompts(judge: JudgeVersion, in_words: bool) -> Iterator[Prompt]:
    """The version in force of every family that was put in force, looked at or judged by."""
    used = set(RunJudge.objects.filter(judge_version=judge).values_list("rubric_version__family", flat=True))
    looks = Look.objects.filter(project=judge.project_id, judge_version__name=judge.name).order_by("pk")
    told = list(looks.select_related("candidate", "active", "result"))
    for family in families():
        if family not in used | {look.candidate.family for look in told}:
            continue
        slot = slot_of(judge, family)
        active = standings(slot).active
        events = RubricEvent.objects.filter(**slot.columns).select_related("version").order_by("seq")
        yield Prompt(
            family=family,
            version=active.version,
            content_hash=active.content_hash,
            text=as_yaml(active.rubric),
            thousand=_thousand(judge, active),
            proofs=_proofs(judge, active),
            looks=[_look(look, in_words) for look in told if look.candidate.family == family],
            checks=told_of(
                AnchorCheck.objects.filter(
                    result__look__project=judge.project_id,
                    result__look__judge_version__name=judge.name,
                    result__look__candidate=active,
                )
            ),
            history=[_event(event, in_words) for event in events],
        )


def _event(event: RubricEvent, in_words: bool) -> str:
    words = (event.get_verb_display(), event.get_ground_display()) if in_words else (event.verb, event.ground)
    told = (event.created_at.date().isoformat(), str(event.version), *words, event.reason)
    return (" · " if in_words else " ").join(filter(None, told))


def _look(look: Look, in_words: bool) -> str:
    result = look.result if hasattr(look, "result") else None
    if not in_words:
        return f"{look}: {look.candidate} against {look.active}: {result.outcome if result else 'under way'}"
    word = result.get_outcome_display() if result else gettext("under way")
    names = {"look": look, "candidate": look.candidate, "active": look.active, "word": word}
    return gettext("%(look)s: %(candidate)s against %(active)s: %(word)s") % names


def _proofs(judge: JudgeVersion, active: RubricVersion) -> list[Proof]:
    rows = Licence.objects.filter(
        result__look__project=judge.project_id, result__look__judge_version=judge, result__look__candidate=active
    ).select_related("metric", "result")
    return [
        Proof(
            metric=row.metric.name,
            questions=row.question_set,
            proved_on=row.result.created_at.date().isoformat(),
            answers=row.answers,
            seen=row.seen,
            model=row.model,
        )
        for row in rows.order_by("pk")
    ]


def _thousand(judge: JudgeVersion, active: RubricVersion) -> float | None:
    """What 1,000 answers cost; replies from the ledger count by what they had cost. ``None`` where that of a call is
    unknown, or none was made."""
    unit = "attempt__unit"
    rows = Reply.objects.filter(
        **{f"{unit}__run_judge__judge_version": judge, f"{unit}__run_judge__rubric_version": active}
    )
    told = rows.aggregate(
        units=Count(unit, distinct=True),
        paid=Sum("cost"),
        spared=Sum("saved"),
        unknown=Count("id", filter=~Q(outcome__in=UNSENT) & Q(cost=None) | Q(outcome=CACHED, saved=None)),
    )
    if not told["units"] or told["unknown"]:
        return None
    paid = float((told["paid"] or 0) + (told["spared"] or 0))
    return paid * 1000 / int(told["units"])


def as_markdown(card: JudgeCardFile) -> str:
    """The card as Markdown; texts that people or models wrote stand in fences."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: JudgeCardFile) -> Iterator[str]:
    yield from (f"# {card.judge}", "")
    facts = {
        "model": card.model,
        "language": card.language,
        "levels are taken": card.method,
        "asked by": card.asked,
        "answered by": card.answered_by,
        "parameters": ", ".join(f"{name} {value}" for name, value in sorted(card.parameters.items())),
        "attacks passed": card.attacks,
    }
    yield from (f"- {name}: `{value}`" for name, value in facts.items() if value)
    if card.agreement:
        yield from ("", f"## Agreement with experts in {card.measured_in}", "")
        yield "| metric | statistic | n | value | 95% | experts | baseline | constant guess | bias |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for one in card.agreement:
            cells = [_number(value) for value in (one.experts, one.baseline, one.constant, one.bias)]
            interval = numbers.interval(*one.interval) if one.interval else "–"
            about = [one.metric, one.statistic, str(one.n), _number(one.value), interval]
            yield f"| {' | '.join([*about, *cells])} |"
            parts = ", ".join(f"{name or '–'} {_number(value)}" for name, value in one.bias_by_category.items())
            if len(one.bias_by_category) > 1:
                yield from ("", f"Bias of {one.metric} by category: {parts}", "")
        for one in card.agreement:
            if by := one.bias_by_length:
                interval = numbers.interval(by["low"], by["high"])
                yield from ("", f"Bias of {one.metric} with the length of answers: {by['rho']:+.3f} ({interval})")
            if one.noise is not None:
                yield from ("", f"Noise of {one.metric}, the standard deviation of repeats: {one.noise:.3f}")
    for prompt in card.prompts:
        cost = "unknown" if prompt.thousand is None else f"${prompt.thousand:.2f}"
        yield from ("", f"## {prompt.family}@{prompt.version}", "")
        yield f"- hash: `{prompt.content_hash[:12]}`, 1,000 answers cost {cost}"
        for proof in prompt.proofs:
            yield (
                f"- licence: {proof.metric} for {proof.questions}, proved {proof.proved_on} on {proof.answers} "
                f"answers ({proof.seen} seen), answered by {proof.model or 'unknown'}"
            )
        yield from (f"- look {line}" for line in prompt.looks)
        yield from (f"- {_check(check)}" for check in prompt.checks)
        yield from (f"- {line}" for line in prompt.history)
        yield from ("", "````yaml", prompt.text.rstrip().replace("````", "'''"), "````")


def _check(one: CheckTold) -> str:
    if not one.at:
        return f"check {one.number}: {one.waits_for or 'under way'}"
    moved = ", ".join(f"{of.metric} {of.change:+.3f}{' (moved)' if of.moved else ''}" for of in one.shifts)
    said = "reference" if one.number == 0 else moved or "too few verdicts"
    return f"check {one.number} of {one.at} on {one.anchors} anchors: {said}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
