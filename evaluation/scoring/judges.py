"""The judge step of a run: claimed units become calls, and replies become scores; each call is recorded.

A conversation about a unit's answer connects the pure judging code with stored replies: the next call, replies that
already exist, and the final results."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from django.db import transaction
from django.db.models import prefetch_related_objects

from evaluation.core.metric_specs import MetricSpec, RuleSettings
from evaluation.core.samples import Result
from evaluation.judges.shipped import metric_row
from evaluation.judging.baseline import unsupported_metrics
from evaluation.judging.calls import (
    Family,
    JudgeCall,
    JudgeCase,
    JudgeDialog,
    JudgeReply,
    ParsedReply,
    ResponseFormat,
    quote_server_message,
)
from evaluation.judging.catalogue import family_for
from evaluation.judging.formulas import apply_caps, apply_score_maps
from evaluation.judging.prechecks import applicability, rule_results
from evaluation.judging.prompt import judge_call, parse_reply, request_hash
from evaluation.judging.rubric import Rubric
from evaluation.models import JudgeVersion, MetricDefinition, Reply, Run, RunEvent, RunJudge, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import TRANSIENT
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.scoring import scores
from evaluation.scoring.first_values import FIRST_VALUES_FAIL_ALIKE, first_values
from evaluation.scoring.replies import JudgeConversationCall
from evaluation.scoring.sessions import RECENT_REPLIES, CallSession
from evaluation.worker import units
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.lifecycle import RunConfig
from evaluation.worker.sessions import Triage
from evaluation.worker.unit_calls import BudgetLimit, UnitCalls, is_suspect

# Keyed by request hash.
RepliesByHash = Mapping[str, JudgeReply]


@dataclass(frozen=True, slots=True)
class JudgeSetting:
    """The settings shared by all conversations of one judge of a run."""

    family: Family
    rubric: Rubric
    specs: tuple[MetricSpec, ...]
    settings: RuleSettings
    judge: JudgeVersion
    response_format: ResponseFormat = ResponseFormat.JSON_SCHEMA


def judge_settings(
    run: Run, judges: Iterable[RunJudge], response_formats: Mapping[int, ResponseFormat]
) -> dict[int, JudgeSetting]:
    """The settings of the run's judges, by key; ``response_formats`` overrides the default format."""
    config = RunConfig.model_validate(run.config)
    rules = rule_settings(ProfileSpec.model_validate(run.profile_version.spec), k=config.k)
    rules = replace(rules, embeds=config.embedding is not None)
    by_judge = {}
    for judge in judges:
        rubric = judge.rubric_version.rubric
        family, response_format = family_for(rubric), response_formats.get(judge.pk, ResponseFormat.JSON_SCHEMA)
        by_judge[judge.pk] = JudgeSetting(
            family, rubric, family.produced_metrics, rules, judge.judge_version, response_format
        )
    return by_judge


class UnitConversation:
    """The calls about one unit, in order. ``call`` is the next one, ``None`` at the end; then ``results`` has a result
    for each metric of the family, and ``reason`` says why the unit failed as a whole, if it did."""

    def __init__(self, setting: JudgeSetting, unit: WorkUnit, replies: RepliesByHash) -> None:
        self._setting, self._unit, self._replies = setting, unit, replies
        self._exchange: JudgeDialog | None = None
        self._case: JudgeCase | None = None
        self._decided: dict[str, Result] = {}
        self.call: JudgeCall | None = None
        self.reason = ""
        self._begin()

    @property
    def results(self) -> dict[str, Result]:
        """A result for each metric of the family, after the version's score maps and the profile's caps."""
        if self._case is None or self._exchange is None:
            return self._decided
        return {**self._decided, **apply_caps(self._case, apply_score_maps(self._case.rubric, self._exchange.results))}

    def receive(self, parsed: ParsedReply) -> None:
        """Continue with the reply to the current call."""
        if self._exchange is not None and self.call is not None:
            self._exchange.advance(parsed)
            self._prepare_next_call()

    def _begin(self) -> None:
        answer = self._unit.answer
        if answer is None:
            self.reason = "upstream"
            return
        question, answer_spec = answer.question.read(), answer.read()
        applicable = applicability(self._setting.specs, question, answer_spec, self._setting.settings)
        self._decided = dict(applicable.not_applicable)
        if self._setting.judge.is_baseline:
            self._decided |= unsupported_metrics(self._setting.rubric, applicable.metrics)
        if answer.status == "failed":
            self.reason = "upstream: " + answer.reason
            self._decided |= {name: Result.failed(self.reason) for name in applicable.metrics}
            return
        specs = tuple(spec for spec in applicable.specs if spec.name not in self._decided)
        self._decided |= rule_results(self._setting.family, specs, question, answer_spec, self._setting.rubric.language)
        if specs := tuple(spec for spec in specs if spec.name not in self._decided):
            expects = self._setting.judge.expects
            self._case = JudgeCase(self._setting.rubric, question, answer_spec, specs, self._setting.settings, expects)
            self._exchange = JudgeDialog(self._setting.family.judge(self._case))
            self._prepare_next_call()

    def _prepare_next_call(self) -> None:
        """Prepare the next call; calls with a stored reply are answered at once."""
        self.call = None
        while self._case is not None and self._exchange is not None and self._exchange.request is not None:
            case, judge = self._case, self._setting.judge
            call = judge_call(
                case.rubric,
                case.question,
                case.answer,
                self._exchange.request,
                model=judge.model,
                parameters=judge.parameters,
                response_format=self._setting.response_format,
            )
            reply = self._replies.get(request_hash(call, repeat=self._unit.repeat)) if self._replies else None
            if reply is None:
                self.call = call
                return
            self._exchange.advance(parse_reply(reply, call.judge_request, call.response_format))


