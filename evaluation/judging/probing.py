"""Capability probe of a judge before a run: response format, token usage and log probabilities. The findings hold for
the whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation.core.samples import AnswerSpec, QuestionSpec, Status
from evaluation.judging.calls import JudgeCall, JudgeClient, JudgeReply, ResponseFormat, reason_with_message
from evaluation.judging.formulas import read_verdict, scores_request
from evaluation.judging.logprobs import with_logprobs
from evaluation.judging.prompt import judge_call, parse_reply
from evaluation.judging.rubric import Level, Rubric, RubricMetric
from evaluation.network.outcomes import NO_CONNECTION, Outcome

NO_RESPONSE_FORMAT = "no_rung"
NO_LOGPROBS = "no_logprobs"
METRIC = "connection_test"
# The server answered, but not in the requested format; the next one may work.
_ANSWERED = frozenset(
    map(
        Outcome,
        ("ok", "bad_request", "parse", "refused", "filtered", "truncated", "unknown_ending", "wrong_content"),
    )
)
# The server is unreachable or asks for a pause; another format cannot help.
_FINAL_OUTCOMES = NO_CONNECTION | frozenset(map(Outcome, ("tls", "blocked", "redirect", "rate_limited", "no_credit")))
_LOGPROBS_MAY_BE_REFUSED = frozenset(map(Outcome, ("bad_request", "wrong_content")))
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
    """One call of the preflight: requested format, outcome (``parse`` if unreadable) and reply.
    ``has_level_probabilities``: the reply contains the probabilities of its level."""

    response_format: ResponseFormat
    logprobs_requested: bool
    outcome: Outcome
    reply: JudgeReply
    has_level_probabilities: bool


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Findings of the probe. ``outcome`` is ``ok``, ``no_rung`` without a working response format, ``no_logprobs``
    without required token probabilities, or the outcome that ended the preflight. ``response_format`` is the best
    working format. ``logprobs`` is ``None`` if unknown."""

    outcome: str
    probes: tuple[Probe, ...]
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None

    @property
    def last(self) -> JudgeReply:
        """Reply of the deciding probe."""
        return self.probes[-1].reply

    @property
    def reason(self) -> str:
        """Outcome, with the server's message if the last reply was unusable."""
        last = self.probes[-1]
        return self.outcome if last.outcome is Outcome.OK else reason_with_message(self.outcome, last.reply)

    @property
    def has_usage(self) -> bool:
        """Return whether the last reply reports its token usage."""
        return self.last.tokens_in is not None and self.last.tokens_out is not None


@dataclass
class _ProbeSession:
    """Calls of one preflight, at most six: each format once, the first twice, one more for log probabilities."""

    client: JudgeClient
    model: str
    parameters: Mapping[str, Any]
    with_logprobs: Mapping[str, Any]
    response_formats: tuple[ResponseFormat, ...]
    logprobs: bool
    probes: list[Probe] = field(default_factory=list)

    async def send(self, response_format: ResponseFormat, *, logprobs: bool) -> Probe:
        request = probe_call(self.model, self.with_logprobs if logprobs else self.parameters, response_format)
        reply = await self.client.call(request)
        parsed = parse_reply(reply, request.judge_request, response_format)
        outcome = parsed.outcome
        if outcome is Outcome.OK:
            verdict = read_verdict(_RUBRIC.metric(METRIC), parsed.parts.get(METRIC))
            # The level is off its own scale.
            outcome = outcome if verdict.status is Status.SCORED else Outcome.PARSE
        attempt = Probe(response_format, logprobs, outcome, reply, METRIC in parsed.chances)
        self.probes.append(attempt)
        return attempt

    async def send_plain(self) -> Probe:
        """Send the plainest request once. A server that rejects it rejects every request."""
        plain = next(
            (
                attempt
                for attempt in self.probes
                if attempt.response_format is self.response_formats[-1] and not attempt.logprobs_requested
            ),
            None,
        )
        if plain is None:
            return await self.send(self.response_formats[-1], logprobs=False)
        self.probes.remove(plain)
        self.probes.append(plain)
        return plain

    async def is_final(self, failed: Probe) -> bool:
        """Return whether no other format can succeed after this failure."""
        if failed.outcome in _ANSWERED:
            return False
        if failed.outcome in _FINAL_OUTCOMES or failed.reply.retry_after is not None:
            return True
        plain = await self.send_plain()
        return plain.outcome not in _ANSWERED

    def finish(
        self, outcome: str, response_format: ResponseFormat | None = None, *, logprobs: bool | None = None
    ) -> ProbeResult:
        return ProbeResult(outcome, tuple(self.probes), response_format, logprobs)


