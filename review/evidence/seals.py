"""Sealed labels: which ratings, overrides and adjudications the current reader may see.

Labels of locked answers (the hold-out of a gold set that is not retired) are sealed by content, in every run of the
project. Figures come in two forms. *Open*: locked answers count as unrated. *Full*: nothing is left out. Everybody
reads the open form, except leads who opened every hold-out of the project
(:mod:`review.calibration.opening`), which is recorded.

All code that reads labels for somebody goes through :func:`sealed_answers` or :func:`readable`;
``tests/review/evidence/test_seals.py`` names the modules that may read the tables without them, and why.
"""

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


class Form(StrEnum):
    """A form of the figures that rest on ratings."""

    OPEN = "open"
    FULL = "full"


class _Reader:
    """Who reads, and which projects have hold-outs and which of them the person opened, once that was asked for."""

    def __init__(self, person: Callable[[], Person]) -> None:
        self.person = person
        self.opened: dict[int, frozenset[int]] = {}
        self.live: frozenset[int] | None = None


_reader: ContextVar[_Reader | None] = ContextVar("reader", default=None)
_fixed: ContextVar[Form | None] = ContextVar("fixed form", default=None)


@contextmanager
def read_as(person: Callable[[], Person]) -> Iterator[None]:
    """Read labels as this person. It is asked for when labels are read: by then a token may have named somebody."""
    token = _reader.set(_Reader(person))
    try:
        yield
    finally:
        _reader.reset(token)


@contextmanager
def in_form(form: Form) -> Iterator[None]:
    """Read labels in this form, whoever the reader is: to compute what is cached, or to freeze labels."""
    token = _fixed.set(form)
    try:
        yield
    finally:
        _fixed.reset(token)


def form_of(project_id: int) -> Form:
    """The form in which labels of the project are read now: the open one where no reader is known, as in commands and
    workers."""
    if (fixed := _fixed.get()) is not None:
        return fixed
    if project_id not in _live_projects():
        return Form.OPEN  # both forms are the same
    return Form.FULL if project_id in _opened_projects() else Form.OPEN


def _live_projects() -> frozenset[int]:
    """The projects with a gold set in use. One query, once for a request."""
    reader = _reader.get()
    if reader is not None and reader.live is not None:
        return reader.live
    live = frozenset(live_sets().order_by().values_list("project_id", flat=True).distinct())
    if reader is not None:
        reader.live = live
    return live


def _opened_projects() -> frozenset[int]:
    """The projects with hold-outs, all of which the current reader opened and still leads. Two queries at most, once
    for a request."""
    reader = _reader.get()
    user = reader.person() if reader is not None else None
    if reader is None or not isinstance(user, User):
        return frozenset()
    if user.pk not in reader.opened:
        reader.opened[user.pk] = _opened_by(user)
    return reader.opened[user.pk]


def _opened_by(user: User) -> frozenset[int]:
    rows = HoldOutOpening.objects.filter(created_by=user, project__in=projects_with(user, Action.ACTIVATE).values("pk"))
    opened = set(rows.values_list("project_id", "lineage"))
    if not opened:
        return frozenset()
    live = set(live_sets().filter(project__in={pk for pk, _ in opened}).values_list("project_id", "name"))
    closed = {pk for pk, _ in live - opened}
    return frozenset(pk for pk, _ in live & opened if pk not in closed)


def live_sets() -> QuerySet[GoldSet]:
    """The versions of gold sets that are not retired."""
    retired = GoldRetirement.objects.filter(project=OuterRef("project"), lineage=OuterRef("name"))
    return GoldSet.objects.filter(~Exists(retired))


def _locked(path: str) -> Q:
    """That the answer at ``path`` is a locked one of its project, or has the same question and text as one. Answers
    without a text are equal to none."""
    at = f"{path}__" if path else ""
    retired = GoldRetirement.objects.filter(project=OuterRef("gold_set__project"), lineage=OuterRef("gold_set__name"))
    items = GoldItem.objects.filter(
        ~Exists(retired), split=Split.HOLD_OUT, gold_set__project=OuterRef(f"{at}answer_set__project")
    )
    equal = {"answer__text_hash": OuterRef(f"{at}text_hash"), "answer__question__text": OuterRef(f"{at}question__text")}
    itself = Exists(items.filter(answer=OuterRef(f"{at}pk")))
    return Q(itself) | ~Q(**{f"{at}text": ""}) & Q(Exists(items.filter(**equal)))


def sealed_answers(
    project_id: int, answer_set_id: int | None, answer_ids: Collection[int] | None = None
) -> frozenset[int]:
    """The answers of the set (or some of them; of any set where it is ``None``) whose labels the current reader may not
    see. One query where the project has no gold set in use, else up to four."""
    if project_id not in _live_projects() or form_of(project_id) is Form.FULL:
        return frozenset()
    answers = Answer.objects.filter(_locked(""), answer_set__project=project_id)
    if answer_set_id is not None:
        answers = answers.filter(answer_set=answer_set_id)
    if answer_ids is not None:
        answers = answers.filter(pk__in=answer_ids)
    return frozenset(answers.values_list("pk", flat=True))


def readable(rows: QuerySet[M], answer: str = "answer", *, own: Q | None = None) -> QuerySet[M]:
    """The rows about answers (``answer`` leads there) whose labels the current reader may see, and the reader's ``own``
    rows. One query where no gold set is in use."""
    if _fixed.get() is Form.FULL or not _live_projects():
        return rows
    shown = ~_locked(answer)
    if _fixed.get() is None and (opened := _opened_projects()):
        shown |= Q(**{f"{answer}__answer_set__project__in": opened})
    return rows.filter(shown if own is None else shown | own)
