"""What a lead does about the cause of a dispute: a new version of the rubric, or of the question set with a better
question or reference. Nothing that was decided before changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.files.question_rows import QuestionFile
from evaluation.judges.shipping import rubric_row
from evaluation.judging.rubric import Rubric
from evaluation.models import Question, RubricVersion, User
from evaluation.questions.importing import Imported, import_question_set, newest_version

LONGEST_TEXT = 20_000  # characters of a question or reference
LONGEST_ANCHOR = 120  # as the rubric's own levels


@dataclass(frozen=True, slots=True)
class AmendedRubric:
    """The version that holds the new texts; ``created`` is false where one had them already."""

    version: RubricVersion
    created: bool


def amend_question(question: Question, *, text: str, references: Sequence[str], by: User) -> Imported:
    """The newest version of the question's set with this question's text and references replaced, as the next version;
    everything else in it stays.

    :raises Refused: ``text_needed``, ``text_too_long``, or ``question_gone`` where the newest version has no question
        of that id any more.
    """
    wanted = [reference.strip() for reference in references if reference.strip()]
    if not text.strip():
        raise Refused("text_needed")
    if any(len(one) > LONGEST_TEXT for one in (text, *wanted)):
        raise Refused("text_too_long", limit=LONGEST_TEXT)
    owner = question.question_set
    newest = newest_version(owner.project, owner.name) or owner
    rows = list(newest.questions.order_by("position"))
    if question.external_id not in {row.external_id for row in rows}:
        raise Refused("question_gone", question=question.external_id)
    changed = {"text": text.strip(), "references": tuple(wanted)}
    specs = [
        row.read().model_copy(update=changed) if row.external_id == question.external_id else row.read() for row in rows
    ]
    file = QuestionFile(
        questions=tuple(specs),
        lines={},
        metadata={row.external_id: row.metadata for row in rows},
        set_metadata=newest.metadata,
        metadata_keys=(),
        remarks=(),
        format="amended",
        encoding="utf-8",
    )
    return import_question_set(owner.project, owner.name, file, by=by)


def amend_rubric(
    rubric: RubricVersion, metric: str, *, question: str, texts: Mapping[str, str], by: User
) -> AmendedRubric:
    """The rubric with a metric's question and level or label texts replaced, as the next version. ``texts`` are by
    level (``3``) or label. Earlier ratings and scores keep pointing at the version they were made with.

    :raises UnknownName: for a metric the rubric does not hold.
    :raises Refused: ``text_needed``, or ``anchor_too_long`` beyond 120 characters.
    """
    spec = rubric.rubric
    spec.metric(metric)  # refuses an unknown one
    if not question.strip() or any(not one.strip() for one in texts.values()):
        raise Refused("text_needed")
    if any(len(one.strip()) > LONGEST_ANCHOR for one in texts.values()):
        raise Refused("anchor_too_long", limit=LONGEST_ANCHOR)
    content = spec.model_dump(mode="json")
    for one in content["metrics"]:
        if one["name"] == metric:
            one["question"] = question.strip() + "\n" if one["question"].endswith("\n") else question.strip()
            for level in one["levels"]:
                level["text"] = texts.get(f"{level['value']:g}", level["text"]).strip()
            for label in one["labels"]:
                label["text"] = texts.get(label["label"], label["text"]).strip()
    newest = RubricVersion.objects.filter(family=spec.family, language=spec.language).order_by("-version").first()
    row = rubric_row(Rubric.model_validate(content))
    created = newest is None or row.version > newest.version
    if created:
        audit.record(by, "rubric_amended", row, hash=row.content_hash, before=rubric.pk)
    return AmendedRubric(row, created)
