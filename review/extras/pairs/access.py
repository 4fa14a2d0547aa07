"""Fetch and authorise comparisons side by side: one leads them or is named in them, everything else is not there."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404

from evaluation.accounts import access
from evaluation.accounts.access import Person
from evaluation.core.roles import Action
from evaluation.models import User
from review.models import PairMember, PairSet


def pair_sets_of(user: Person) -> QuerySet[PairSet]:
    """The comparisons the person leads or is named in, newest first."""
    led = Q(project__in=access.projects_with(user, Action.MANAGE_REVIEW).values("pk"))
    reached = Q(project__in=access.projects_with(user, Action.RATE).values("pk"))
    named = Q(pk__in=PairMember.objects.filter(reviewer=user).values("pair_set")) if isinstance(user, User) else Q(pk=0)
    return PairSet.objects.filter(led | (reached & named)).order_by("-id")


def pair_set_for(user: Person, pk: int | str) -> PairSet:
    """A comparison for its leads and members; 404 for all others, whatever their role in the project."""
    found = pair_sets_of(user).filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


def pair_set_for_lead(user: Person, pk: int | str) -> PairSet:
    """A comparison for who manages it.

    :raises Http404: for everybody who cannot see it.
    :raises PermissionDenied: for those who only rate in it.
    """
    found = pair_set_for(user, pk)
    if not leads_pairs(user, found):
        raise PermissionDenied
    return found


def leads_pairs(user: Person, found: PairSet) -> bool:
    """Whether the person manages the comparison."""
    return access.may(user, found.project_id, Action.MANAGE_REVIEW)
