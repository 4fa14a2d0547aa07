"""Judge calls for one answer of a run: request as sent, raw reply, model, tokens, time and cost.

Requests are not stored. They are built again from what a run pins, and shown only if their hash equals the recorded
one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.judging.calls import JudgeReply
from evaluation.judging.prompt import parse_reply, repair_call, request_hash
from evaluation.judging.providers.protocol import chat_messages
from evaluation.models import Answer, JudgeVersion, Reply, Run, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.runs.execution import response_format_of
from evaluation.scoring.judges import JudgeSetting, UnitConversation, judge_settings

Messages = Sequence[Mapping[str, str]]
_REPAIRED = (Outcome.PARSE, Outcome.TRUNCATED)
_GOOD = (Outcome.OK, Outcome.CACHED)


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call and its reply. ``messages`` is ``None`` if the request cannot be built again, for example because an
    earlier reply of the conversation was purged."""

    judge: JudgeVersion
    reply: Reply
    messages: Messages | None


def logged_calls(run: Run, answer: Answer) -> list[LoggedCall]:
    """Calls of remote judges for the answer, oldest first."""
    rows = Reply.objects.filter(attempt__unit__run=run, attempt__unit__answer=answer).order_by("pk")
    rows = rows.filter(attempt__unit__kind=WorkUnit.Kind.JUDGE).exclude(outcome=Outcome.NOT_SENT)
    replies_by_unit: dict[WorkUnit, list[Reply]] = {}
    for reply in rows.select_related(
        "attempt__unit__run_judge__judge_version", "attempt__unit__run_judge__rubric_version", "attempt__unit__answer"
    ):
        replies_by_unit.setdefault(reply.attempt.unit, []).append(reply)
    calls = []
    for unit, replies in replies_by_unit.items():
        if unit.run_judge is None or (judge := unit.run_judge.judge_version).is_baseline:
            continue
        response_format = response_format_of(run, judge)
        setting = judge_settings(run, [unit.run_judge], {unit.run_judge.pk: response_format})[unit.run_judge.pk]
        messages = _messages_by_hash(setting, unit, replies)
        calls += [LoggedCall(judge, reply, messages.get(reply.request_hash)) for reply in replies]
    return calls


def _messages_by_hash(setting: JudgeSetting, unit: WorkUnit, replies: Sequence[Reply]) -> dict[str, Messages]:
    """Messages of the unit's requests by request hash, as far as stored replies lead through the conversation."""
    messages: dict[str, Messages] = {}
    conversation = UnitConversation(setting, unit, {})
    while (call := conversation.call) is not None:
        requests = [call, *(repair_call(call, outcome) for outcome in _REPAIRED)]
        messages_of_step = {request_hash(request, repeat=unit.repeat): chat_messages(request) for request in requests}
        messages |= messages_of_step
        good = [reply for reply in replies if reply.request_hash in messages_of_step and reply.outcome in _GOOD]
        if not good or not good[-1].raw:
            break
        reply = JudgeReply(Outcome.OK, raw=good[-1].raw, chances=good[-1].chances)
        conversation.receive(parse_reply(reply, call.judge_request, call.response_format))
    return messages
