"""Runs with custom profiles, judged by the baseline or by a scripted judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from evaluation.judges.shipped import baseline_judge, save_judge, save_profile
from evaluation.judging.baseline import judge_offline
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.models import AnswerSet, Endpoint, Preflight, ProfileVersion, Run
from evaluation.profiles.spec import ProfileSpec
from evaluation.runs.creation import prepare_run
from tests.factories import make_answer_set, unique

ReplyScript = Callable[[JudgeCall], JudgeReply | None]


def make_profile_version(answers: AnswerSet, **fields: Any) -> ProfileVersion:
    """A profile row with these fields."""
    spec = ProfileSpec.model_validate(
        {"name": unique("own").replace("-", "_"), "title": {"en": "Own", "ko": "자체"}, **fields}
    )
    return save_profile(answers.project, spec)


def make_baseline_run(answers: AnswerSet | None = None, **fields: Any) -> Run:
    """A draft run with the baseline judge and a profile with these fields."""
    answer_set = answers or make_answer_set()
    return prepare_run(
        answer_set, make_profile_version(answer_set, **fields), judge=baseline_judge(answer_set.project, "en")
    )


def make_scripted_run(answers: AnswerSet | None = None, **fields: Any) -> Run:
    """A draft run with a judge whose endpoint needs no preflight, and a profile with these fields."""
    answer_set = answers or make_answer_set()
    endpoint = Endpoint.objects.create(name=unique("endpoint"), base_url="http://127.0.0.1:9", max_concurrency=8)
    judge = save_judge(answer_set.project, "scripted", endpoint, model="scripted", language="en")
    run = prepare_run(answer_set, make_profile_version(answer_set, **fields), judge=judge)
    Preflight.objects.create(
        run=run, judge_version=judge, outcome="ok", response_format="json_schema", judge_hash="0" * 64
    )
    return run


class ScriptedJudge:
    """The baseline judge, except where the script returns a reply. ``calls`` records all calls."""

    def __init__(self, script: ReplyScript) -> None:
        self.script = script
        self.calls: list[JudgeCall] = []

    async def call(self, request: JudgeCall) -> JudgeReply:
        """Return the script's reply, or else the baseline's."""
        self.calls.append(request)
        return self.script(request) or judge_offline(request)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None
