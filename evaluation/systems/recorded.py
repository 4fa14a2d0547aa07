"""Answers that were recorded elsewhere and come from an answer file: nothing is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.core.samples import AnswerSpec
from evaluation.network.outcomes import Outcome
from evaluation.systems.protocol import AskFailed, SystemCall, SystemClient, SystemReply, Told

NAME = "recorded"


@dataclass(frozen=True)
class RecordedSystem(SystemClient):
    """Answers by (question id, sample)."""

    answers: Mapping[tuple[str, int], AnswerSpec]

    async def ask(self, call: SystemCall) -> SystemReply:
        """The recorded answer.

        :raises AskFailed: ``no_answer`` when there is none for this question and sample.
        """
        answer = self.answers.get((call.question.id, call.sample))
        if answer is None:
            raise AskFailed("no_answer", detail=f"{call.question.id} #{call.sample}", outcome=Outcome.NOT_FOUND)
        return SystemReply(Outcome.OK, told=Told(answer))

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """What is looked up."""
        return {"question": call.question.id, "sample": call.sample}
