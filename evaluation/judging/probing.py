"""What a judge can do, found out by a few small calls before a run: does it answer, how can it be asked for a verdict
that reads, does it tell its tokens and log probabilities. What is found holds for the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.judging.calls import JudgeCall, JudgeClient, JudgeReply, Rung
from evaluation.judging.formulas import scores_ask
from evaluation.judging.logprobs import asking_for
from evaluation.judging.prompt import hear, judge_call
from evaluation.judging.rubric import Level, Rubric, RubricMetric
from evaluation.network.outcomes import Outcome

LADDER = tuple(Rung)
NO_RUNG = "no_rung"
NO_LOGPROBS = "no_logprobs"
METRIC = "connection_test"
# Answered, but not the way that was asked for: the next rung may do.
_NEXT_RUNG = frozenset(map(Outcome, ("bad_request", "parse", "refused", "filtered", "truncated", "wrong_content")))
_QUESTION = QuestionSpec(id=METRIC, category=METRIC, text="Which number follows one?", references=("Two.",))
_ANSWER = AnswerSpec("Two.")
_RUBRIC = Rubric(
    family="preflight",
    version=1,
    language="en",
    instruction="This tests a connection. Grade the one answer below. Data stand in JSON blocks.",
    closing=(
        'Grade the block "answer" for: {metrics}. Reply with one JSON object and nothing else. Its one key is that '
        'name, and its value an object with "reason" (one short sentence) and then "score" (whole number).'
    ),
    repair="Reply with the JSON object alone.",
    metrics=(
        RubricMetric(
            name=METRIC,
            question="Is the answer right?",
            levels=(Level(value=1, text="It is wrong"), Level(value=2, text="It is right")),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Probe:
    """One call of the preflight: what was asked for, how it ended (``parse``: it could not be read), its reply.
    ``expectable``: the probabilities of its level were told."""

    rung: Rung
    asked_logprobs: bool
    outcome: Outcome
    reply: JudgeReply
    expectable: bool


@dataclass(frozen=True, slots=True)
class Probed:
    """What the calls told. ``outcome`` is ``ok``, ``no_rung`` where no way of asking gave a reply that reads,
    ``no_logprobs`` where none gave the token probabilities that the judge needs, or how the call ended that broke the
    preflight off. ``rung`` is the best that works, ``None`` without one. ``logprobs`` is ``None`` where it was not
    found out."""

    outcome: str
    probes: tuple[Probe, ...]
    rung: Rung | None = None
    logprobs: bool | None = None

    @property
    def last(self) -> JudgeReply:
        """The reply that decided."""
        return self.probes[-1].reply

    @property
    def tells_usage(self) -> bool:
        """Whether the last reply says what it used."""
        return self.last.tokens_in is not None and self.last.tokens_out is not None


@dataclass
class _Ladder:
    """The calls made so far. At most six are made: each rung once, the first twice, one more for log probabilities."""

    client: JudgeClient
    model: str
    parameters: Mapping[str, Any]
    with_logprobs: Mapping[str, Any]
    probes: list[Probe] = field(default_factory=list)

    async def ask(self, rung: Rung, *, logprobs: bool) -> Probe:
        request = probe_call(self.model, self.with_logprobs if logprobs else self.parameters, rung)
        reply = await self.client.call(request)
        read = hear(reply, request.ask, rung)
        one = Probe(rung, logprobs, read.outcome, reply, METRIC in read.chances)
        self.probes.append(one)
        return one

    def ended(self, outcome: str, rung: Rung | None = None, *, logprobs: bool | None = None) -> Probed:
        return Probed(outcome, tuple(self.probes), rung, logprobs)


async def probe(client: JudgeClient, model: str, parameters: Mapping[str, Any], *, expects: bool = False) -> Probed:
    """Go down the ladder until a reply reads. A judge that takes a strict schema and log probabilities is asked once.

    A request that is refused may be refused for the schema or for the log probabilities, so the first is asked again
    without the latter before a rung is given up. With ``expects`` no rung will do that does not tell the probabilities
    of the level.
    """
    if expects:
        return await _with_logprobs(_Ladder(client, model, parameters, asking_for(parameters)))
    return await _best(_Ladder(client, model, parameters, {**parameters, "logprobs": True}))


async def _best(ladder: _Ladder) -> Probed:
    first = await ladder.ask(LADDER[0], logprobs=True)
    if first.outcome is Outcome.OK:
        return ladder.ended("ok", first.rung, logprobs=first.reply.logprobs)
    if first.outcome is Outcome.BAD_REQUEST:
        again = await ladder.ask(LADDER[0], logprobs=False)
        if again.outcome is Outcome.OK:
            return ladder.ended("ok", again.rung, logprobs=False)
    for rung in LADDER[1:]:
        if ladder.probes[-1].outcome not in _NEXT_RUNG:
            return ladder.ended(str(ladder.probes[-1].outcome))
        found = await ladder.ask(rung, logprobs=False)
        if found.outcome is Outcome.OK:
            more = await ladder.ask(rung, logprobs=True)
            known = more.outcome in {Outcome.OK, Outcome.BAD_REQUEST}
            ladder.probes[-2:] = [more, found]  # the one that reads decides
            return ladder.ended("ok", rung, logprobs=more.reply.logprobs if known else None)
    last = ladder.probes[-1].outcome
    return ladder.ended(NO_RUNG if last in _NEXT_RUNG else str(last))


async def _with_logprobs(ladder: _Ladder) -> Probed:
    for rung in LADDER:
        found = await ladder.ask(rung, logprobs=True)
        if found.expectable:
            return ladder.ended("ok", rung, logprobs=True)
        if found.outcome not in {Outcome.OK, *_NEXT_RUNG}:
            return ladder.ended(str(found.outcome))
    readable = any(one.outcome is Outcome.OK for one in ladder.probes)
    if not readable:  # it may be the log probabilities alone that every request was refused for
        readable = (await ladder.ask(LADDER[-1], logprobs=False)).outcome is Outcome.OK
    return ladder.ended(NO_LOGPROBS if readable else NO_RUNG)


def probe_call(model: str, parameters: Mapping[str, Any], rung: Rung) -> JudgeCall:
    """The small request, with these parameters."""
    blocks = {"question": _QUESTION.text, "reference": list(_QUESTION.references), "answer": _ANSWER.text}
    ask = scores_ask(_RUBRIC, [METRIC], blocks)
    return judge_call(_RUBRIC, _QUESTION, _ANSWER, ask, model=model, parameters=parameters, rung=rung)
