"""Runs under a profile of one's own, judged by the baseline or by a scripted judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from evaluation.judges.shipped import baseline_judge, save_profile
from evaluation.judging.baseline import judge_offline
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.models import AnswerSet, ProfileVersion, Run
from evaluation.profiles.spec import ProfileSpec
from evaluation.runs.creation import prepare_run
from tests.factories import make_answer_set, unique

Script = Callable[[JudgeCall], JudgeReply | None]


def profile_of(answers: AnswerSet, **fields: Any) -> ProfileVersion:
    """A profile row with these fields."""
    spec = ProfileSpec.model_validate(
        {"name": unique("own").replace("-", "_"), "title": {"en": "Own", "ko": "자체"}, **fields}
    )
    return save_profile(answers.project, spec)


def run_under(answers: AnswerSet | None = None, **fields: Any) -> Run:
    """A draft run with the baseline under a profile with these fields."""
    asked = answers or make_answer_set()
    return prepare_run(asked, profile_of(asked, **fields), judge=baseline_judge(asked.project, "en"))


class ScriptedJudge:
    """The baseline, except where the script has something else to say. ``calls`` are all it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.calls: list[JudgeCall] = []

    async def call(self, request: JudgeCall) -> JudgeReply:
        """The script's reply, else the baseline's."""
        self.calls.append(request)
        return self.script(request) or judge_offline(request)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None
