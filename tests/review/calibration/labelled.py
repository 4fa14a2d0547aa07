"""Answers whose worth a test knows: rated by two experts, and a judge who says by the wording of its rubric how near it
comes."""

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
    """What the answer to the question of this number is worth, 1 to 5."""
    return 1 + number * 7 % 5


def rated_run(count: int = 240) -> Run:
    """A run over so many answers. One expert says what each is worth, a second a level more of every other one (at most
    5): the mean of both is the label."""
    specs = [question_spec(n, category=CATEGORIES[n % 2]) for n in range(count)]
    answers = make_answer_set(
        make_question_set(make_project(), specs), texts=[f"Answer {n}, worth {worth(n)}." for n in range(count)]
    )
    run = run_over(answers, judged=False)
    rate(run)
    return run


def rate(run: Run) -> None:
    row = metric("correctness")
    for number, answer in enumerate(answer_rows(run)):
        imported_rating(answer, row, "a", worth(number), sampling="all")
        imported_rating(answer, row, "b", min(5, worth(number) + number % 2), sampling="all")


def reworded(text: str) -> Rubric:
    """A draft whose instruction is this text."""
    return shipped_rubric(FAMILY, "en").model_copy(update={"instruction": text})


class Scripted:
    """A judge who is two levels off, in one direction for odd answers and in the other for even ones. *SKILLED*: says
    what the answer is worth. *LIKE IT*: errs by as much, on other answers. *MEMORY*: knows the answers that are quoted
    in the rubric. *SILENT*: says nothing that can be read."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.off = 0  # levels by which it errs beside

    async def call(self, request: JudgeCall) -> JudgeReply:
        text = request.answer.text
        self.calls.append(text)
        found = re.fullmatch(r"Answer (\d+), worth (\d)\.", text)
        assert found is not None
        number, right = int(found[1]), int(found[2])
        wording = request.rubric.instruction
        if "SILENT" in wording:
            return JudgeReply(Outcome.OK, raw="no")
        off = number + 1 if "LIKE IT" in wording else number
        level = right if "SKILLED" in wording or text in wording else max(1, min(5, right + (2 if off % 2 else -2)))
        level = level - self.off if level > 3 else level + self.off
        said = {name: {"reason": "r", "score": level} for name in request.judge_request.names}
        return JudgeReply(Outcome.OK, raw=json.dumps(said))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
