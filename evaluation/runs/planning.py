"""What a run would do before it does it: steps, questions to the system, calls, and what these may take.

Tokens, money and time are estimates, each from what is known best: replies of the same judge to the same rubric where
there are some, else the first prompts of the run itself, as they would be sent. What nothing is known of is ``None``
and said to be unknown.
"""

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
from evaluation.messages.numbers import about, money
from evaluation.models import Answer, AnswerSet, JudgeVersion, Reply, Run, RunJudge, SystemVersion, User, WorkUnit
from evaluation.models.run_spec import RunSpec
from evaluation.network.outcomes import Outcome
from evaluation.runs.making import Asking, draft_run
from evaluation.scoring.judges import Conversation, settings_of
from evaluation.worker.lifecycle import RunConfig, answers_in, bench_of, planned_units, questions_to_ask, seal_of, steps

SAMPLE = 20  # prompts that are made to measure how long they are
REMEMBERED = 200  # replies and answers that means are taken of
BYTES_PER_TOKEN = 3.5  # of UTF-8: 4 English letters, or a good syllable of Hangul, give or take a third
SHORT_REPLY = 300  # tokens of a reply nobody has seen yet
GUESSED = 1 / 3  # how far an estimate may be off, as a share of it, where no reply was seen yet


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """The calls to one judge about one rubric, every step of one in steps. ``tokens`` are of all of them, in and out,
    ``measured`` whether they are the mean of earlier replies; ``cost`` is in US dollars; ``seconds`` is how long they
    take at the pace that run and endpoint allow. ``spread`` is the share of them by which tokens and cost may be off:
    where earlier replies tell, of 95 such runs in a hundred."""

    judge: str
    rubric: str
    calls: int
    tokens_in: int
    tokens_out: int
    measured: bool
    cost: Decimal | None
    seconds: float | None
    spread: float = GUESSED


@dataclass(frozen=True, slots=True)
class Plan:
    """``units`` are all steps, ``questions`` those that ask the system, ``calls`` those of judges at endpoints, without
    the offline baseline's; ``paid`` are the calls to endpoints. ``asking_seconds`` is ``None`` where the system
    has not answered before."""

    units: int
    answers: int
    questions: int
    calls: int
    paid: tuple[JudgeCalls, ...]
    asking_seconds: float | None

    @property
    def tokens(self) -> int:
        """Of all calls to endpoints."""
        return sum(each.tokens_in + each.tokens_out for each in self.paid)

    @property
    def cost(self) -> Decimal | None:
        """US dollars of all calls to endpoints, 0 without any; ``None`` where a price is unknown."""
        costs = [each.cost for each in self.paid]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))

    @property
    def cost_low(self) -> Decimal | None:
        """The least that the cost is likely to be."""
        return self._at(-1)

    @property
    def cost_high(self) -> Decimal | None:
        """The most that it is likely to be."""
        return self._at(1)

    def _at(self, end: int) -> Decimal | None:
        off = sum((one.cost * Decimal(one.spread) for one in self.paid if one.cost), Decimal(0))
        return None if self.cost is None else max(Decimal(0), self.cost + end * off)

    @property
    def seconds(self) -> float | None:
        """From the first question or call to the last reply; ``None`` where a part is unknown."""
        parts = [each.seconds for each in self.paid] + ([self.asking_seconds] if self.questions else [])
        return None if None in parts else sum(part for part in parts if part is not None)

    def as_json(self) -> dict[str, Any]:
        """For programs; money as text, as everywhere."""
        found = asdict(self) | {"tokens": self.tokens, "seconds": self.seconds}
        found["paid"] = [one | {"cost": _text(one["cost"])} for one in found["paid"]]
        return found | {name: _text(getattr(self, name)) for name in ("cost", "cost_low", "cost_high")}


def _text(cost: Decimal | None) -> str | None:
    return None if cost is None else f"{cost:.4f}"


def planned(source: AnswerSet | Asking, spec: RunSpec, by: User | None) -> Plan:
    """What asking for the run would do; nothing stays of it.

    :raises UnknownName: see :func:`draft_run`.
    :raises Refused: see :func:`draft_run`.
    """
    with transaction.atomic():
        plan = plan_of(draft_run(source, spec, by))
        transaction.set_rollback(True)
    return plan


