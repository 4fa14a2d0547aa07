"""Extensions of the core: addresses, calls of the pairs' ledger, to-dos, and the comparison of the demo."""

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
from contrib.pairs.models import PairReply, PairSet
from contrib.pairs.services import is_swapped, make_pairs, store_preference
from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.extensions import Feature, LedgerCalls, TodoItem
from evaluation.judges.shipped import baseline_judge
from evaluation.models import Run, User

DEMO_NAMES = {"en": "Demo comparison", "ko": "데모 비교"}
DEMO_GUIDELINES = {
    "en": "Choose the answer that helps the person who asked more, not the one that is written better.",
    "ko": "문장력이 아니라 질문한 사람에게 더 도움이 되는 답변을 골라 주세요.",
}
DEMO_PAIRS = 12
DEMO_SEED = 20261122


@transaction.atomic
def create_demo_comparison(run_a: Run, run_b: Run, reviewers: list[User], lead: User) -> None:
    """Create the demo comparison in the language of the runs and its preferences, once. The values in the file run from
    -2 (A much better) to 2 (B much better)."""
    language = run_a.answer_set.question_set.metadata["language"]
    name = DEMO_NAMES[language]
    if PairSet.objects.filter(project=run_a.project_id, name=name).exists():
        return
    pair_set = make_pairs(
        run_a,
        run_b,
        name=name,
        reviewers=reviewers,
        size=DEMO_PAIRS,
        guideline=DEMO_GUIDELINES[language],
        seed=DEMO_SEED,
        by=lead,
    )
    pairs = {pair.external_id: pair for pair in pair_set.pairs.all()}
    reviewers_by_name = {person.username: person for person in reviewers}
    for line in preferences_file(language).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        pair, person, value = pairs[row["question_id"]], reviewers_by_name[row["reviewer"]], row["value"]
        shown_value = -value if is_swapped(pair_set, pair, person) else value
        store_preference(pair_set, pair, person, shown_value, reason=row["reason"], seconds=35.0)
    judge_pairs(pair_set, baseline_judge(pair_set.project, settings.LANGUAGE_CODE))


def preferences_file(language: str) -> Path:
    return Path(__file__).parent / f"preferences_{language}.jsonl"


def pair_calls(projects: Collection[int]) -> LedgerCalls:
    return LedgerCalls("pairs", PairReply.objects.filter(attempt__judging__pair_set__project__in=projects))


def pairs_to_compare(user: User) -> list[TodoItem]:
    """Open comparisons in which the user has pairs left to compare."""
    open_sets = PairSet.objects.filter(closed_at=None, members__reviewer=user)
    open_sets = open_sets.filter(project__in=access.projects_with(user, Action.RATE).values("pk"))
    rated_pairs = Count("pairs", distinct=True, filter=Q(pairs__preferences__rater=user))
    counted_sets = open_sets.annotate(size=Count("pairs", distinct=True), rated=rated_pairs).order_by("pk")
    return [
        _waiting(pair_set, pair_set.size - pair_set.rated)
        for pair_set in counted_sets
        if pair_set.size > pair_set.rated
    ]


def _waiting(pair_set: PairSet, remaining: int) -> TodoItem:
    return TodoItem(
        count=remaining,
        label=ngettext("pair of answers to compare", "pairs of answers to compare", remaining),
        name=pair_set.name,
        href=reverse("pairs-rate", args=[pair_set.pk]),
        action=gettext("Compare side by side"),
    )


FEATURE = Feature(
    name="pairs",
    urls="contrib.pairs.views",
    api_urls="contrib.pairs.api",
    calls=pair_calls,
    todo_items=pairs_to_compare,
    demo=create_demo_comparison,
)
