"""Who may do what. Fetch and authorise in one call: the only way views and endpoints get hold of a row.

A stranger to a project is told that there is nothing (404); a member whose roles do not allow the action is refused
(403). Views for people who are logged in say here which methods they take.
"""

from collections.abc import Callable, Collection
from typing import TypeVar

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.dispatch import Signal
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluation.core.roles import ALLOWED, Action, Role, allowed
from evaluation.models import (
    Answer,
    AnswerSet,
    ImportBatch,
    Project,
    Question,
    QuestionSet,
    RoleGrant,
    Run,
    Score,
    System,
    SystemVersion,
    User,
)

M = TypeVar("M", bound=Model)
Person = User | AnonymousUser
#: Sent with ``user``, ``answer_ids`` and ``via`` before a person sees judges' values; receivers record the exposure.
judge_values_viewed = Signal()
LARGEST_ID = 2**63 - 1  # what both databases hold as a primary key

#: How each table reaches its project.
PROJECT_PATH: dict[type[Model], str] = {
    Project: "pk",
    QuestionSet: "project_id",
    Question: "question_set__project_id",
    ImportBatch: "project_id",
    System: "project_id",
    SystemVersion: "system__project_id",
    AnswerSet: "project_id",
    Answer: "answer_set__project_id",
    Run: "project_id",
    Score: "run__project_id",
}


def roles_in(user: Person, project_id: int) -> frozenset[str]:
    """The person's roles in a project; a superuser is an administrator everywhere."""
    limit = getattr(user, "token_project_id", None)
    return _roles(user, project_id=project_id) if limit in {None, project_id} else frozenset()


def roles_anywhere(user: Person) -> frozenset[str]:
    """The roles the person holds in any project, for navigation, never for authorisation of a row; a superuser is an
    administrator."""
    return _roles(user)


def _roles(user: Person, **where: int) -> frozenset[str]:
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return frozenset({Role.ADMIN})
    return frozenset(RoleGrant.objects.filter(user=user, **where).values_list("role", flat=True).distinct())


def may(user: Person, project_id: int, action: Action) -> bool:
    """Whether the person may do the action in the project."""
    return allowed(roles_in(user, project_id), action)


def projects_with(user: Person, action: Action) -> QuerySet[Project]:
    """The projects in which the person may do the action."""
    if not isinstance(user, User) or not user.is_active:
        return Project.objects.none()
    projects = Project.objects.all()
    if not user.is_superuser:
        projects = projects.filter(grants__user=user, grants__role__in=ALLOWED[action]).distinct()
    limit = getattr(user, "token_project_id", None)
    return projects if limit is None else projects.filter(pk=limit)


def reached_sql(action: Action, project: str) -> str:
    """:func:`projects_with` in SQL: a condition on the column that names the project, with the values of
    :func:`reached_by`."""
    roles = ", ".join(f"'{role}'" for role in sorted(ALLOWED[action]))
    granted = (
        "SELECT 1 FROM evaluation_rolegrant g "  # noqa: S608  -- of our own names alone
        f"WHERE g.project_id = {project} AND g.user_id = %(user)s AND g.role IN ({roles})"
    )
    return f"{project} = COALESCE(%(only)s, {project}) AND (%(everywhere)s OR EXISTS ({granted}))"


def reached_by(user: Person) -> dict[str, int | None]:
    """Who asks, for :func:`reached_sql`: ``user`` is ``None`` for whom nothing is there."""
    known = isinstance(user, User) and user.is_active
    limit = getattr(user, "token_project_id", None)
    return {"user": user.pk if known else None, "everywhere": known and user.is_superuser, "only": limit}


def visible(rows: QuerySet[M], user: Person, action: Action = Action.VIEW, *, path: str = "") -> QuerySet[M]:
    """The rows of the projects in which the person may do the action."""
    return rows.filter(**{f"{path or PROJECT_PATH[rows.model]}__in": projects_with(user, action).values("pk")})


def fetch(rows: QuerySet[M], user: Person, action: Action, pk: int | str, *, path: str = "") -> M:
    """One row by primary key, for an action.

    :raises Http404: when there is none, or the person has no role in its project.
    :raises PermissionDenied: when the person's roles do not allow the action.
    """
    lookup = path or PROJECT_PATH[rows.model]
    found = rows.filter(pk=pk).values_list(lookup, flat=True).first()
    if found is None:
        raise Http404
    held = roles_in(user, int(found))
    if not held:
        raise Http404
    if not allowed(held, action):
        raise PermissionDenied
    return rows.get(pk=pk)


def lock_project(project_id: int) -> None:
    """Wait until nobody else holds the project's turn; the transaction one is in gives it back at its end.

    On SQLite a writing transaction has the whole database to itself anyway.
    """
    Project.objects.select_for_update().get(pk=project_id)


def values_shown(user: Person, answer_ids: Collection[int], via: str) -> None:
    """Announce that the person is about to see the judges' values of these answers; ``via`` names the place."""
    judge_values_viewed.send(sender=None, user=user, answer_ids=answer_ids, via=via)


View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def person(request: HttpRequest) -> User:
    """The user of a request that only logged-in people make.

    :raises PermissionDenied: for anybody else.
    """
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def signed_in_get(view: View) -> View:
    """A view that only shows: GET and HEAD."""
    return login_required(require_safe(view))


def signed_in_post(view: View) -> View:
    """A view that only does: POST."""
    return login_required(require_POST(view))


def signed_in_form(view: View) -> View:
    """A view that shows a form and takes it: GET, HEAD and POST."""
    return login_required(require_http_methods(["GET", "HEAD", "POST"])(view))
