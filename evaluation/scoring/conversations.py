"""A family's conversation about one unit's answer, between the pure part and the ledger: which call comes next, which
of them the ledger has a reply to already, and the results at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaluation.core.registry import MetricSpec, RuleSettings
from evaluation.core.samples import Result
from evaluation.judging.asking import Case, Family, Heard, Talk
from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome, Rung
from evaluation.judging.formulas import capped
from evaluation.judging.gates import applicability, ruled
from evaluation.judging.lexical.scores import unanswerable
from evaluation.judging.prompt import judge_call, request_hash
from evaluation.judging.reading import hear
from evaluation.judging.rubric import Rubric
from evaluation.models import JudgeVersion, Reply, WorkUnit

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
        """A result for each metric of the family, with the profile's caps."""
        if self._case is None or self._talk is None:
            return self._left_out
        return {**self._left_out, **capped(self._case, self._talk.results)}

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
        specs = tuple(spec for spec in parts.specs if spec.name not in self._left_out)
        if answer.status != "failed":
            self._left_out |= ruled(self._setting.family, specs, question, said, self._setting.judge.language)
            specs = tuple(spec for spec in specs if spec.name not in self._left_out)
        if answer.status == "failed":
            self.reason = "upstream: " + answer.reason
            self._left_out |= {name: Result.failed(self.reason) for name in parts.metrics}
        elif specs:
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


def claimed_again(units: Iterable[WorkUnit]) -> list[WorkUnit]:
    """Those of the units that may have replies from earlier claims."""
    return [unit for unit in units if unit.fence > 1]


def earlier_replies(units: Iterable[WorkUnit]) -> dict[int, dict[str, JudgeReply]]:
    """Good replies of the units' present rounds, by unit: a conversation that was broken off goes on where it was.
    No query where there are no units."""
    again = list(units)
    if not again:
        return {}
    rounds = {unit.pk: unit.round for unit in again}
    found: dict[int, dict[str, JudgeReply]] = {}
    rows = Reply.objects.filter(attempt__unit__in=again, outcome__in=[Outcome.OK, Outcome.CACHED]).order_by("id")
    columns = ("attempt__unit_id", "attempt__round", "request_hash", "raw", "chances")
    for pk, number, digest, raw, chances in rows.values_list(*columns):
        if number == rounds[pk]:
            found.setdefault(pk, {})[digest] = JudgeReply(Outcome.OK, raw=raw, chances=chances)
    return found
