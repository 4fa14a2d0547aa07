"""Licences of judges: what an acceptance proved of a version on a metric, and whether that still holds for a run.

A licence belongs to the version of a rubric that was accepted for the judges of a name. For a run it holds while the
same version, model and way of asking judge questions of the same set in the same language, the proof is not older than
``CONCORD_LICENCE_DAYS``, and at most a tenth of the answers are of categories that no label of the gold set is of. A
run's licence is told as of the day it was made, so that a report says the same tomorrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from review.models import GoldItem, Licence, LookResult


def license_metrics(result: LookResult, hold_out: Mapping[str, Sequence[GoldItem]], model: str) -> None:
    """Write down what an acceptance proved, for each metric and question set; ``model`` answered."""
    gold_set = result.look.gold_set
    rows = gold_set.items.values_list("metric", "answer__question__question_set__name", "category", "answer")
    known: dict[tuple[int, str], set[str]] = {}
    sets: dict[int, str] = {}
    for metric, name, category, answer in rows.distinct():
        known.setdefault((metric, name), set()).add(category)
        sets[answer] = name
    tested: dict[tuple[int, str], list[GoldItem]] = {}
    for items in hold_out.values():
        for one in items:
            tested.setdefault((one.metric_id, sets[one.answer_id]), []).append(one)
    Licence.objects.bulk_create(
        Licence(
            result=result,
            metric_id=metric,
            question_set=name,
            answers=len(items),
            groups=len({one.group for one in items}),
            seen=sum(one.seen for one in items),
            categories=sorted(known[metric, name]),
            model=model,
        )
        for (metric, name), items in sorted(tested.items())
    )
