"""Sealed labels: the ratings, overrides and adjudications that the current reader may not see.

Labels of locked answers (the hold-out of an active gold set) are sealed by content, in every run of the project.
Figures exist in two forms. *Open*: locked answers count as unrated. *Full*: nothing is left out. Readers get the open
form, except leads who opened every hold-out of the project (:mod:`review.calibration.openings`), which is recorded.

All code that reads labels for a person uses :func:`sealed_answers` or :func:`readable`.
``tests/review/evidence/test_seals.py`` lists the modules that may read the tables directly, with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TypeVar

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from evaluation.accounts.access import projects_with
from evaluation.core.roles import Action
from evaluation.models import Answer, HoldOutOpening, User
from review.models import GoldItem, GoldRetirement, GoldSet
from review.statistics.gold_split import Split

M = TypeVar("M", bound=Model)
Person = User | AnonymousUser


class LabelForm(StrEnum):
    """Form of the figures that depend on ratings."""

    OPEN = "open"
    FULL = "full"


class _Reader:
    """Current reader, with cached projects that have hold-outs and projects that the reader opened."""

    def __init__(self, person: Callable[[], Person]) -> None:
        self.person = person
        self.opened: dict[int, frozenset[int]] = {}
        self.live: frozenset[int] | None = None


_reader: ContextVar[_Reader | None] = ContextVar("reader", default=None)
_fixed: ContextVar[LabelForm | None] = ContextVar("fixed form", default=None)


@contextmanager
def read_as(person: Callable[[], Person]) -> Iterator[None]:
    """Read labels as this person. ``person`` is called at the first read, after token authentication."""
    token = _reader.set(_Reader(person))
    try:
        yield
    finally:
        _reader.reset(token)


@contextmanager
def fixed_label_form(form: LabelForm) -> Iterator[None]:
    """Read labels in this form for any reader: to compute cached figures, or to freeze labels."""
    token = _fixed.set(form)
    try:
        yield
    finally:
        _fixed.reset(token)


def label_form(project_id: int) -> LabelForm:
    """Form in which the project's labels are read; open without a reader, as in commands and workers."""
    if (fixed := _fixed.get()) is not None:
        return fixed
    if project_id not in _live_projects():
        # Both forms are equal.
        return LabelForm.OPEN
    return LabelForm.FULL if project_id in _opened_projects() else LabelForm.OPEN


def _live_projects() -> frozenset[int]:
    """Projects with an active gold set. One query per request."""
    reader = _reader.get()
    if reader is not None and reader.live is not None:
        return reader.live
    live = frozenset(live_sets().order_by().values_list("project_id", flat=True).distinct())
    if reader is not None:
        reader.live = live
    return live


def _opened_projects() -> frozenset[int]:
    """Projects whose hold-outs the current reader has all opened and still leads. At most two queries per request."""
    reader = _reader.get()
    user = reader.person() if reader is not None else None
    if reader is None or not isinstance(user, User):
        return frozenset()
    if user.pk not in reader.opened:
        reader.opened[user.pk] = _projects_opened_by(user)
    return reader.opened[user.pk]


def _projects_opened_by(user: User) -> frozenset[int]:
    rows = HoldOutOpening.objects.filter(created_by=user, project__in=projects_with(user, Action.ACTIVATE).values("pk"))
    opened = set(rows.values_list("project_id", "lineage"))
    if not opened:
        return frozenset()
    live = set(live_sets().filter(project__in={pk for pk, _ in opened}).values_list("project_id", "name"))
    closed = {pk for pk, _ in live - opened}
    return frozenset(pk for pk, _ in live & opened if pk not in closed)


def live_sets() -> QuerySet[GoldSet]:
    """Versions of gold sets that are not retired."""
    retired = GoldRetirement.objects.filter(project=OuterRef("project"), lineage=OuterRef("name"))
    return GoldSet.objects.filter(~Exists(retired))


def _locked_condition(path: str) -> Q:
    """Condition that the answer at ``path`` is locked in its project, or equals a locked one in question and text.

    Answers without a text equal no other."""
    prefix = f"{path}__" if path else ""
    retired = GoldRetirement.objects.filter(project=OuterRef("gold_set__project"), lineage=OuterRef("gold_set__name"))
    items = GoldItem.objects.filter(
        ~Exists(retired), split=Split.HOLD_OUT, gold_set__project=OuterRef(f"{prefix}answer_set__project")
    )
    equal_fields = {
        "answer__text_hash": OuterRef(f"{prefix}text_hash"),
        "answer__question__text": OuterRef(f"{prefix}question__text"),
    }
    is_locked = Exists(items.filter(answer=OuterRef(f"{prefix}pk")))
    return Q(is_locked) | ~Q(**{f"{prefix}text": ""}) & Q(Exists(items.filter(**equal_fields)))


def sealed_answers(
    project_id: int, answer_set_id: int | None, answer_ids: Collection[int] | None = None
) -> frozenset[int]:
    """Answers of the set (or some of them; of any set if ``None``) whose labels the current reader may not see.

    One query if the project has no active gold set, else up to four."""
    if project_id not in _live_projects() or label_form(project_id) is LabelForm.FULL:
        return frozenset()
    answers = Answer.objects.filter(_locked_condition(""), answer_set__project=project_id)
    if answer_set_id is not None:
        answers = answers.filter(answer_set=answer_set_id)
    if answer_ids is not None:
        answers = answers.filter(pk__in=answer_ids)
    return frozenset(answers.values_list("pk", flat=True))


def readable(rows: QuerySet[M], answer: str = "answer", *, own: Q | None = None) -> QuerySet[M]:
    """Rows about answers whose labels the current reader may see, and the reader's ``own`` rows.

    ``answer`` is the lookup path to the answer. One query without active gold sets."""
    if _fixed.get() is LabelForm.FULL or not _live_projects():
        return rows
    visible = ~_locked_condition(answer)
    if _fixed.get() is None and (opened := _opened_projects()):
        visible |= Q(**{f"{answer}__answer_set__project__in": opened})
    return rows.filter(visible if own is None else visible | own)
