"""Extensions of the core: addresses, calls of another ledger, to-dos, and the comparison of the demo."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from contrib.pairs.judging import judge_pairs
from contrib.pairs.making import is_swapped, make_pairs, prefer
from contrib.pairs.models import PairReply, PairSet
from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.extensions import Calls, Feature, Waiting
from evaluation.judges.shipping import baseline_judge
from evaluation.models import Run, User

FILE = Path(__file__).parent / "preferences.jsonl"
NAME = "Demo comparison · 데모 비교"
PAIRS = 12
SEED = 20261122
GUIDELINE = """\
Say which answer serves whoever asked better, not which is written better.

문장력이 아니라 질문한 사람에게 더 도움이 되는 답변을 골라 주세요.
"""


@transaction.atomic
def compare_side_by_side(run_a: Run, run_b: Run, reviewers: list[User], lead: User) -> None:
    """Make the comparison and fill it, once; the preferences in the file run from -2 (A much better) to 2 (B much
    better)."""
    if PairSet.objects.filter(project=run_a.project_id, name=NAME).exists():
        return
    made = make_pairs(run_a, run_b, name=NAME, reviewers=reviewers, size=PAIRS, guideline=GUIDELINE, seed=SEED, by=lead)
    pairs = {pair.external_id: pair for pair in made.pairs.all()}
    people = {person.username: person for person in reviewers}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        pair, person, value = pairs[row["question_id"]], people[row["reviewer"]], row["value"]
        seen = -value if is_swapped(made, pair, person) else value
        prefer(made, pair, person, seen, reason=row["reason"], seconds=35.0)
    judge_pairs(made, baseline_judge(made.project, settings.LANGUAGE_CODE))


def calls_about_pairs(projects: Collection[int]) -> Calls:
    """The calls of the comparisons of these projects."""
    return Calls("pairs", PairReply.objects.filter(attempt__judging__pair_set__project__in=projects))


def pairs_left(user: User) -> list[Waiting]:
    """Open comparisons with pairs that the person has still to compare."""
    mine = PairSet.objects.filter(closed_at=None, members__reviewer=user)
    mine = mine.filter(project__in=access.projects_with(user, Action.RATE).values("pk"))
    rated = Count("pairs", distinct=True, filter=Q(pairs__preferences__rater=user))
    counted = mine.annotate(size=Count("pairs", distinct=True), rated=rated).order_by("pk")
    return [_waiting(one, one.size - one.rated) for one in counted if one.size > one.rated]


def _waiting(found: PairSet, left: int) -> Waiting:
    return Waiting(
        count=left,
        what=ngettext("pair of answers waits to be compared", "pairs of answers wait to be compared", left),
        name=found.name,
        href=reverse("pairs-rate", args=[found.pk]),
        action=gettext("Compare side by side"),
    )


FEATURE = Feature(
    name="pairs",
    urls="contrib.pairs.views",
    api_urls="contrib.pairs.api",
    calls=calls_about_pairs,
    waiting=pairs_left,
    demo=compare_side_by_side,
)
