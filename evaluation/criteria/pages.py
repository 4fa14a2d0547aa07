"""Page objects of custom criteria."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.samples import Result, Status
from evaluation.criteria.forms import DIRECTIONS, SLOTS, STAND_INS, key_text
from evaluation.criteria.services import Trial
from evaluation.judging.calls import JudgeCall
from evaluation.judging.criteria.spec import CriterionTexts
from evaluation.judging.lexical import translate_reason
from evaluation.messages.explanations import explain_reason
from evaluation.models import Answer, AnswerSet, CriterionEvent, CriterionVersion, JudgeVersion

STATES: dict[str, Promise] = {
    "draft": _("draft"),
    "active": _("in force"),
    "deactivated": _("deactivated"),
    "earlier": _("earlier version"),
}
STATUSES = {Status.FAILED: _("failed"), Status.NOT_APPLICABLE: _("not applicable")}


@dataclass(frozen=True, slots=True)
class CriterionTranslation:
    """A criterion in one language; ``levels`` are pairs of key and text."""

    language: str
    title: str
    texts: CriterionTexts
    levels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CriterionPreview:
    """Request for one answer: messages (role, content) and reply schema, or the ``skip_reason`` why none would be
    sent."""

    answer: Answer
    messages: tuple[tuple[str, str], ...] = ()
    schema: str = ""
    skip_reason: str = ""


@dataclass(frozen=True, slots=True)
class TrialChoices:
    """Choices for preview and trial, with the selected ids (0 for none)."""

    answer_sets: Sequence[AnswerSet]
    judges: Sequence[JudgeVersion]
    chosen_answers: int
    chosen_judge: int


@dataclass(frozen=True, slots=True)
class CriterionPage:
    """Page of a criterion version. ``state`` is a key of :data:`STATES`."""

    version: CriterionVersion
    state: str
    versions: Sequence[CriterionVersion]
    choices: TrialChoices
    may_activate: bool
    may_draft: bool
    preview: CriterionPreview | None = None
    trial: Trial | None = None

    @property
    def state_title(self) -> str:
        return str(STATES[self.state])

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Pairs of label and value."""
        return _facts(self.version)

    @property
    def texts(self) -> list[CriterionTranslation]:
        spec = self.version.read()
        return list(_translations(spec.ko, spec.en))

    @property
    def rows(self) -> list[tuple[Answer, str, str]]:
        """Answers of the trial with value or status, and reason."""
        results = self.trial.results if self.trial else ()
        return [(answer, _value(result), _reason(result)) for answer, result in results]

    @property
    def cost(self) -> str:
        """Cost of the trial in US dollars; empty if unknown."""
        return "" if self.trial is None or self.trial.cost is None else f"{self.trial.cost:.4f}"


def version_state(version_id: int, newest: CriterionEvent | None, ever: bool) -> str:
    """State of a version. ``newest`` is the criterion's newest event, ``ever``: the version was active before."""
    if newest is not None and newest.version_id == version_id:
        return "active" if newest.verb == CriterionEvent.Verb.ACTIVATED else "deactivated"
    return "earlier" if ever else "draft"


def build_preview(answer: Answer, call_or_result: JudgeCall | Result) -> CriterionPreview:
    if isinstance(call_or_result, Result):
        return CriterionPreview(answer, skip_reason=explain_reason(call_or_result.reason))
    messages = tuple((message["role"], message["content"]) for message in call_or_result.rendered.messages)
    return CriterionPreview(answer, messages, json.dumps(call_or_result.rendered.schema, indent=1, ensure_ascii=False))


def _value(result: Result) -> str:
    if result.status is not Status.SCORED:
        return str(STATUSES[result.status])
    return result.label if result.value is None else f"{result.value:g}"  # type: ignore[return-value]


def _reason(result: Result) -> str:
    if result.status is Status.SCORED:
        return translate_reason(result.reason, get_language() or "en")
    return explain_reason(result.reason)


def _translations(korean: CriterionTexts | None, english: CriterionTexts | None) -> Iterator[CriterionTranslation]:
    for code, name, texts in (("ko", "Korean", korean), ("en", "English", english)):
        if texts is not None:
            levels = zip(texts.keys, texts.levels, strict=True)
            yield CriterionTranslation(
                code, gettext(name), texts, tuple((key_text(key), level.text) for key, level in levels)
            )


def _facts(version: CriterionVersion) -> tuple[tuple[str, str], ...]:
    spec = version.read()
    slots = {str(slot): str(title) for slot, title in SLOTS}
    korean = (get_language() or "en").startswith("ko")
    return (
        (gettext("title"), spec.title_ko if korean else spec.title_en),
        (gettext("scale"), str(spec.scale)),
        (gettext("direction"), str(dict(DIRECTIONS)[str(spec.direction)])),
        (gettext("visible to the judge"), _join_names(slots[slot] for slot in spec.sees)),
        (gettext("needs"), _join_names(slots[slot] for slot in spec.needs)),
        (gettext("categories"), _join_names(spec.categories) if spec.categories else gettext("all")),
        (gettext("stand-in for the offline baseline"), str(dict(STAND_INS)[spec.offline])),
        (gettext("created by"), str(version.created_by or gettext("a command (person unknown)"))),
        (gettext("content hash"), version.content_hash[:12]),
    )


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names) or "–"
