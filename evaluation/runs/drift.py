"""What has changed since a run was made. A run goes on with what it was made with; this only says so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Max

from evaluation.models import JudgeVersion, ProfileVersion, QuestionSet, RubricVersion, Run


class Part(StrEnum):
    """What a run is made of that has versions."""

    PROFILE = "profile"
    QUESTION_SET = "question_set"
    JUDGE = "judge"
    RUBRIC = "rubric"


@dataclass(frozen=True, slots=True)
class Drift:
    """A part of the run of which a newer version exists; the run keeps using ``used``."""

    part: Part
    name: str
    used: int
    newest: int


def drift(run: Run) -> tuple[Drift, ...]:
    """The parts of the run that have a newer version now."""
    profile, questions = run.profile_version, run.answer_set.question_set
    named = {"project_id": run.project_id}
    found = [
        _drift(Part.PROFILE, profile.name, profile.version, _newest(ProfileVersion, name=profile.name, **named)),
        _drift(
            Part.QUESTION_SET, questions.name, questions.version, _newest(QuestionSet, name=questions.name, **named)
        ),
    ]
    for judge in run.judges.select_related("judge_version", "rubric_version"):
        version, rubric = judge.judge_version, judge.rubric_version
        same_rubric = {"family": rubric.family, "language": rubric.language}
        found += [
            _drift(Part.JUDGE, version.name, version.version, _newest(JudgeVersion, name=version.name, **named)),
            _drift(Part.RUBRIC, rubric.family, rubric.version, _newest(RubricVersion, **same_rubric)),
        ]
    return tuple(dict.fromkeys(one for one in found if one))


def _newest(model: type[ProfileVersion | QuestionSet | JudgeVersion | RubricVersion], **fields: object) -> int:
    newest: int | None = model._default_manager.filter(**fields).aggregate(newest=Max("version"))["newest"]
    return newest or 0


def _drift(part: Part, name: str, used: int, newest: int) -> Drift | None:
    return Drift(part, name, used, newest) if newest > used else None