def earlier_replies(units: Collection[WorkUnit]) -> dict[int, dict[str, JudgeReply]]:
    """Good replies of the units' current rounds, by unit, so that an interrupted conversation continues. No query
    without units."""
    if not units:
        return {}
    rounds = {unit.pk: unit.round for unit in units}
    by_unit: dict[int, dict[str, JudgeReply]] = {}
    rows = Reply.objects.filter(attempt__unit__in=units, outcome__in=[Outcome.OK, Outcome.CACHED])
    # ``purge`` empties old ones.
    rows = rows.exclude(raw="").order_by("id")
    columns = ("attempt__unit_id", "attempt__round", "request_hash", "raw", "chances")
    for pk, reply_round, digest, raw, chances in rows.values_list(*columns):
        if reply_round == rounds[pk]:
            by_unit.setdefault(pk, {})[digest] = JudgeReply(Outcome.OK, raw=raw, chances=chances)
    return by_unit


def recent_outcomes(run: Run) -> list[Outcome]:
    """The outcomes of the run's last judge replies since it was last resumed or retried, oldest first."""
    resumptions = RunEvent.objects.filter(run=run, verb__in=["resumed", "retried"]).order_by("-id")[:1]
    judge_replies = Reply.objects.filter(attempt__unit__run=run, attempt__unit__kind=WorkUnit.Kind.JUDGE)
    judge_replies = judge_replies.exclude(outcome__in=[*TRANSIENT, Outcome.NOT_SENT, Outcome.CACHED])
    for event in resumptions:
        judge_replies = judge_replies.filter(created_at__gt=event.created_at)
    return [
        Outcome(outcome) for outcome in judge_replies.order_by("-id").values_list("outcome", flat=True)[:RECENT_REPLIES]
    ][::-1]


@dataclass(slots=True, kw_only=True)
class JudgeUnitCall(JudgeConversationCall):
    """A judge unit with a call in flight, and the metric rows it scores."""

    unit: WorkUnit
    conversation: UnitConversation
    metrics: Mapping[str, MetricDefinition]

    @property
    def outcome(self) -> scores.UnitOutcome:
        return unit_outcome(self.unit, self.conversation, self.metrics)

    @property
    def trace_ids(self) -> dict[str, int]:
        return {"concord.run.id": self.unit.run_id, "concord.unit.id": self.unit.pk}

    def reclaim(self, unit: WorkUnit, now: float) -> None:
        """Take the unit as claimed again while its call is in flight."""
        self.unit, self.claimed_at, self.suspect = unit, now, is_suspect(unit)


