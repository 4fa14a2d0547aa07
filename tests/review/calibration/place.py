"""A gold set over rated answers, and a judge behind an endpoint with its script."""

from __future__ import annotations

from typing import Any

from evaluation.criteria.rubrics import draft, slot_of, standings
from evaluation.models import Endpoint, JudgeVersion, RubricVersion, Run
from review.calibration import accepting
from review.calibration.looking import accept
from review.gold.freezing import freeze
from review.models import GoldSet
from tests.factories import make_judge
from tests.review.gold.labelled import FAMILY, Scripted, rated_run, reworded


class Place:
    """A gold set over 240 rated answers, a judge behind an endpoint and its script."""

    def __init__(self, answers: int = 240) -> None:
        self.run: Run = rated_run(answers)
        self.gold: GoldSet = freeze(self.run, "gold", by=None)
        endpoint = Endpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1")
        self.judge: JudgeVersion = make_judge(self.run.project, "judge", endpoint=endpoint)
        self.script = Scripted()

    def drafted(self, text: str) -> RubricVersion:
        return draft(self.run.project, reworded(text), by=None)

    def look(self, judge: JudgeVersion, version: RubricVersion, **more: Any) -> accepting.Answered:
        return accept(self.gold, judge, version, by=None, **more)

    def accept(self, version: RubricVersion, **more: Any) -> accepting.Answered:
        return accept(self.gold, self.judge, version, by=None, **more)

    @property
    def slot(self) -> accepting.Answered | Any:
        return standings(slot_of(self.judge, FAMILY))