def plan_of(run: Run) -> Plan:
    """What starting a draft would do. Units are counted, not made."""
    config, bench = RunConfig.model_validate(run.config), bench_of(run)
    there, questions = answers_in(run), questions_to_ask(run).count()
    answers = there.count() + questions
    sealed = sum(seal_of(answer) in bench.sealed for answer in there.iterator()) if bench.sealed else 0
    counts: Counter[tuple[str, int | None]] = Counter()
    for many, judges in ((answers - sealed, bench.judges), (sealed, bench.proven)):
        for step in steps(config, judges):
            counts[step.kind, step.judge.pk if step.judge else None] += many
    samples = _samples(run, [judge.pk for judge in bench.judges if counts[WorkUnit.Kind.JUDGE, judge.pk]])
    remote = run.judges.select_related("judge_version__endpoint", "rubric_version").order_by("pk")
    remote = remote.exclude(judge_version__endpoint=None)
    steps_of = {judge: counts[WorkUnit.Kind.JUDGE, judge.pk] for judge in remote}
    paid = [_calls(run, config, judge, count, samples.get(judge.pk, ())) for judge, count in steps_of.items() if count]
    return Plan(
        units=questions + counts.total(),
        answers=answers,
        questions=questions,
        calls=sum(steps_of.values()),
        paid=tuple(paid),
        asking_seconds=_asking_seconds(run.answer_set.system_version, questions),
    )


def _samples(run: Run, judges: Sequence[int]) -> dict[int, list[WorkUnit]]:
    """The first units of each judge about answers that are there."""
    found: dict[int, list[WorkUnit]] = {judge: [] for judge in judges}
    for unit in planned_units(run):
        if not any(len(several) < SAMPLE for several in found.values()):
            break
        sample = found.get(unit.run_judge_id or 0)
        if sample is not None and len(sample) < SAMPLE:
            sample.append(unit)
    return found


def _calls(run: Run, config: RunConfig, judge: RunJudge, count: int, sample: Sequence[WorkUnit]) -> JudgeCalls:
    version = judge.judge_version
    before = _remembered(judge)
    if before["tokens_in"] is None:
        share, each_in = _prompts(run, judge, sample)
        each_unit, each_out = share * max(1, len(judge.rubric_version.rubric.steps)), float(SHORT_REPLY)
    else:
        each_unit = (before["calls"] or 0) / (before["units"] or 1)
        each_in, each_out = before["tokens_in"], before["tokens_out"] or 0.0
    count = round(count * each_unit)
    tokens_in, tokens_out = round(count * each_in), round(count * each_out)
    price = price_table().price(version.model, datetime.now(UTC).date())
    spent = JudgeReply(outcome=Outcome.OK, tokens_in=tokens_in, tokens_out=tokens_out)
    return JudgeCalls(
        judge=str(version),
        rubric=str(judge.rubric_version),
        calls=count,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        measured=before["tokens_in"] is not None,
        cost=price.cost(spent) if price else None,
        seconds=_seconds(version, config, count, tokens_in + tokens_out, before["elapsed"]),
        spread=_spread(before, count),
    )


def _spread(before: Mapping[str, float | None], calls: int) -> float:
    """1.96 standard errors of the sum of so many calls like earlier ones, as a share of it."""
    mean, seen = (before["tokens_in"] or 0.0) + (before["tokens_out"] or 0.0), before["calls"] or 0
    if not mean or seen < 2 or not calls:
        return GUESSED
    variance = max(0.0, (before["squares"] or 0.0) - mean**2) * seen / (seen - 1)
    return 1.96 * math.sqrt(variance * (1 / seen + 1 / calls)) / mean


