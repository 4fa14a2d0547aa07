"""What the pages of question sets, of profiles to choose and of custom criteria show."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec, Result, Status
from evaluation.criteria.services import Trial
from evaluation.judges.shipping import declared, default_profile
from evaluation.judging.calls import JudgeCall
from evaluation.judging.criteria.spec import CriterionTexts
from evaluation.judging.lexical import retold
from evaluation.messages.sentences import explain, explain_reason
from evaluation.models import (
    Answer,
    AnswerSet,
    CriterionEvent,
    CriterionVersion,
    ImportBatch,
    JudgeVersion,
    ProfileVersion,
    QuestionSet,
)
from evaluation.profiles.spec import ProfileSpec, shipped_profiles
from evaluation.questions.uploads import Preview
from evaluation.runs.making import Asking
from evaluation.web.criterion_form import DIRECTIONS, SLOTS, STAND_INS, key_text
from evaluation.web.forms import ColumnsForm, EncodingForm, UploadForm, columns_form, encoding_form

SHOWN_PROBLEMS = 500


@dataclass(frozen=True, slots=True)
class SetListPage:
    """The newest versions of the sets of the person's projects, each with its number of questions; ``imports`` tells
    whether they may add one."""

    rows: Sequence[tuple[QuestionSet, int]]
    several_projects: bool
    imports: bool


@dataclass(frozen=True, slots=True)
class SetPage:
    """A version of a set with one page of its questions and the number of them in each category. ``back`` and ``on``
    are query strings; ``leads``: its labels come from a repair, whose page the person may see."""

    found: QuestionSet
    versions: Sequence[QuestionSet]
    categories: Sequence[tuple[str, int]]
    rows: Sequence[QuestionSpec]
    back: str
    on: str
    imports: bool
    leads: bool

    @property
    def count(self) -> int:
        """The number of all its questions."""
        return sum(count for _, count in self.categories)


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """What confirming an upload would do."""

    batch: ImportBatch
    found: Preview

    @property
    def columns(self) -> ColumnsForm | None:
        """The choice of what each column is."""
        return columns_form(self.batch.kind, self.found)

    @property
    def encoding(self) -> EncodingForm | None:
        """The choice of an encoding."""
        return encoding_form(self.batch, self.found.encoding)


class FileProblems:
    """What is wrong with a file that was sent, for its page."""

    problems: Sequence[Problem]

    @property
    def lines(self) -> list[str]:
        """The problems in words, as far as one page can hold them."""
        return [explain(problem) for problem in self.problems[:SHOWN_PROBLEMS]]

    @property
    def more(self) -> int:
        """How many others there are."""
        return max(0, len(self.problems) - SHOWN_PROBLEMS)


@dataclass(frozen=True)
class UploadPage(FileProblems):
    """The form, and what is wrong with the file that was sent."""

    form: UploadForm
    file: str = ""
    problems: Sequence[Problem] = ()


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


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """A profile, what it measures in a sentence, and which fields it needs: those that questions and answers have, and
    those that none of them has."""

    spec: ProfileSpec
    there: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def title(self) -> str:
        """In the reader's language."""
        return self.spec.title.ko if _korean() else self.spec.title.en

    @property
    def description(self) -> str:
        """In the reader's language; empty for a profile without one."""
        text = self.spec.description
        return "" if text is None else text.ko if _korean() else text.en


def _korean() -> bool:
    return (get_language() or "en").startswith("ko")


def profile_choices(source: AnswerSet | Asking) -> list[ProfileChoice]:
    """The profiles that ship and those of the project in their newest version; the one that is preselected first."""
    specs = {spec.name: spec for spec in shipped_profiles()}
    written = ProfileVersion.objects.filter(project=source.project).order_by("version")
    specs |= {row.name: ProfileSpec.model_validate(row.spec) for row in written.exclude(created_by=None)}
    held = _held(source)
    preselected = default_profile(source.project)
    return [_choice(spec, held) for spec in sorted(specs.values(), key=lambda spec: spec.name != preselected)]


INPUTS = {
    "reference": _("expected answer"),
    "keywords": _("expected keywords"),
    "check": _("check for negative questions"),
    "required_info": _("required information"),
    "nuggets": _("core facts"),
    "ground_truth_chunk_ids": _("ids of the passages that should be found"),
    "contexts": _("retrieved passages"),
    "retrieved_ids": _("ids of retrieved passages"),
    "latency": _("latency"),
}


def _choice(spec: ProfileSpec, held: set[str]) -> ProfileChoice:
    metrics = declared()
    needed = dict.fromkeys(one for name in spec.metrics if name in metrics for one in metrics[name].inputs)
    named = [one for one in needed if one in INPUTS]  # others, such as embeddings, are not in files
    return ProfileChoice(
        spec,
        there=tuple(str(INPUTS[one]) for one in named if one in held),
        lacking=tuple(str(INPUTS[one]) for one in named if one not in held),
    )


_QUESTION_FIELDS = {
    "reference": ("references",),
    "keywords": ("keywords",),
    "check": ("check",),
    "required_info": ("required_info",),
    "nuggets": ("nuggets",),
    "ground_truth_chunk_ids": ("ground_truth_chunk_ids",),
}


def _held(source: AnswerSet | Asking) -> set[str]:
    """The fields that at least one question, or answer, has."""
    found: set[str] = set()
    for spec in source.question_set.questions.values_list("spec", flat=True).iterator():
        found |= {name for name, fields in _QUESTION_FIELDS.items() if any(spec.get(field) for field in fields)}
        if len(found) == len(_QUESTION_FIELDS):
            break
    if isinstance(source, Asking):
        return found | {"contexts", "retrieved_ids", "latency"}
    answers = source.answers.all()
    shown = {
        "contexts": answers.filter(contexts__isnull=False),
        "retrieved_ids": answers.exclude(retrieved_ids=None) | answers.filter(contexts__isnull=False),
        "latency": answers.exclude(latency_seconds=None),
    }
    return found | {name for name, rows in shown.items() if rows.exists()}