async def probe_judge(
    client: JudgeClient,
    model: str,
    parameters: Mapping[str, Any],
    *,
    require_logprobs: bool = False,
    response_formats: tuple[ResponseFormat, ...] = tuple(ResponseFormat),
    logprobs: bool = True,
) -> ProbeResult:
    """Try response formats, best first, until a reply parses. A judge with strict schemas and log probabilities needs
    one call.

    ``response_formats`` and ``logprobs`` are the provider's capabilities. If a request with an extra (log
    probabilities, schema, tool) fails, requests without it are tried; the probe gives up only if the plainest one is
    rejected, or the server is unreachable or asks for a pause. With ``require_logprobs`` a format must return the
    probabilities of the level."""
    if require_logprobs:
        return await _probe_with_logprobs(
            _ProbeSession(client, model, parameters, with_logprobs(parameters), response_formats, logprobs)
        )
    return await _probe_formats(
        _ProbeSession(client, model, parameters, {**parameters, "logprobs": True}, response_formats, logprobs)
    )


async def _probe_formats(session: _ProbeSession) -> ProbeResult:
    first = await session.send(session.response_formats[0], logprobs=session.logprobs)
    if first.outcome is Outcome.OK:
        return session.finish("ok", first.response_format, logprobs=first.reply.logprobs)
    if await session.is_final(first):
        return session.finish(str(session.probes[-1].outcome))
    if session.logprobs and (first.outcome not in _ANSWERED or first.outcome in _LOGPROBS_MAY_BE_REFUSED):
        retry = await session.send(session.response_formats[0], logprobs=False)
        if retry.outcome is Outcome.OK:
            return session.finish("ok", retry.response_format, logprobs=False)
    for response_format in session.response_formats[1:]:
        attempt = await (
            session.send_plain()
            if response_format is session.response_formats[-1]
            else session.send(response_format, logprobs=False)
        )
        if attempt.outcome is Outcome.OK and not session.logprobs:
            return session.finish("ok", response_format, logprobs=False)
        if attempt.outcome is Outcome.OK:
            logprobs_attempt = await session.send(response_format, logprobs=True)
            logprobs_known = logprobs_attempt.outcome in {Outcome.OK, Outcome.BAD_REQUEST}
            session.probes.remove(attempt)
            # The readable probe decides, so move it to the end.
            session.probes.append(attempt)
            return session.finish(
                "ok", response_format, logprobs=logprobs_attempt.reply.logprobs if logprobs_known else None
            )
        if attempt.outcome in _FINAL_OUTCOMES:
            return session.finish(str(attempt.outcome))
    last = session.probes[-1].outcome
    return session.finish(NO_RESPONSE_FORMAT if last in _ANSWERED else str(last))


async def _probe_with_logprobs(session: _ProbeSession) -> ProbeResult:
    for response_format in session.response_formats:
        attempt = await session.send(response_format, logprobs=session.logprobs)
        if attempt.has_level_probabilities and attempt.outcome is Outcome.OK:
            return session.finish("ok", response_format, logprobs=True)
        if await session.is_final(attempt):
            return session.finish(str(session.probes[-1].outcome))
    readable = any(sent.outcome is Outcome.OK for sent in session.probes)
    # The server may have rejected the requests only because of log probabilities.
    if not readable:
        readable = (await session.send_plain()).outcome is Outcome.OK
    return session.finish(NO_LOGPROBS if readable else NO_RESPONSE_FORMAT)


def probe_call(model: str, parameters: Mapping[str, Any], response_format: ResponseFormat) -> JudgeCall:
    """Small test request with these parameters."""
    blocks = {"question": _QUESTION.text, "reference": list(_QUESTION.references), "answer": _ANSWER.text}
    request = scores_request(_RUBRIC, [METRIC], blocks)
    return judge_call(
        _RUBRIC, _QUESTION, _ANSWER, request, model=model, parameters=parameters, response_format=response_format
    )
