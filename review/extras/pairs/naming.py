"""Finding a comparison for a command."""

from __future__ import annotations

from django.core.management.base import CommandError

from review.models import PairSet


def pair_set_named(name: str) -> PairSet:
    """The comparison of this id or name.

    :raises CommandError: exit code 2, when there is none or there are several of the name.
    """
    sets = PairSet.objects.select_related("project")
    found = list(sets.filter(pk=name) if name.isdigit() else sets.filter(name=name))
    if len(found) != 1:
        raise CommandError(f"{len(found)} comparisons are named {name!r}", returncode=2)
    return found[0]
