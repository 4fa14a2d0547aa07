"""The judge step of a run: claimed units become calls, replies become scores, and every call stands in the ledger.

A conversation about one unit's answer stands between the pure part and the ledger: which call comes next, which of them
the ledger has a reply to already, and the results at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from django.db import transaction
from django.db.models import prefetch_related_objects

from evaluation.core.metric_specs import MetricSpec, RuleSettings
from evaluation.core.samples import Result
from evaluation.judges.shipping import define
from evaluation.judging.baseline import unanswerable
from evaluation.judging.calls import Case, Family, Heard, JudgeCall, JudgeReply, Rung, Talk, reply_words
from evaluation.judging.catalogue import family_for
from evaluation.judging.formulas import capped, mapped
from evaluation.judging.gates import applicability, ruled
from evaluation.judging.prompt import hear, judge_call, request_hash
from evaluation.judging.rubric import Rubric
from evaluation.models import JudgeVersion, MetricDefinition, Reply, Run, RunEvent, RunJudge, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import PASSING
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.scoring import writing
from evaluation.scoring.first_values import ALIKE, first_values
from evaluation.scoring.replies import Flight
from evaluation.scoring.sessions import LATELY, CallSession
from evaluation.worker import units
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.lifecycle import RunConfig
from evaluation.worker.sessions import Sorted
from evaluation.worker.unit_calls import Purse, UnitCalls, is_suspect

Replies = Mapping[str, JudgeReply]  # by request hash


@dataclass(frozen=True, slots=True)
class Setting:
    """What all conversations of one judge of a run share."""

    family: Family
    rubric: Rubric
    specs: tuple[MetricSpec, ...]
    settings: RuleSettings
    judge: JudgeVersion
    rung: Rung = Rung.JSON_SCHEMA


def settings_of(run: Run, judges: Iterable[RunJudge], rungs: Mapping[int, Rung]) -> dict[int, Setting]:
    """Of the run's judges, by their key; ``rungs`` names the ways of asking that are not the best one."""
    config = RunConfig.model_validate(run.config)
    rules = rule_settings(ProfileSpec.model_validate(run.profile_version.spec), k=config.k)
    rules = replace(rules, embeds=config.embedding is not None)
    found = {}
    for judge in judges:
        rubric = judge.rubric_version.rubric
        family, rung = family_for(rubric), rungs.get(judge.pk, Rung.JSON_SCHEMA)
        found[judge.pk] = Setting(family, rubric, family.given, rules, judge.judge_version, rung)
    return found


class Conversation:
    """The calls about one unit, in their order. ``call`` is the next one to make, ``None`` at the end; then ``results``
    holds a result for each metric of the family, and ``reason`` why the unit as a whole failed, if it did."""

    def __init__(self, setting: Setting, unit: WorkUnit, replies: Replies) -> None:
        self._setting, self._unit, self._replies = setting, unit, replies
        self._talk: Talk | None = None
        self._case: Case | None = None
        self._left_out: dict[str, Result] = {}
        self.call: JudgeCall | None = None
        self.reason = ""
        self._begin()

    @property
    def results(self) -> dict[str, Result]:
        """A result for each metric of the family, by the version's score maps and with the profile's caps."""
        if self._case is None or self._talk is None:
            return self._left_out
        return {**self._left_out, **capped(self._case, mapped(self._case.rubric, self._talk.results))}

    def hear(self, heard: Heard) -> None:
        """Go on with what the reply to the present call holds."""
        if self._talk is not None and self.call is not None:
            self._talk.hear(heard)
            self._go_on()

    def _begin(self) -> None:
        answer = self._unit.answer
        if answer is None:
            self.reason = "upstream"
            return
        question, said = answer.question.read(), answer.read()
        parts = applicability(self._setting.specs, question, said, self._setting.settings)
        self._left_out = dict(parts.not_applicable)
        if self._setting.judge.is_baseline:
            self._left_out |= unanswerable(self._setting.rubric, parts.metrics)
        if answer.status == "failed":
            self.reason = "upstream: " + answer.reason
            self._left_out |= {name: Result.failed(self.reason) for name in parts.metrics}
            return
        specs = tuple(spec for spec in parts.specs if spec.name not in self._left_out)
        self._left_out |= ruled(self._setting.family, specs, question, said, self._setting.rubric.language)
        if specs := tuple(spec for spec in specs if spec.name not in self._left_out):
            expects = self._setting.judge.expects
            self._case = Case(self._setting.rubric, question, said, specs, self._setting.settings, expects)
            self._talk = Talk(self._setting.family.judge(self._case))
            self._go_on()

    def _go_on(self) -> None:
        """Make the next call ready; one that the ledger has a reply to is heard at once."""
        self.call = None
        while self._case is not None and self._talk is not None and self._talk.ask is not None:
            case, judge = self._case, self._setting.judge
            call = judge_call(
                case.rubric,
                case.question,
                case.answer,
                self._talk.ask,
                model=judge.model,
                parameters=judge.parameters,
                rung=self._setting.rung,
            )
            reply = self._replies.get(request_hash(call, repeat=self._unit.repeat)) if self._replies else None
            if reply is None:
                self.call = call
                return
            self._talk.hear(hear(reply, call.ask, call.rung))


