"""A lead's decisions: a value above the ratings, rulings on flags and escalations, and new versions of what caused a
dispute. Nothing that was decided before changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction

from evaluation.accounts import audit
from evaluation.accounts.access import may
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import draft
from evaluation.datasets.importing import Imported, import_question_set, newest_version
from evaluation.formats.question_rows import QuestionFile
from evaluation.judging.rubric import Rubric
from evaluation.models import Answer, MetricDefinition, Project, Question, RubricVersion, User
from review.decisions.cases import RAISED, Why, case_of
from review.decisions.overrides import checked_reason, insert_decision
from review.evidence.answers import REMOVING, exposed
from review.evidence.changes import touch
from review.evidence.rating_input import check_value
from review.models import EventRuling, ItemEvent, Override, Rating, ReviewItem
from review.ratings.settling import RATED
from review.ratings.submitting import asked_of

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
        metadata={row.external_id: row.metadata for row in rows},
        set_metadata=newest.metadata,
        metadata_keys=(),
        remarks=(),
        format="amended",
        encoding="utf-8",
    )
    return import_question_set(owner.project, owner.name, file, by=by)


def amend_rubric(
    rubric: RubricVersion, metric: str, *, question: str, texts: Mapping[str, str], project: Project, by: User
) -> AmendedRubric:
    """The rubric with a metric's question and level or label texts replaced, as a draft of the project: runs judge by
    it where they name it, and others once it is activated. ``texts`` are by level (``3``) or label. Earlier ratings and
    scores keep pointing at the version they were made with.

    :raises UnknownName: for a metric the rubric does not hold.
    :raises Refused: ``text_needed``, ``anchor_too_long`` beyond 120 characters, or what a draft may not be
        (:func:`evaluation.criteria.rubrics.draft`).
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
    row = draft(project, Rubric.model_validate(content), by=by)
    created = newest is None or row.version > newest.version
    return AmendedRubric(row, created)


def adjudicate(
    answer: Answer,
    metric: MetricDefinition,
    *,
    value: float | None = None,
    label: str | None = None,
    reason: str,
    seen: int | None,
    by: User,
) -> Override:
    """Give the value that counts from now on; the ratings stay. ``seen`` is the number of the newest decision the
    person had in view (0 for none, ``None`` not to say), so that of two leads who decide at once one is told. Whether
    the person had seen the judge is stored with it: only blind adjudications may serve as gold.

    :raises PermissionDenied: for everybody but a lead of the project.
    :raises Refused: ``own_rating`` for who rated it, ``changed_meanwhile``, ``reason_required``, ``reason_too_long``,
        ``one_value`` or ``off_scale``.
    """
    if not may(by, answer.answer_set.project_id, Action.ADJUDICATE):
        raise PermissionDenied
    text = checked_reason(reason)
    check_value(metric.name, metric.read_scale(), value, label)
    with transaction.atomic():
        # Before anything else, as whoever changes a queue does: the audit log is the last that all of them wait for.
        items = list(ReviewItem.objects.filter(answer=answer).select_for_update(no_key=True).order_by("pk"))
        if Rating.objects.filter(answer=answer, metric=metric, reviewer=by).exists():
            raise Refused("own_rating")
        rows = list(Override.objects.filter(answer=answer, metric=metric).order_by("seq"))
        if seen is not None and seen != (rows[-1].seq if rows else 0):
            raise Refused("changed_meanwhile")
        made = Override(kind=Override.Kind.ADJUDICATION, value=value, label=label, reason=text, by=by)
        made.token_id = by.token_id
        made.judge_seen = exposed(by, answer.pk)
        insert_decision(answer, metric, rows, made)
        for item in items:
            settle_case(item)
    return made


def rule_on(event: ItemEvent, *, upheld: bool, reason: str, by: User) -> EventRuling:
    """Uphold or dismiss a flag or an escalation. An upheld flag of a bad question or reference takes the answer out of
    all means and the item out of its queue.

    :raises PermissionDenied: for everybody but a lead of the project.
    :raises Refused: ``not_raised`` for another event, ``own_flag``, ``ruled_already``, or the reason's codes.
    """
    item = event.assignment.item
    if not may(by, item.queue.project_id, Action.ADJUDICATE):
        raise PermissionDenied
    if event.verb not in RAISED:
        raise Refused("not_raised")
    if event.assignment.reviewer_id == by.pk:
        raise Refused("own_flag")
    text = checked_reason(reason)
    try:
        with transaction.atomic():
            if EventRuling.objects.filter(event=event).exists():
                raise Refused("ruled_already")
            made = EventRuling.objects.create(event=event, seq=1, upheld=upheld, reason=text, by=by)
            touch([item.answer_id])
            if upheld and event.kind in REMOVING:
                ReviewItem.objects.filter(pk=item.pk).update(state=ReviewItem.State.WITHDRAWN)
            else:
                settle_case(item, ruled=True)
    except IntegrityError as error:
        raise Refused("ruled_already") from error
    audit.record(by, "flag_ruled", item, event=event.pk, upheld=upheld)
    return made


def settle_case(item: ReviewItem, *, ruled: bool = False) -> None:
    """Take an item out of dispute once nothing about it is open: done where it has its ratings or every metric was
    adjudicated, else open again for others. After a ruling (``ruled``) an item without a rating may be open again."""
    row = ReviewItem.objects.select_for_update(no_key=True, of=("self",)).select_related("queue").get(pk=item.pk)
    if row.state != ReviewItem.State.DISPUTED:
        return
    case = case_of(row)
    if set(case.why) - ({Why.PASSED_ON} if ruled else set()):
        return
    rated = row.assignments.filter(state__in=RATED).count()
    asked = {one.metric_id for one in asked_of(row)}
    done = rated >= row.reviews_needed or asked <= case.adjudicated
    state = ReviewItem.State.DONE if done else ReviewItem.State.OPEN
    ReviewItem.objects.filter(pk=row.pk).update(state=state)
