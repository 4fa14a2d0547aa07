"""Estimates of a run before it starts: units, questions, calls, tokens, cost and duration.

Estimates use earlier replies of the same judge to the same rubric if there are any, or else the first prompts of the
run. Unknown figures are ``None``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Avg, Count, F, Q, prefetch_related_objects
from django.db.models.functions import Power
from django.utils.translation import gettext

from evaluation.judges.prices import price_table
from evaluation.judging.calls import JudgeReply
from evaluation.messages.numbers import format_duration, format_money
from evaluation.models import Answer, AnswerSet, JudgeVersion, Reply, Run, RunJudge, SystemVersion, User, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.network.outcomes import Outcome
from evaluation.runs.creation import CollectionRequest, draft_run
from evaluation.scoring.judges import UnitConversation, judge_settings
from evaluation.worker.lifecycle import (
    RunConfig,
    planned_units,
    questions_to_collect,
    run_answers,
    run_judges,
    seal_key,
    unit_steps,
)

# Prompts rendered to measure their length.
MAX_SAMPLED_PROMPTS = 20
# Earlier replies and answers used for means.
MAX_EARLIER_REPLIES = 200
# UTF-8 bytes: 4 English letters or one Hangul syllable, within about a third.
BYTES_PER_TOKEN = 3.5
# Tokens of a reply when there are no earlier ones.
DEFAULT_REPLY_TOKENS = 300
# Relative uncertainty of an estimate without earlier replies.
DEFAULT_SPREAD = 1 / 3


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """The estimated calls to one judge for one rubric. ``tokens`` are totals; ``measured`` is true if they are the mean
    of earlier replies. ``cost`` is in US dollars, ``seconds`` the duration at the limits of run and endpoint.
    ``spread`` is the relative uncertainty of tokens and cost, a 95% range if earlier replies exist."""

    judge: str
    rubric: str
    calls: int
    tokens_in: int
    tokens_out: int
    measured: bool
    cost: Decimal | None
    seconds: float | None
    spread: float = DEFAULT_SPREAD


@dataclass(frozen=True, slots=True)
class Plan:
    """``units`` are all steps, ``questions`` those that ask the system, ``calls`` those to judges at endpoints;
    ``paid`` are the calls to endpoints by judge. ``asking_seconds`` is ``None`` if the system has not answered before.
    """

    units: int
    answers: int
    questions: int
    calls: int
    paid: tuple[JudgeCalls, ...]
    asking_seconds: float | None

    @property
    def tokens(self) -> int:
        """Total tokens of all calls to endpoints."""
        return sum(judge_calls.tokens_in + judge_calls.tokens_out for judge_calls in self.paid)

    @property
    def cost(self) -> Decimal | None:
        """The cost of all calls to endpoints in US dollars, 0 without any; ``None`` if a price is unknown."""
        costs = [judge_calls.cost for judge_calls in self.paid]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))

    @property
    def cost_low(self) -> Decimal | None:
        """The lower bound of the cost."""
        return self._cost_bound(-1)

    @property
    def cost_high(self) -> Decimal | None:
        """The upper bound of the cost."""
        return self._cost_bound(1)

    def _cost_bound(self, sign: int) -> Decimal | None:
        margin = sum(
            (judge_calls.cost * Decimal(judge_calls.spread) for judge_calls in self.paid if judge_calls.cost),
            Decimal(0),
        )
        return None if self.cost is None else max(Decimal(0), self.cost + sign * margin)

    @property
    def seconds(self) -> float | None:
        """The duration from the first question or call to the last reply; ``None`` if a part is unknown."""
        parts = [judge_calls.seconds for judge_calls in self.paid] + ([self.asking_seconds] if self.questions else [])
        return None if None in parts else sum(part for part in parts if part is not None)

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON values; money as text."""
        payload = asdict(self) | {"tokens": self.tokens, "seconds": self.seconds}
        payload["paid"] = [row | {"cost": _format_cost(row["cost"])} for row in payload["paid"]]
        return payload | {name: _format_cost(getattr(self, name)) for name in ("cost", "cost_low", "cost_high")}


def _format_cost(cost: Decimal | None) -> str | None:
    return None if cost is None else f"{cost:.4f}"


def plan_run(source: AnswerSet | CollectionRequest, spec: RunSpec, by: User | None) -> Plan:
    """Estimate a run; nothing is stored.

    :raises UnknownName: see :func:`draft_run`.
    :raises DomainError: see :func:`draft_run`."""
    with transaction.atomic():
        plan = plan_draft(draft_run(source, spec, by))
        transaction.set_rollback(True)
    return plan


