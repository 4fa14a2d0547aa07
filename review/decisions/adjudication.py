"""Decisions of leads: adjudication, rulings on flags and escalations, and amendments of questions and rubrics.

Earlier decisions never change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction

from evaluation.accounts import audit
from evaluation.accounts.access import may
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import draft
from evaluation.datasets.importing import Imported, import_question_set, newest_version
from evaluation.formats.question_rows import QuestionFile
from evaluation.judging.rubric import Rubric
from evaluation.models import Answer, MetricDefinition, Project, Question, RubricVersion, User
from review.decisions.cases import EVENT_VERBS, CaseReason, load_case
from review.decisions.overrides import clean_reason, insert_decision
from review.evidence.answers import EXCLUDING_FLAGS, was_exposed
from review.evidence.invalidation import invalidate_figures
from review.evidence.rating_input import check_value
from review.models import EventRuling, ItemEvent, Override, Rating, ReviewItem
from review.ratings.item_state import RATED
from review.ratings.submitting import item_metrics

# Limit for a question or a reference.
MAX_TEXT_CHARS = 20_000
# Limit of the rubric's own level texts.
MAX_LEVEL_CHARS = 120


@dataclass(frozen=True, slots=True)
class AmendedRubric:
    """A version with the amended texts; ``created`` is false if it existed before."""

    version: RubricVersion
    created: bool


def amend_question(question: Question, *, text: str, references: Sequence[str], by: User) -> Imported:
    """Create the next version of the question's set with this question's text and references replaced.

    :raises DomainError: ``text_needed``, ``text_too_long``, or ``question_gone`` if the newest version lacks the
    question.
    """
    cleaned = [reference.strip() for reference in references if reference.strip()]
    if not text.strip():
        raise DomainError("text_needed")
    if any(len(part) > MAX_TEXT_CHARS for part in (text, *cleaned)):
        raise DomainError("text_too_long", limit=MAX_TEXT_CHARS)
    question_set = question.question_set
    newest = newest_version(question_set.project, question_set.name) or question_set
    rows = list(newest.questions.order_by("position"))
    if question.external_id not in {row.external_id for row in rows}:
        raise DomainError("question_gone", question=question.external_id)
    changed = {"text": text.strip(), "references": tuple(cleaned)}
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
    return import_question_set(question_set.project, question_set.name, file, by=by)


def amend_rubric(
    rubric: RubricVersion, metric: str, *, question: str, texts: Mapping[str, str], project: Project, by: User
) -> AmendedRubric:
    """Create a draft of the rubric with a metric's question and level or label texts replaced.

    Runs use it if they name it or once it is activated. ``texts`` are keyed by level (``3``) or label. Earlier ratings
    and scores keep their version.

    :raises UnknownName: for a metric that the rubric lacks.
    :raises DomainError: ``text_needed``, ``anchor_too_long`` beyond 120 characters, and the codes of
        :func:`evaluation.criteria.rubrics.draft`."""
    spec = rubric.rubric
    # Raises UnknownName.
    spec.metric(metric)
    if not question.strip() or any(not level_text.strip() for level_text in texts.values()):
        raise DomainError("text_needed")
    if any(len(level_text.strip()) > MAX_LEVEL_CHARS for level_text in texts.values()):
        raise DomainError("anchor_too_long", limit=MAX_LEVEL_CHARS)
    content = spec.model_dump(mode="json")
    for metric_fields in content["metrics"]:
        if metric_fields["name"] == metric:
            metric_fields["question"] = (
                question.strip() + "\n" if metric_fields["question"].endswith("\n") else question.strip()
            )
            for level in metric_fields["levels"]:
                level["text"] = texts.get(f"{level['value']:g}", level["text"]).strip()
            for label in metric_fields["labels"]:
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
    """Store a lead's value, which replaces the consensus of ratings.

    ``seen`` is the number of the newest decision known to the lead (0 for none, ``None`` to skip the check), so that
    concurrent decisions conflict. Whether the lead had seen the judge is stored: only blind adjudications can serve as
    gold labels.

    :raises PermissionDenied: for everybody but a lead of the project.
    :raises DomainError: ``own_rating`` for a rater of the answer, ``changed_meanwhile``, ``reason_required``,
        ``reason_too_long``, ``one_value`` or ``off_scale``."""
    if not may(by, answer.answer_set.project_id, Action.ADJUDICATE):
        raise PermissionDenied
    text = clean_reason(reason)
    check_value(metric.name, metric.read_scale(), value, label)
    with transaction.atomic():
        # Lock the items first, in the order of all queue changes, which write the audit log last. This avoids
        # deadlocks.
        items = list(ReviewItem.objects.filter(answer=answer).select_for_update(no_key=True).order_by("pk"))
        if Rating.objects.filter(answer=answer, metric=metric, reviewer=by).exists():
            raise DomainError("own_rating")
        rows = list(Override.objects.filter(answer=answer, metric=metric).order_by("seq"))
        if seen is not None and seen != (rows[-1].seq if rows else 0):
            raise DomainError("changed_meanwhile")
        decision = Override(kind=Override.Kind.ADJUDICATION, value=value, label=label, reason=text, by=by)
        decision.token_id = by.token_id
        decision.judge_seen = was_exposed(by, answer.pk)
        insert_decision(answer, metric, rows, decision)
        for item in items:
            settle_case(item)
    return decision


def rule_on(event: ItemEvent, *, upheld: bool, reason: str, by: User) -> EventRuling:
    """Uphold or dismiss a flag or an escalation.

    An upheld flag of a bad question or reference excludes the answer from all means and withdraws the item.

    :raises PermissionDenied: for everybody but a lead of the project.
    :raises DomainError: ``not_raised`` for another event, ``own_flag``, ``ruled_already``, or a reason code of
        :func:`clean_reason`."""
    item = event.assignment.item
    if not may(by, item.queue.project_id, Action.ADJUDICATE):
        raise PermissionDenied
    if event.verb not in EVENT_VERBS:
        raise DomainError("not_raised")
    if event.assignment.reviewer_id == by.pk:
        raise DomainError("own_flag")
    text = clean_reason(reason)
    try:
        with transaction.atomic():
            if EventRuling.objects.filter(event=event).exists():
                raise DomainError("ruled_already")
            ruling = EventRuling.objects.create(event=event, seq=1, upheld=upheld, reason=text, by=by)
            invalidate_figures([item.answer_id])
            if upheld and event.kind in EXCLUDING_FLAGS:
                ReviewItem.objects.filter(pk=item.pk).update(state=ReviewItem.State.WITHDRAWN)
            else:
                settle_case(item, after_ruling=True)
            audit.record(by, "flag_ruled", item, event=event.pk, upheld=upheld)
    except IntegrityError as error:
        raise DomainError("ruled_already") from error
    return ruling


def settle_case(item: ReviewItem, *, after_ruling: bool = False) -> None:
    """Update a disputed item once nothing about it is open.

    It is done if it has its ratings or every metric was adjudicated, otherwise open again. After a ruling
    (``after_ruling``), an item without a rating may also be open again."""
    row = ReviewItem.objects.select_for_update(no_key=True, of=("self",)).select_related("queue").get(pk=item.pk)
    if row.state != ReviewItem.State.DISPUTED:
        return
    case = load_case(row)
    if set(case.why) - ({CaseReason.PASSED_ON} if after_ruling else set()):
        return
    rating_count = row.assignments.filter(state__in=RATED).count()
    metric_ids = {queue_metric.metric_id for queue_metric in item_metrics(row)}
    is_done = rating_count >= row.reviews_needed or metric_ids <= case.adjudicated
    state = ReviewItem.State.DONE if is_done else ReviewItem.State.OPEN
    ReviewItem.objects.filter(pk=row.pk).update(state=state)