@dataclass(kw_only=True)
class JudgeSession(UnitCalls, CallSession[JudgeUnitCall]):
    """A worker's loop over the units of judges of a run that share a client."""

    replies = Reply
    run: Run
    judges: Sequence[RunJudge]
    # By judge of the run; the default format for others.
    response_formats: Mapping[int, ResponseFormat] = field(default_factory=dict)
    budget_guard: BudgetLimit | None = None

    def __post_init__(self) -> None:
        CallSession.__post_init__(self)
        self.prefetch = self.budget_guard is None
        self.count(retry_on_db_error(partial(recent_outcomes, self.run)))
        self._judges = {judge.pk: judge for judge in self.judges}
        self._settings = judge_settings(self.run, self.judges, self.response_formats)
        self._metrics: dict[int, dict[str, MetricDefinition]] = {
            key: {spec.name: metric_row(spec) for spec in setting.specs} for key, setting in self._settings.items()
        }

        self._first_values = retry_on_db_error(partial(first_values, self.run, self.judges, self._metrics))

    def _claim_size(self) -> int:
        """At most the first values, until one of them is scored."""
        room, size = self._first_values.room(len(self._flights)), super()._claim_size()
        return size if room is None else max(0, min(size, room))

    def triage(
        self, done: Sequence[tuple[JudgeUnitCall, JudgeReply]]
    ) -> tuple[Triage[JudgeUnitCall], Callable[[bool], None]]:
        """Decide the next step of each reply; stop for a person if the first values all fail alike."""
        triage, insert = super().triage(done)
        replies = {flight.key: reply for flight, reply in done}
        for flight in triage.finished:
            alike = self._first_values.count(flight.unit.run_judge_id or 0, flight.conversation.results)
            if alike and not triage.needs_person:
                words = quote_server_message(replies[flight.key])
                triage.needs_person = ": ".join(filter(None, (FIRST_VALUES_FAIL_ALIKE, alike, words)))
        return triage, insert

    def is_claimable(self) -> bool:
        """Return whether one of the judges has a claimable unit."""
        return WorkUnit.objects.filter(units.claimable(), run_id=self.run.pk, run_judge__in=self.judges).exists()

    def take(self, size: int) -> Sequence[JudgeUnitCall] | None:
        """Claim units. A suspect unit is claimed alone, and only if no other is claimable."""
        if self.budget_guard and self.is_claimable() and not self.within_budget():
            return None
        claimed = self._claim(size)
        if not claimed and not self._flights:
            claimed = self._claim(1, suspects=True)
        if not claimed:
            return None
        replies_by_unit = earlier_replies([unit for unit in claimed if unit.fence > 1])
        conversations: dict[WorkUnit, UnitConversation] = {}
        outcomes: list[scores.UnitOutcome] = []
        now = time.monotonic()
        for unit in claimed:
            if (unit_call := self._flights.get(unit.pk)) is not None:
                # The lease expired during the call, for example because the machine slept. That call counts.
                unit_call.reclaim(unit, now)
                continue
            conversation = self.conversation_about(unit, replies_by_unit.get(unit.pk, {}))
            if conversation.call is not None:
                conversations[unit] = conversation
            else:
                outcomes.append(unit_outcome(unit, conversation, self._metrics[unit.run_judge_id or 0]))
        with transaction.atomic():
            ended = scores.write_scores(outcomes) if outcomes else 0
            attempts = units.record_first_attempts(conversations)
        self.ended_conversations += ended
        unit_calls = [
            self.flight(unit, conversation, attempts[unit.pk], now) for unit, conversation in conversations.items()
        ]
        self.load_earlier_outcomes(unit_calls)
        return unit_calls

    def _claim(self, size: int, *, suspects: bool = False) -> list[WorkUnit]:
        claimed = units.claim(
            self.run.pk,
            [WorkUnit.Kind.JUDGE],
            size,
            run_judge_ids=list(self._judges),
            suspects=suspects,
            related=["answer__question"],
            shuffled=self.is_down,
        )
        self.prepare(claimed)
        return claimed

    def prepare(self, claimed: Sequence[WorkUnit]) -> None:
        """Load what conversations need, for units that come with answers and questions."""
        for unit in claimed:
            unit.run_judge = self._judges[unit.run_judge_id or 0]
        prefetch_related_objects([u.answer for u in claimed if u.answer is not None], "contexts")

    def conversation_about(self, unit: WorkUnit, replies: Mapping[str, JudgeReply]) -> UnitConversation:
        """The conversation about a unit, continued by the given replies."""
        return UnitConversation(self._settings[unit.run_judge_id or 0], unit, replies)

    def flight(self, unit: WorkUnit, conversation: UnitConversation, attempt_id: int, now: float) -> JudgeUnitCall:
        """A conversation with its next call, and the attempt recorded for it."""
        if conversation.call is None:
            raise ValueError("the conversation has ended")
        return JudgeUnitCall(
            key=unit.pk,
            conversation=conversation,
            attempt_id=attempt_id,
            call=conversation.call,
            claimed_at=now,
            repeat=unit.repeat,
            suspect=is_suspect(unit),
            unit=unit,
            metrics=self._metrics[unit.run_judge_id or 0],
        )

    def end(self, flights: Sequence[JudgeUnitCall]) -> None:
        scores.write_scores([flight.outcome for flight in flights])


def unit_outcome(
    unit: WorkUnit, conversation: UnitConversation, metrics: Mapping[str, MetricDefinition]
) -> scores.UnitOutcome:
    return scores.UnitOutcome(
        unit, {metrics[name]: result for name, result in conversation.results.items()}, conversation.reason
    )
