"""The demo's comparison side by side: pairs that its reviewers have compared, some that are left to each of them, and
the offline baseline's word on all."""

from __future__ import annotations

import json
from pathlib import Path

from django.conf import settings
from django.db import transaction

from evaluation.judges.shipping import baseline_judge
from evaluation.models import Run, User
from review.extras.pairs.judging import judge_pairs
from review.extras.pairs.making import make_pairs
from review.extras.pairs.preferring import is_swapped, prefer
from review.models import PairSet

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
