"""What a system under test is to the product: something that answers a question."""

from __future__ import annotations

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
