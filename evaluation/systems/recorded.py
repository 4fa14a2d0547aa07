"""A system whose answers were recorded elsewhere: they come from an answer file, nothing is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.systems.protocol import AskFailed

ADAPTER = "recorded"


@dataclass(frozen=True, slots=True)
class RecordedSystem:
    """Answers by (question id, sample)."""

    answers: Mapping[tuple[str, int], AnswerSpec]

    async def ask(self, question: QuestionSpec, sample: int = 0) -> AnswerSpec:
        """The recorded answer.

        :raises AskFailed: ``no_answer`` when there is none for this question and sample.
        """
        answer = self.answers.get((question.id, sample))
        if answer is None:
            raise AskFailed("no_answer", detail=f"{question.id} #{sample}")
        return answer