def earlier_replies(units: Collection[WorkUnit]) -> dict[int, dict[str, JudgeReply]]:
    """Good replies of the units' present rounds, by unit: a conversation that was broken off goes on where it was.
    No query where there are no units."""
    if not units:
        return {}
    rounds = {unit.pk: unit.round for unit in units}
    found: dict[int, dict[str, JudgeReply]] = {}
    rows = Reply.objects.filter(attempt__unit__in=units, outcome__in=[Outcome.OK, Outcome.CACHED])
    rows = rows.exclude(raw="").order_by("id")  # ``purge`` empties old ones
    columns = ("attempt__unit_id", "attempt__round", "request_hash", "raw", "chances")
    for pk, number, digest, raw, chances in rows.values_list(*columns):
        if number == rounds[pk]:
            found.setdefault(pk, {})[digest] = JudgeReply(Outcome.OK, raw=raw, chances=chances)
    return found


def replies_lately(run: Run) -> list[Outcome]:
    """How judges' replies were read, the oldest first: as many as are looked at, of those since somebody let the run go
    on."""
    let_go_on = RunEvent.objects.filter(run=run, verb__in=["resumed", "retried"]).order_by("-id")[:1]
    sent = Reply.objects.filter(attempt__unit__run=run, attempt__unit__kind=WorkUnit.Kind.JUDGE)
    sent = sent.exclude(outcome__in=[*PASSING, Outcome.NOT_SENT, Outcome.CACHED])
    for event in let_go_on:
        sent = sent.filter(created_at__gt=event.created_at)
    return [Outcome(one) for one in sent.order_by("-id").values_list("outcome", flat=True)[:LATELY]][::-1]


@dataclass(slots=True, kw_only=True)
class UnitFlight(Flight):
    """A judge unit in a worker's hands, with the rows of the metrics it gives."""

    unit: WorkUnit
    talk: Conversation
    metrics: Mapping[str, MetricDefinition]

    @property
    def outcome(self) -> writing.Outcome:
        """What the conversation has come to."""
        return _outcome(self.unit, self.talk, self.metrics)

    @property
    def about(self) -> dict[str, int]:
        """Run and unit."""
        return {"concord.run.id": self.unit.run_id, "concord.unit.id": self.unit.pk}

    def adopt(self, unit: WorkUnit, now: float) -> None:
        """The unit as it was claimed again while its call is out."""
        self.unit, self.claimed_at, self.suspect = unit, now, is_suspect(unit)