def plan_draft(run: Run) -> Plan:
    """Estimate the work of a draft. Units are counted, not created."""
    config, panel = RunConfig.model_validate(run.config), run_judges(run)
    existing, questions = run_answers(run), questions_to_collect(run).count()
    answers = existing.count() + questions
    sealed_count = sum(seal_key(answer) in panel.sealed for answer in existing.iterator()) if panel.sealed else 0
    counts: Counter[tuple[str, int | None]] = Counter()
    for answer_count, judges in ((answers - sealed_count, panel.judges), (sealed_count, panel.approved)):
        for step in unit_steps(config, judges):
            counts[step.kind, step.judge.pk if step.judge else None] += answer_count
    samples = _sample_units(run, [judge.pk for judge in panel.judges if counts[WorkUnit.Kind.JUDGE, judge.pk]])
    remote = run.judges.select_related("judge_version__endpoint", "rubric_version").order_by("pk")
    remote = remote.exclude(judge_version__endpoint=None)
    call_counts = {judge: counts[WorkUnit.Kind.JUDGE, judge.pk] for judge in remote}
    paid = [
        _judge_calls(run, config, judge, count, samples.get(judge.pk, ()))
        for judge, count in call_counts.items()
        if count
    ]
    return Plan(
        units=questions + counts.total(),
        answers=answers,
        questions=questions,
        calls=sum(call_counts.values()),
        paid=tuple(paid),
        asking_seconds=_asking_seconds(run.answer_set.system_version, questions),
    )


def _sample_units(run: Run, judges: Sequence[int]) -> dict[int, list[WorkUnit]]:
    """The first units of each judge about existing answers."""
    by_judge: dict[int, list[WorkUnit]] = {judge: [] for judge in judges}
    for unit in planned_units(run):
        if not any(len(sampled) < MAX_SAMPLED_PROMPTS for sampled in by_judge.values()):
            break
        sample = by_judge.get(unit.run_judge_id or 0)
        if sample is not None and len(sample) < MAX_SAMPLED_PROMPTS:
            sample.append(unit)
    return by_judge


def _judge_calls(run: Run, config: RunConfig, judge: RunJudge, count: int, sample: Sequence[WorkUnit]) -> JudgeCalls:
    version = judge.judge_version
    means = _reply_means(judge)
    share, mean_tokens_in = _prompt_size(run, judge, sample)
    if means["tokens_in"] is None:
        calls_per_unit: float = max(1, len(judge.rubric_version.rubric.steps))
        mean_tokens_out = float(DEFAULT_REPLY_TOKENS)
    else:
        calls_per_unit = (means["calls"] or 0) / (means["units"] or 1)
        mean_tokens_in, mean_tokens_out = means["tokens_in"], means["tokens_out"] or 0.0
    count = round(count * share * calls_per_unit)
    tokens_in, tokens_out = round(count * mean_tokens_in), round(count * mean_tokens_out)
    price = price_table().price(version.model, datetime.now(UTC).date())
    reply = JudgeReply(outcome=Outcome.OK, tokens_in=tokens_in, tokens_out=tokens_out)
    return JudgeCalls(
        judge=str(version),
        rubric=str(judge.rubric_version),
        calls=count,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        measured=means["tokens_in"] is not None,
        cost=price.cost(reply) if price else None,
        seconds=_seconds(version, config, count, tokens_in + tokens_out, means["elapsed"]),
        spread=_spread(means, count),
    )


def _spread(means: Mapping[str, float | None], calls: int) -> float:
    """1.96 standard errors of the sum of so many calls, relative to the sum, from the variance of earlier calls."""
    mean, reply_count = (means["tokens_in"] or 0.0) + (means["tokens_out"] or 0.0), means["calls"] or 0
    if not mean or reply_count < 2 or not calls:
        return DEFAULT_SPREAD
    variance = max(0.0, (means["squares"] or 0.0) - mean**2) * reply_count / (reply_count - 1)
    return 1.96 * math.sqrt(variance * (1 / reply_count + 1 / calls)) / mean


