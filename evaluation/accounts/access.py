"""Access to projects. Views and endpoints fetch a row and check its permission in one call.

A person without a role in a project gets 404, a member whose roles do not allow the action gets 403. The decorators for
signed-in people also declare the allowed HTTP methods."""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.dispatch import Signal
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import Resolver404, get_script_prefix, resolve, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluation.core.roles import ALLOWED, Action, Role, is_allowed
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
UserOrAnonymous = User | AnonymousUser
#: Sent with ``user``, ``answer_ids`` and ``via`` before a person sees judges' values; receivers record the exposure.
judge_values_viewed = Signal()
# Largest primary key of both databases.
MAX_ID = 2**63 - 1

#: Lookup from each table to its project.
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


def roles_in(user: UserOrAnonymous, project_id: int) -> frozenset[str]:
    """Return the person's roles in a project; a superuser is an administrator everywhere."""
    token_project_id = getattr(user, "token_project_id", None)
    return _roles(user, project_id=project_id) if token_project_id in {None, project_id} else frozenset()


def roles_anywhere(user: UserOrAnonymous) -> frozenset[str]:
    """Return the person's roles in any project; a superuser is an administrator.

    For navigation only; rows are authorised by :func:`fetch`."""
    return _roles(user)


def _roles(user: UserOrAnonymous, **filters: int) -> frozenset[str]:
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return frozenset({Role.ADMIN})
    return frozenset(RoleGrant.objects.filter(user=user, **filters).values_list("role", flat=True).distinct())


def may(user: UserOrAnonymous, project_id: int, action: Action) -> bool:
    return is_allowed(roles_in(user, project_id), action)


def projects_with(user: UserOrAnonymous, action: Action) -> QuerySet[Project]:
    """Return the projects in which the person may do the action."""
    if not isinstance(user, User) or not user.is_active:
        return Project.objects.none()
    projects = Project.objects.all()
    if not user.is_superuser:
        projects = projects.filter(grants__user=user, grants__role__in=ALLOWED[action]).distinct()
    token_project_id = getattr(user, "token_project_id", None)
    return projects if token_project_id is None else projects.filter(pk=token_project_id)


def project_access_sql(action: Action, column: str) -> str:
    """Build the condition of :func:`projects_with` in SQL, for ``column``, which holds a project's id.

    Its parameters come from :func:`project_access_params`."""
    roles = ", ".join(f"'{role}'" for role in sorted(ALLOWED[action]))
    grant_query = (
        "SELECT 1 FROM evaluation_rolegrant g "  # noqa: S608  -- from our own names only
        f"WHERE g.project_id = {column} AND g.user_id = %(user)s AND g.role IN ({roles})"
    )
    return f"{column} = COALESCE(%(token_project)s, {column}) AND (%(everywhere)s OR EXISTS ({grant_query}))"


def project_access_params(user: UserOrAnonymous) -> dict[str, int | None]:
    """Return the parameters of :func:`project_access_sql`; ``user`` is ``None`` for anonymous or inactive people."""
    active = isinstance(user, User) and user.is_active
    token_project_id = getattr(user, "token_project_id", None)
    return {
        "user": user.pk if active else None,
        "everywhere": active and user.is_superuser,
        "token_project": token_project_id,
    }


def visible(rows: QuerySet[M], user: UserOrAnonymous, action: Action = Action.VIEW, *, path: str = "") -> QuerySet[M]:
    """Filter rows to the projects in which the person may do the action."""
    return rows.filter(**{f"{path or PROJECT_PATH[rows.model]}__in": projects_with(user, action).values("pk")})


def fetch(rows: QuerySet[M], user: UserOrAnonymous, action: Action, pk: int | str, *, path: str = "") -> M:
    """Return one row by primary key, authorised for an action.

    :raises Http404: if it does not exist, or the person has no role in its project.
    :raises PermissionDenied: if the person's roles do not allow the action."""
    lookup = path or PROJECT_PATH[rows.model]
    project_id = rows.filter(pk=pk).values_list(lookup, flat=True).first()
    if project_id is None:
        raise Http404
    roles = roles_in(user, int(project_id))
    if not roles:
        raise Http404
    if not is_allowed(roles, action):
        raise PermissionDenied
    return rows.get(pk=pk)


def lock_project(project_id: int) -> None:
    """Lock the project's row until the end of the current transaction.

    On SQLite a writing transaction locks the whole database anyway."""
    Project.objects.select_for_update().get(pk=project_id)


def announce_judge_values(user: UserOrAnonymous, answer_ids: Collection[int], via: str) -> None:
    """Announce that the person is about to see judges' values of these answers; ``via`` names the page or endpoint."""
    judge_values_viewed.send(sender=None, user=user, answer_ids=answer_ids, via=via)


View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def signed_in_user(request: HttpRequest) -> User:
    """Return the user of a request that requires login.

    :raises PermissionDenied: for anonymous users."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def signed_in_get(view: View) -> View:
    """Require login and GET or HEAD, for a view that only shows."""
    return login_required(require_safe(view))


def acts_only(view: View) -> View:
    """Require POST, for a view that only acts. A GET, such as a reload of the page that the action showed, leads to the
    page of the object: the nearest address above."""

    @wraps(view)
    def acting_view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method in {"GET", "HEAD"}:
            return redirect(_object_address(request.path_info))
        return require_POST(view)(request, *args, **kwargs)

    vars(acting_view)["acts_only"] = True
    return cast("View", acting_view)


def _object_address(path: str) -> str:
    """Address of the nearest page above an action."""
    parts = path.strip("/").split("/")
    while len(parts) > 1:
        parts.pop()
        address = f"/{'/'.join(parts)}/"
        with suppress(Resolver404):
            if not hasattr(resolve(address).func, "acts_only"):
                return f"{get_script_prefix().rstrip('/')}{address}"
    return reverse("home")


def signed_in_post(view: View) -> View:
    """Require login and POST, for a view that only acts."""
    return login_required(acts_only(view))


def signed_in_form(view: View) -> View:
    """Require login and GET, HEAD or POST, for a view with a form."""
    return login_required(require_http_methods(["GET", "HEAD", "POST"])(view))