@dataclass(kw_only=True)
class JudgeSession(UnitCalls, CallSession[UnitFlight]):
    """One worker's turn at the units of some judges of a run that share a client."""

    replies = Reply
    run: Run
    judges: Sequence[RunJudge]
    rungs: Mapping[int, Rung] = field(default_factory=dict)  # by judge of the run; the best one where none is named
    purse: Purse | None = None

    def __post_init__(self) -> None:
        CallSession.__post_init__(self)
        self.ahead = self.purse is None
        self.count(retry_on_db_error(partial(replies_lately, self.run)))
        self._judges = {judge.pk: judge for judge in self.judges}
        self._settings = settings_of(self.run, self.judges, self.rungs)
        self._metrics: dict[int, dict[str, MetricDefinition]] = {
            key: {spec.name: define(spec) for spec in setting.specs} for key, setting in self._settings.items()
        }

        self._first = retry_on_db_error(partial(first_values, self.run, self.judges, self._metrics))

    def _wants(self) -> int:
        """No more than the first values, until one of them is scored."""
        room, size = self._first.room(len(self._hands)), super()._wants()
        return size if room is None else max(0, min(size, room))

    def heard(self, done: Sequence[tuple[UnitFlight, JudgeReply]]) -> tuple[Sorted[UnitFlight], Callable[[bool], None]]:
        """What follows each reply; a person is needed where the first values all fail alike."""
        after, insert = super().heard(done)
        replies = {flight.key: reply for flight, reply in done}
        for flight in after.finished:
            alike = self._first.count(flight.unit.run_judge_id or 0, flight.talk.results)
            if alike and not after.needs_person:
                words = reply_words(replies[flight.key])
                after.needs_person = ": ".join(filter(None, (ALIKE, alike, words)))
        return after, insert

    def is_claimable(self) -> bool:
        """Whether one of the judges has a unit that could be claimed."""
        return WorkUnit.objects.filter(units.claimable(), run_id=self.run.pk, run_judge__in=self.judges).exists()

    def take(self, size: int) -> Sequence[UnitFlight] | None:
        """Claim units. A suspect is claimed when nothing else can be, and alone."""
        if self.purse and self.is_claimable() and not self.affords():
            return None
        claimed = self._claim(size)
        if not claimed and not self._hands:
            claimed = self._claim(1, suspects=True)
        if not claimed:
            return None
        attempts, heard = units.first_attempts(claimed), earlier_replies([unit for unit in claimed if unit.fence > 1])
        ready: list[UnitFlight] = []
        at_once: list[writing.Outcome] = []
        unsent: list[int] = []
        now = time.monotonic()
        for unit in claimed:
            if (mine := self._hands.get(unit.pk)) is not None:
                # Its lease lapsed while its call is out (a clock that jumped, a machine that slept): that call counts.
                mine.adopt(unit, now)
                unsent.append(attempts[unit.pk])
                continue
            talk = self.talk_about(unit, heard.get(unit.pk, {}))
            if talk.call is not None:
                ready.append(self.flight(unit, talk, attempts[unit.pk], now))
                continue
            at_once.append(_outcome(unit, talk, self._metrics[unit.run_judge_id or 0]))
            unsent.append(attempts[unit.pk])
        if unsent:
            with transaction.atomic():
                units.mark_unsent(unsent)
                self.ended += writing.write(at_once)
        self.recall(ready)
        return ready

    def _claim(self, size: int, *, suspects: bool = False) -> list[WorkUnit]:
        claimed = units.claim(
            self.run.pk,
            [WorkUnit.Kind.JUDGE],
            size,
            run_judge_ids=list(self._judges),
            suspects=suspects,
            related=["answer__question"],
            shuffled=self.down,
        )
        self.prepare(claimed)
        return claimed

    def prepare(self, claimed: Sequence[WorkUnit]) -> None:
        """Have at hand what a conversation needs of units that came with their answers and questions."""
        for unit in claimed:
            unit.run_judge = self._judges[unit.run_judge_id or 0]
        prefetch_related_objects([u.answer for u in claimed if u.answer is not None], "contexts")

    def talk_about(self, unit: WorkUnit, replies: Mapping[str, JudgeReply]) -> Conversation:
        """The conversation about a unit, as far as the replies to its requests lead."""
        return Conversation(self._settings[unit.run_judge_id or 0], unit, replies)

    def flight(self, unit: WorkUnit, talk: Conversation, attempt_id: int, now: float) -> UnitFlight:
        """A conversation that goes on, with the attempt that is made for it."""
        if talk.call is None:
            raise ValueError("the conversation has ended")
        return UnitFlight(
            key=unit.pk,
            talk=talk,
            attempt_id=attempt_id,
            call=talk.call,
            claimed_at=now,
            repeat=unit.repeat,
            suspect=is_suspect(unit),
            unit=unit,
            metrics=self._metrics[unit.run_judge_id or 0],
        )

    def end(self, flights: Sequence[UnitFlight]) -> None:
        """Write the scores."""
        writing.write([flight.outcome for flight in flights])


def _outcome(unit: WorkUnit, talk: Conversation, metrics: Mapping[str, MetricDefinition]) -> writing.Outcome:
    return writing.Outcome(unit, {metrics[name]: result for name, result in talk.results.items()}, talk.reason)
