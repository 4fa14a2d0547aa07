"""Criteria for tests, as form fields, specifications and rows."""

from __future__ import annotations

from typing import Any

from evaluation.criteria.services import activate, draft_version
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


def fields(**changes: Any) -> dict[str, Any]:
    """A criterion of three levels in both languages, with changes."""
    return {"name": "tone", "title_en": "Tone", "title_ko": "말투", "en": ENGLISH, "ko": KOREAN, **changes}


def spec(**changes: Any) -> CriterionSpec:
    return CriterionSpec.model_validate(fields(**changes))


def drafted(project: Project, *, by: User | None = None, **changes: Any) -> CriterionVersion:
    """A draft in a project, with a unique name unless one is passed."""
    return draft_version(project, spec(**{"name": unique("tone").replace("-", "_"), **changes}), by=by)


def in_force(project: Project, *, by: User | None = None, **changes: Any) -> CriterionVersion:
    """An activated version."""
    version = drafted(project, by=by, **changes)
    activate(version, by=by)
    return version


def level_form_data(*rows: tuple[str, str, str]) -> dict[str, str]:
    """Rows of key, Korean and English text as form data."""
    parts = ("key", "ko", "en")
    return {f"levels-{n}-{part}": text for n, row in enumerate(rows) for part, text in zip(parts, row, strict=True)}
