"""What a judge can do, found out by a few small calls before a run: does it answer, how can it be asked for a verdict
that reads, does it tell its tokens and log probabilities. What is found holds for the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation.core.samples import AnswerSpec, QuestionSpec, Status
from evaluation.judging.calls import JudgeCall, JudgeClient, JudgeReply, Rung, reason_with_words
from evaluation.judging.formulas import read_verdict, scores_ask
from evaluation.judging.logprobs import asking_for
from evaluation.judging.prompt import hear, judge_call
from evaluation.judging.rubric import Level, Rubric, RubricMetric
from evaluation.network.outcomes import NO_CONNECTION, Outcome

NO_RUNG = "no_rung"
NO_LOGPROBS = "no_logprobs"
METRIC = "connection_test"
# Answered, but not the way that was asked for: the next rung may do.
_ANSWERED = frozenset(
    map(
        Outcome,
        ("ok", "bad_request", "parse", "refused", "filtered", "truncated", "unknown_ending", "wrong_content"),
    )
)
# The server was not reached, or wants to be left alone: no other way of asking changes that.
_ENDS = NO_CONNECTION | frozenset(map(Outcome, ("tls", "blocked", "redirect", "rate_limited", "no_credit")))
_BLAMES_LOGPROBS = frozenset(map(Outcome, ("bad_request", "wrong_content")))
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
    def reason(self) -> str:
        """The outcome with what the server said, where the last reply was of no use."""
        last = self.probes[-1]
        return self.outcome if last.outcome is Outcome.OK else reason_with_words(self.outcome, last.reply)

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
    rungs: tuple[Rung, ...]
    logprobs: bool
    probes: list[Probe] = field(default_factory=list)

    async def ask(self, rung: Rung, *, logprobs: bool) -> Probe:
        request = probe_call(self.model, self.with_logprobs if logprobs else self.parameters, rung)
        reply = await self.client.call(request)
        read = hear(reply, request.ask, rung)
        outcome = read.outcome
        if outcome is Outcome.OK:
            verdict = read_verdict(_RUBRIC.metric(METRIC), read.parts.get(METRIC))
            outcome = outcome if verdict.status is Status.SCORED else Outcome.PARSE  # a level off its own scale
        one = Probe(rung, logprobs, outcome, reply, METRIC in read.chances)
        self.probes.append(one)
        return one

    async def ask_plainly(self) -> Probe:
        """The request without any extra, once. What refuses it refuses everything."""
        plain = next((one for one in self.probes if one.rung is self.rungs[-1] and not one.asked_logprobs), None)
        if plain is None:
            return await self.ask(self.rungs[-1], logprobs=False)
        self.probes.remove(plain)
        self.probes.append(plain)
        return plain

    async def stops(self, one: Probe) -> bool:
        """Whether no other way of asking would do better than the one that just failed."""
        if one.outcome in _ANSWERED:
            return False
        if one.outcome in _ENDS or one.reply.retry_after is not None:
            return True
        plain = await self.ask_plainly()
        return plain.outcome not in _ANSWERED

    def ended(self, outcome: str, rung: Rung | None = None, *, logprobs: bool | None = None) -> Probed:
        return Probed(outcome, tuple(self.probes), rung, logprobs)


async def probe(
    client: JudgeClient,
    model: str,
    parameters: Mapping[str, Any],
    *,
    expects: bool = False,
    rungs: tuple[Rung, ...] = tuple(Rung),
    logprobs: bool = True,
) -> Probed:
    """Go down the ladder until a reply reads. A judge that takes a strict schema and log probabilities is asked once.
    ``rungs`` are its provider's ways of asking, ``logprobs`` whether that has log probabilities.

    Whatever a request with an extra (log probabilities, schema, tool) is answered with, requests without it are tried:
    only a server that refuses the plainest one is given up, or one that cannot be reached or wants to be left alone.
    With ``expects`` no rung will do that does not tell the probabilities of the level.
    """
    if expects:
        return await _with_logprobs(_Ladder(client, model, parameters, asking_for(parameters), rungs, logprobs))
    return await _best(_Ladder(client, model, parameters, {**parameters, "logprobs": True}, rungs, logprobs))


async def _best(ladder: _Ladder) -> Probed:
    first = await ladder.ask(ladder.rungs[0], logprobs=ladder.logprobs)
    if first.outcome is Outcome.OK:
        return ladder.ended("ok", first.rung, logprobs=first.reply.logprobs)
    if await ladder.stops(first):
        return ladder.ended(str(ladder.probes[-1].outcome))
    if ladder.logprobs and (first.outcome not in _ANSWERED or first.outcome in _BLAMES_LOGPROBS):
        again = await ladder.ask(ladder.rungs[0], logprobs=False)
        if again.outcome is Outcome.OK:
            return ladder.ended("ok", again.rung, logprobs=False)
    for rung in ladder.rungs[1:]:
        found = await (ladder.ask_plainly() if rung is ladder.rungs[-1] else ladder.ask(rung, logprobs=False))
        if found.outcome is Outcome.OK and not ladder.logprobs:
            return ladder.ended("ok", rung, logprobs=False)
        if found.outcome is Outcome.OK:
            more = await ladder.ask(rung, logprobs=True)
            known = more.outcome in {Outcome.OK, Outcome.BAD_REQUEST}
            ladder.probes.remove(found)
            ladder.probes.append(found)  # the one that reads decides
            return ladder.ended("ok", rung, logprobs=more.reply.logprobs if known else None)
        if found.outcome in _ENDS:
            return ladder.ended(str(found.outcome))
    last = ladder.probes[-1].outcome
    return ladder.ended(NO_RUNG if last in _ANSWERED else str(last))


async def _with_logprobs(ladder: _Ladder) -> Probed:
    for rung in ladder.rungs:
        found = await ladder.ask(rung, logprobs=ladder.logprobs)
        if found.expectable and found.outcome is Outcome.OK:
            return ladder.ended("ok", rung, logprobs=True)
        if await ladder.stops(found):
            return ladder.ended(str(ladder.probes[-1].outcome))
    readable = any(one.outcome is Outcome.OK for one in ladder.probes)
    if not readable:  # it may be the log probabilities alone that every request was refused for
        readable = (await ladder.ask_plainly()).outcome is Outcome.OK
    return ladder.ended(NO_LOGPROBS if readable else NO_RUNG)


def probe_call(model: str, parameters: Mapping[str, Any], rung: Rung) -> JudgeCall:
    """The small request, with these parameters."""
    blocks = {"question": _QUESTION.text, "reference": list(_QUESTION.references), "answer": _ANSWER.text}
    ask = scores_ask(_RUBRIC, [METRIC], blocks)
    return judge_call(_RUBRIC, _QUESTION, _ANSWER, ask, model=model, parameters=parameters, rung=rung)
