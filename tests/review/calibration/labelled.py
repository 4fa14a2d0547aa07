"""Answers of known worth rated by two experts, and a judge whose error depends on its rubric."""

from __future__ import annotations

import json
import re
from types import TracebackType
from typing import Self

from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.rubric import Rubric, shipped_rubric
from evaluation.models import Run
from evaluation.network.outcomes import Outcome
from tests.factories import make_answer_set, make_project, make_question_set, question_spec
from tests.review.builders import answer_rows, imported_rating, metric, run_over

FAMILY = "answer_quality"
CATEGORIES = ("tables", "dates")


def worth(number: int) -> int:
    """True level of the answer with this number, 1 to 5."""
    return 1 + number * 7 % 5


def rated_run(count: int = 240) -> Run:
    """Create a run over ``count`` answers with two expert ratings each.

    The first expert gives the true level, the second one level more for every other answer (at most 5). The label is
    their mean."""
    specs = [question_spec(n, category=CATEGORIES[n % 2]) for n in range(count)]
    answers = make_answer_set(
        make_question_set(make_project(), specs), texts=[f"Answer {n}, worth {worth(n)}." for n in range(count)]
    )
    run = run_over(answers, judged=False)
    rate_by_two_experts(run)
    return run


def rate_by_two_experts(run: Run) -> None:
    row = metric("correctness")
    for number, answer in enumerate(answer_rows(run)):
        imported_rating(answer, row, "a", worth(number), sampling="all")
        imported_rating(answer, row, "b", min(5, worth(number) + number % 2), sampling="all")


def rubric_with_instruction(text: str) -> Rubric:
    return shipped_rubric(FAMILY, "en").model_copy(update={"instruction": text})


class ScriptedJudge:
    """A judge two levels off, up for odd answers and down for even ones, unless its instruction changes that.

    *SKILLED* gives the true level. *LIKE IT* errs by as much on other answers. *MEMORY* knows the answers quoted in the
    rubric. *SILENT* replies nothing readable."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.extra_error = 0  # levels by which it errs beside

    async def call(self, request: JudgeCall) -> JudgeReply:
        text = request.answer.text
        self.calls.append(text)
        match = re.fullmatch(r"Answer (\d+), worth (\d)\.", text)
        assert match is not None
        number, right = int(match[1]), int(match[2])
        wording = request.rubric.instruction
        if "SILENT" in wording:
            return JudgeReply(Outcome.OK, raw="no")
        parity = number + 1 if "LIKE IT" in wording else number
        level = right if "SKILLED" in wording or text in wording else max(1, min(5, right + (2 if parity % 2 else -2)))
        level = level - self.extra_error if level > 3 else level + self.extra_error
        reply = {name: {"reason": "r", "score": level} for name in request.judge_request.names}
        return JudgeReply(Outcome.OK, raw=json.dumps(reply))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
