"""Criteria that the tests write, and the rows they become."""

from __future__ import annotations

from typing import Any

from evaluation.criteria.services import activate, draft
from evaluation.judging.criteria.spec import CriterionSpec
from evaluation.models import CriterionVersion, Project, User
from tests.factories import unique

ENGLISH = {
    "question": "Is the tone right for a customer?",
    "instruction": "Look at the form of address and at blame.",
    "levels": [
        {"value": 1, "text": "Rude"},
        {"value": 2, "text": "Cold"},
        {"value": 3, "text": "Polite"},
    ],
}
KOREAN = {
    "question": "고객에게 알맞은 말투입니까?",
    "instruction": "존댓말과 책임 전가를 보십시오.",
    "levels": [
        {"value": 1, "text": "무례함"},
        {"value": 2, "text": "차가움"},
        {"value": 3, "text": "공손함"},
    ],
}


def fields(**more: Any) -> dict[str, Any]:
    """A criterion of three levels in both languages, with what differs from it."""
    return {"name": "tone", "title_en": "Tone", "title_ko": "말투", "en": ENGLISH, "ko": KOREAN, **more}


def spec(**more: Any) -> CriterionSpec:
    """The same, read."""
    return CriterionSpec.model_validate(fields(**more))


def drafted(project: Project, *, by: User | None = None, **more: Any) -> CriterionVersion:
    """A draft in a project under a name of its own, where none is given."""
    return draft(project, spec(**{"name": unique("tone").replace("-", "_"), **more}), by=by)


def in_force(project: Project, *, by: User | None = None, **more: Any) -> CriterionVersion:
    """A version that is activated at once."""
    version = drafted(project, by=by, **more)
    activate(version, by=by)
    return version


def levels_sent(*rows: tuple[str, str, str]) -> dict[str, str]:
    """Rows of key, Korean and English text, as the form's fields send them."""
    parts = ("key", "ko", "en")
    return {f"levels-{n}-{part}": said for n, row in enumerate(rows) for part, said in zip(parts, row, strict=True)}