def _remembered(judge: RunJudge) -> Mapping[str, float | None]:
    """Means of the latest replies of the judge's model to the rubric's family, ``None`` without any; and how many
    ``calls`` how many ``units`` took. Units that needed no call gave theirs back, others took one for each step."""
    version = judge.judge_version
    same = Q(judge_version__endpoint=version.endpoint_id, judge_version__model=version.model)
    asked = RunJudge.objects.filter(same, rubric_version__family=judge.rubric_version.family).values("pk")
    called = Q(outcome="ok")
    known = called & Q(tokens_in__isnull=False) | Q(outcome="not_sent")
    replies = Reply.objects.filter(known, attempt__unit__run_judge__in=asked)
    latest = replies.order_by("-pk").values("pk")[:REMEMBERED]
    means: Mapping[str, float | None] = Reply.objects.filter(pk__in=[row["pk"] for row in latest]).aggregate(
        squares=Avg(Power(F("tokens_in") + F("tokens_out"), 2)),
        tokens_in=Avg("tokens_in"),
        tokens_out=Avg("tokens_out"),
        elapsed=Avg("elapsed_seconds", filter=called),
        calls=Count("pk", filter=called),
        units=Count("attempt__unit", distinct=True),
    )
    return means


def _prompts(run: Run, judge: RunJudge, sample: Sequence[WorkUnit]) -> tuple[float, float]:
    """The share of the sampled answers that need a call, and the mean tokens of their prompts. Of answers that are yet
    to be given it is taken that each needs one, as long as the rubric and an answer of its length."""
    rubric = judge.rubric_version.rubric
    if not sample:
        return 1.0, 2 * len(rubric.model_dump_json().encode()) / BYTES_PER_TOKEN
    prefetch_related_objects([unit.answer for unit in sample if unit.answer], "contexts")
    setting = settings_of(run, [judge], {})[judge.pk]
    calls = [call for unit in sample if (call := Conversation(setting, unit, {}).call)]
    if not calls:
        return 0.0, 0.0
    sizes = [len(message["content"].encode()) for call in calls for message in call.rendered.messages]
    return len(calls) / len(sample), sum(sizes) / len(calls) / BYTES_PER_TOKEN


def _seconds(version: JudgeVersion, config: RunConfig, calls: int, tokens: int, each: float | None) -> float | None:
    endpoint = version.endpoint
    if endpoint is None or each is None:
        return None
    at_once = max(1, min(config.max_concurrency, endpoint.max_concurrency))
    by_minute = (calls, endpoint.requests_per_minute), (tokens, endpoint.tokens_per_minute)
    return max([each * math.ceil(calls / at_once), *(60 * many / limit for many, limit in by_minute if limit)])


def _asking_seconds(version: SystemVersion, questions: int) -> float | None:
    """At the mean latency of the system's latest answers, any version of it; 0 without questions."""
    if not questions:
        return 0.0
    answers = Answer.objects.filter(answer_set__system_version__system=version.system_id, latency_seconds__isnull=False)
    latest = [row["pk"] for row in answers.order_by("-pk").values("pk")[:REMEMBERED]]
    each = Answer.objects.filter(pk__in=latest).aggregate(mean=Avg("latency_seconds"))["mean"]
    system = version.system
    if each is None:
        return None
    limit = system.requests_per_minute
    return max(float(each) * math.ceil(questions / system.max_concurrency), 60 * questions / limit if limit else 0.0)


def plan_sentences(plan: Plan) -> list[str]:
    """Tokens, money and time in words; none where no endpoint is called and no system asked."""
    said = []
    for one in (paid for paid in plan.paid if paid.calls):
        facts = {"judge": one.judge, "rubric": one.rubric, "calls": one.calls}
        tokens = {"tokens": f"{one.tokens_in + one.tokens_out:,}"}
        how = gettext("as earlier replies took") if one.measured else gettext("measured on prompts of this run")
        said.append(
            gettext("%(judge)s, %(rubric)s: about %(calls)s calls and %(tokens)s tokens (%(how)s)")
            % (facts | tokens | {"how": how})
        )
    if plan.paid:
        cost = gettext("unknown: the price table does not name the model")
        if plan.cost_low is not None and plan.cost_high is not None:
            low, high = (money(one, at_least=False) for one in (plan.cost_low, plan.cost_high))
            cost = (
                gettext("about %s") % low
                if low == high
                else gettext("%(low)s to %(high)s") % {"low": low, "high": high}
            )
        said.append(gettext("Cost: %(cost)s") % {"cost": cost})
    if plan.paid or plan.questions:
        time = gettext("unknown: there are no earlier replies to go by")
        if plan.seconds is not None:
            time = gettext("about %s") % about(plan.seconds)
        said.append(gettext("Time: %(time)s") % {"time": time})
    return said
