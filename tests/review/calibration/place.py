"""A gold set over rated answers with a scripted judge behind an endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evaluation.criteria.rubrics import draft, rubric_scope, version_statuses
from evaluation.judging.calls import ResponseFormat
from evaluation.models import Endpoint, JudgeVersion, RubricVersion, Run
from evaluation.scoring import adhoc
from evaluation.scoring.adhoc import ProbedJudge
from review.calibration import holdout_rules, judge_budget
from review.calibration.holdout_tests import run_holdout_test
from review.calibration.versions import freeze
from review.models import GoldSet
from tests.factories import make_judge
from tests.review.calibration.labelled import FAMILY, ScriptedJudge, rated_run, rubric_with_instruction


class CalibrationSetup:
    """A gold set over 240 rated answers with a scripted judge behind an endpoint."""

    def __init__(self, answers: int = 240) -> None:
        self.run: Run = rated_run(answers)
        self.gold: GoldSet = freeze(self.run, "gold", by=None)
        endpoint, _ = Endpoint.objects.get_or_create(name="local", base_url="http://127.0.0.1:9/v1")
        self.judge: JudgeVersion = make_judge(self.run.project, "judge", endpoint=endpoint)
        self.script = ScriptedJudge()

    def create_draft(self, text: str) -> RubricVersion:
        return draft(self.run.project, rubric_with_instruction(text), by=None)

    def test_judge(self, judge: JudgeVersion, version: RubricVersion, **options: Any) -> holdout_rules.HoldoutSummary:
        return run_holdout_test(self.gold, judge, version, by=None, **options)

    def test_version(self, version: RubricVersion, **options: Any) -> holdout_rules.HoldoutSummary:
        return run_holdout_test(self.gold, self.judge, version, by=None, **options)

    @property
    def statuses(self) -> holdout_rules.HoldoutSummary | Any:
        return version_statuses(rubric_scope(self.judge, FAMILY))


@contextmanager
def scripted_judge(place: CalibrationSetup) -> Iterator[None]:
    """Let the setup's script answer for every judge."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(adhoc, "client_of", lambda _: place.script)
        patched.setattr(
            judge_budget, "find_response_format", lambda _: ProbedJudge(ResponseFormat.JSON_SCHEMA, "model-1")
        )
        yield
