"""The options of a queue's items and people: who rates what, how many do, what comes again, and until when."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from evaluation.core.errors import UnknownName
from evaluation.core.roles import Role
from evaluation.models import RoleGrant, Run, User
from review.queues.lists import fields_from
from review.queues.sharing import MOST_REPEATS, Distribution, Sharing


def add_queue_options(parser: CommandParser) -> None:
    """Add them."""
    parser.add_argument("--reviewers", nargs="+", default=[], help="user names; all reviewers, if not named")
    parser.add_argument("--distribution", choices=Distribution.values, default=str(Distribution.POOL))
    parser.add_argument(
        "--field", action="append", default=[], metavar="TAG:NAMES", help="for by_tag: tag or category, user names"
    )
    parser.add_argument(
        "--overlap-share", type=_share(1), default=1.0, help="share that --reviews-needed people rate, 0 to 1"
    )
    parser.add_argument(
        "--repeat-share", type=_share(MOST_REPEATS), default=0.0, help="share that comes again unmarked, 0 to 0.5"
    )
    parser.add_argument("--reveal-share", type=_share(1), default=0.1, help="share shown the judge by chance, 0 to 1")
    parser.add_argument("--lease-minutes", type=int, default=30, help="how long an answer stays reserved")
    parser.add_argument("--deadline", type=_moment, help="such as 2026-12-01T18:00")
    parser.add_argument("--show-system", action="store_true", help="reviewers see which system answered (recorded)")


def sharing_of(options: Mapping[str, Any], people: Sequence[User]) -> Sharing:
    """Whom the items are for.

    :raises Refused: ``no_fields`` for a field that is not written as TAG:NAMES.
    :raises UnknownName: for a name that is not among the reviewers.
    """
    known = {one.get_username(): one for one in people}
    fields: dict[str, list[User]] = {}
    for tag, names in fields_from("\n".join(options["field"])).items():
        for name in names:
            if name not in known:
                raise UnknownName("reviewer", name, list(known))
        fields[tag] = [known[name] for name in names]
    return Sharing(options["distribution"], options["overlap_share"], options["repeat_share"], fields)


def reviewers_of(run: Run, names: Sequence[str]) -> list[User]:
    """The named people, else every reviewer of the project.

    :raises CommandError: where there is no reviewer.
    :raises UnknownName: for a name that nobody has.
    """
    if names:
        found = {one.username: one for one in User.objects.filter(username__in=names, is_active=True)}
        for name in names:
            if name not in found:
                known = RoleGrant.objects.filter(project=run.project_id).values_list("user__username", flat=True)
                raise UnknownName("user", name, sorted(set(known)))
        return [found[name] for name in dict.fromkeys(names)]
    granted = RoleGrant.objects.filter(project=run.project_id, role=Role.REVIEWER).values("user")
    people = list(User.objects.filter(pk__in=granted, is_active=True).order_by("username"))
    if not people:
        raise CommandError(_("The project has no reviewer. Name people with --reviewers."))
    return people


def _share(most: float) -> Any:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ArgumentTypeError(f"{text} is no number") from None
        if not 0 <= value <= most:
            raise ArgumentTypeError(f"{text} is not between 0 and {most:g}")
        return value

    return read


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise ArgumentTypeError(f"{text} is no moment, such as 2026-12-01T18:00")
    moment = moment if timezone.is_aware(moment) else timezone.make_aware(moment)
    if moment <= timezone.now():
        raise ArgumentTypeError(f"{text} has passed already")
    return moment
