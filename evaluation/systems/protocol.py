"""What a system under test is to the product: something that answers a question; and the one adapter that there is, for
answers that were recorded elsewhere and come from an answer file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from evaluation.core.errors import ConcordError
from evaluation.core.samples import AnswerSpec, QuestionSpec


class AskFailed(ConcordError):
    """The system gave no answer; ``code`` is the reason of the failed answer (``evaluation/wording/messages.py``).

    ``retry`` says whether asking again can help.
    """

    def __init__(self, code: str, *, detail: str = "", retry: bool = False) -> None:
        self.code, self.detail, self.retry = code, detail, retry
        super().__init__(f"{code}: {detail}" if detail else code)


class System(Protocol):
    """A system under test. ``ask`` asks it once; ``sample`` tells several answers to one question apart, from 0.

    :raises AskFailed: when there is no answer.
    """

    async def ask(self, question: QuestionSpec, sample: int = 0) -> AnswerSpec: ...


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
