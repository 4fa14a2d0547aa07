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
from evaluation.judging.lexical import retold
from evaluation.messages.sentences import explain_reason
from evaluation.models import Answer, AnswerSet, CriterionEvent, CriterionVersion, JudgeVersion

STATES: dict[str, Promise] = {
    "draft": _("draft"),
    "active": _("in force"),
    "deactivated": _("out of force"),
    "earlier": _("earlier version"),
}
STATUSES = {Status.FAILED: _("failed"), Status.NOT_APPLICABLE: _("not applicable")}


@dataclass(frozen=True, slots=True)
class Written:
    """The criterion in one language; ``levels`` are key and text."""

    language: str
    title: str
    texts: CriterionTexts
    levels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CriterionPreview:
    """The request for one answer as messages (role and content) with the schema of the reply; ``instead`` says why
    there would be none."""

    answer: Answer
    messages: tuple[tuple[str, str], ...] = ()
    schema: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """What preview and trial can be made with, and which of them are asked for, 0 for none."""

    answer_sets: Sequence[AnswerSet]
    judges: Sequence[JudgeVersion]
    chosen_answers: int
    chosen_judge: int


@dataclass(frozen=True, slots=True)
class CriterionPage:
    """Everything on the page, for a person who leads or drafts in the criterion's project. ``state`` is a key of
    :data:`STATES`."""

    version: CriterionVersion
    state: str
    versions: Sequence[CriterionVersion]
    choices: Choices
    leads: bool
    may_draft: bool
    preview: CriterionPreview | None = None
    trial: Trial | None = None

    @property
    def state_title(self) -> str:
        """How the version stands."""
        return str(STATES[self.state])

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Label and value."""
        return _facts(self.version)

    @property
    def texts(self) -> list[Written]:
        """The languages it is written in."""
        spec = self.version.read()
        return list(_written(spec.ko, spec.en))

    @property
    def rows(self) -> list[tuple[Answer, str, str]]:
        """The answers of the trial: value or status, and the reason."""
        tried = self.trial.tried if self.trial else ()
        return [(answer, _value(result), _reason(result)) for answer, result in tried]

    @property
    def cost(self) -> str:
        """The price of the trial in US dollars, empty where unknown."""
        return "" if self.trial is None or self.trial.cost is None else f"{self.trial.cost:.4f}"


def state_of(version_id: int, newest: CriterionEvent | None, ever: bool) -> str:
    """How a version stands: ``newest`` is its criterion's newest event, ``ever`` whether it was in force before."""
    if newest is not None and newest.version_id == version_id:
        return "active" if newest.verb == CriterionEvent.Verb.ACTIVATED else "deactivated"
    return "earlier" if ever else "draft"


def preview_of(answer: Answer, made: JudgeCall | Result) -> CriterionPreview:
    """The request for an answer, or why there would be none."""
    if isinstance(made, Result):
        return CriterionPreview(answer, instead=explain_reason(made.reason))
    messages = tuple((message["role"], message["content"]) for message in made.rendered.messages)
    return CriterionPreview(answer, messages, json.dumps(made.rendered.schema, indent=1, ensure_ascii=False))


def _value(result: Result) -> str:
    if result.status is not Status.SCORED:
        return str(STATUSES[result.status])
    return result.label if result.value is None else f"{result.value:g}"  # type: ignore[return-value]


def _reason(result: Result) -> str:
    if result.status is Status.SCORED:
        return retold(result.reason, get_language() or "en")
    return explain_reason(result.reason)


def _written(korean: CriterionTexts | None, english: CriterionTexts | None) -> Iterator[Written]:
    for code, name, texts in (("ko", "Korean", korean), ("en", "English", english)):
        if texts is not None:
            levels = zip(texts.keys, texts.levels, strict=True)
            yield Written(code, gettext(name), texts, tuple((key_text(key), level.text) for key, level in levels))


def _facts(version: CriterionVersion) -> tuple[tuple[str, str], ...]:
    spec = version.read()
    slots = {str(slot): str(title) for slot, title in SLOTS}
    korean = (get_language() or "en").startswith("ko")
    return (
        (gettext("title"), spec.title_ko if korean else spec.title_en),
        (gettext("scale"), str(spec.scale)),
        (gettext("direction"), str(dict(DIRECTIONS)[str(spec.direction)])),
        (gettext("the judge may see"), _listed(slots[slot] for slot in spec.sees)),
        (gettext("needs"), _listed(slots[slot] for slot in spec.needs)),
        (gettext("categories"), _listed(spec.categories) if spec.categories else gettext("all")),
        (gettext("stand-in of the offline baseline"), str(dict(STAND_INS)[spec.offline])),
        (gettext("made by"), str(version.created_by or gettext("a command; no person is known"))),
        (gettext("content hash"), version.content_hash[:12]),
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "–"