def _reply_means(judge: RunJudge) -> Mapping[str, float | None]:
    """Means of the latest replies of the judge's model to the rubric's family, ``None`` without any, and the ``calls``
    and ``units`` behind them. Some units needed one call, others one for each step."""
    version = judge.judge_version
    same_model = Q(judge_version__endpoint=version.endpoint_id, judge_version__model=version.model)
    matching_run_judges = RunJudge.objects.filter(
        same_model, rubric_version__family=judge.rubric_version.family
    ).values("pk")
    replies = Reply.objects.filter(
        outcome="ok", tokens_in__isnull=False, attempt__unit__run_judge__in=matching_run_judges
    )
    latest = replies.order_by("-pk").values("pk")[:MAX_EARLIER_REPLIES]
    means: Mapping[str, float | None] = Reply.objects.filter(pk__in=[row["pk"] for row in latest]).aggregate(
        squares=Avg(Power(F("tokens_in") + F("tokens_out"), 2)),
        tokens_in=Avg("tokens_in"),
        tokens_out=Avg("tokens_out"),
        elapsed=Avg("elapsed_seconds"),
        calls=Count("pk"),
        units=Count("attempt__unit", distinct=True),
    )
    return means


def _prompt_size(run: Run, judge: RunJudge, sample: Sequence[WorkUnit]) -> tuple[float, float]:
    """The share of the sampled answers that need a call, and the mean tokens of their prompts. Without samples, assumes
    one call per answer and an answer as long as the rubric."""
    rubric = judge.rubric_version.rubric
    if not sample:
        return 1.0, 2 * len(rubric.model_dump_json().encode()) / BYTES_PER_TOKEN
    prefetch_related_objects([unit.answer for unit in sample if unit.answer], "contexts")
    setting = judge_settings(run, [judge], {})[judge.pk]
    calls = [judge_call for unit in sample if (judge_call := UnitConversation(setting, unit, {}).call)]
    if not calls:
        return 0.0, 0.0
    sizes = [len(message["content"].encode()) for judge_call in calls for message in judge_call.rendered.messages]
    return len(calls) / len(sample), sum(sizes) / len(calls) / BYTES_PER_TOKEN


def _seconds(
    version: JudgeVersion, config: RunConfig, calls: int, tokens: int, seconds_per_call: float | None
) -> float | None:
    endpoint = version.endpoint
    if endpoint is None or seconds_per_call is None:
        return None
    concurrency = max(1, min(config.max_concurrency, endpoint.max_concurrency))
    amounts_and_limits = (calls, endpoint.requests_per_minute), (tokens, endpoint.tokens_per_minute)
    return max(
        [
            seconds_per_call * math.ceil(calls / concurrency),
            *(60 * amount / limit for amount, limit in amounts_and_limits if limit),
        ]
    )


def _asking_seconds(version: SystemVersion, questions: int) -> float | None:
    """The duration at the mean latency of the system's latest answers, of any version; 0 without questions."""
    if not questions:
        return 0.0
    answers = Answer.objects.filter(answer_set__system_version__system=version.system_id, latency_seconds__isnull=False)
    latest = [row["pk"] for row in answers.order_by("-pk").values("pk")[:MAX_EARLIER_REPLIES]]
    mean_latency = Answer.objects.filter(pk__in=latest).aggregate(mean=Avg("latency_seconds"))["mean"]
    system = version.system
    if mean_latency is None:
        return None
    limit = system.requests_per_minute
    return max(
        float(mean_latency) * math.ceil(questions / system.max_concurrency), 60 * questions / limit if limit else 0.0
    )


def plan_sentences(plan: Plan) -> list[str]:
    """Tokens, cost and duration in words; empty if no endpoint and no system is called."""
    sentences = []
    for judge_calls in (paid for paid in plan.paid if paid.calls):
        facts = {"judge": judge_calls.judge, "rubric": judge_calls.rubric, "calls": judge_calls.calls}
        tokens = {"tokens": f"{judge_calls.tokens_in + judge_calls.tokens_out:,}"}
        basis = (
            gettext("based on earlier replies") if judge_calls.measured else gettext("measured on this run's prompts")
        )
        sentences.append(
            gettext("%(judge)s, %(rubric)s: about %(calls)s calls and %(tokens)s tokens (%(how)s)")
            % (facts | tokens | {"how": basis})
        )
    if plan.paid:
        cost = gettext("unknown (model not in the price table)")
        if plan.cost_low is not None and plan.cost_high is not None:
            low, high = (format_money(bound, at_least=False) for bound in (plan.cost_low, plan.cost_high))
            cost = (
                gettext("about %s") % low
                if low == high
                else gettext("%(low)s to %(high)s") % {"low": low, "high": high}
            )
        sentences.append(gettext("Cost: %(cost)s") % {"cost": cost})
    if plan.paid or plan.questions:
        time = gettext("unknown (no earlier replies)")
        if plan.seconds is not None:
            time = gettext("about %s") % format_duration(plan.seconds)
        sentences.append(gettext("Time: %(time)s") % {"time": time})
    return sentences
