"""What stands of a judge's comparison: which pairs are left, what was paid for, and how a preference is kept."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Exists, Max, OuterRef, Q

from evaluation.core.canonical import content_hash
from evaluation.core.samples import Result
from evaluation.judging.calls import JudgeReply, Outcome
from evaluation.models import JudgeVersion, RubricVersion
from evaluation.scoring.replies import kept_reply
from review.extras.pairs.pairwise import METRIC, Joined
from review.models import Pair, PairAttempt, PairJudging, PairReply, PairSet, Preference


@dataclass(slots=True)
class Waiting:
    """A pair that has to be compared in a round. ``made`` counts its calls of the round, ``lost`` those that died with
    their process; it is not to be taken before ``due`` (monotonic seconds)."""

    pair: Pair
    round: int
    made: int = 0
    lost: int = 0
    due: float = float("-inf")


def waiting_in(found: PairSet, judge: JudgeVersion, rubric: RubricVersion) -> list[Waiting]:
    """The pairs that the judge has no value for; one that failed before is in the next round."""
    rows = Preference.objects.filter(pair__pair_set=found, judge_version=judge, rubric_version=rubric)
    valued = set(rows.filter(value__isnull=False).values_list("pair_id", flat=True))
    rounds = dict(rows.order_by("round").values_list("pair_id", "round"))
    left = [pair for pair in found.pairs.order_by("position") if pair.pk not in valued]
    return [Waiting(pair, rounds.get(pair.pk, -1) + 1) for pair in left]


def with_attempts(judging: PairJudging, waiting: Collection[Waiting]) -> dict[int, Waiting]:
    """The pairs by id, with what was tried in their rounds."""
    by_pair = {one.pair.pk: one for one in waiting}
    rows = PairAttempt.objects.filter(judging=judging).order_by().values("pair_id", "round")
    for row in rows.annotate(made=Max("number"), lost=Count("id", filter=Q(reply__isnull=True))):
        one = by_pair.get(row["pair_id"])
        if one is not None and one.round == row["round"]:
            one.made, one.lost = row["made"], row["lost"]
    return by_pair


def preference_row(
    pair: Pair, judge: JudgeVersion, rubric: RubricVersion, number: int, both: Joined, results: Collection[Result]
) -> Preference:
    """A judge's row of the round: what both orders come to, with the orders (A first, then B) that were heard."""
    forward, backward, *_ = [*results, None, None]
    return Preference(
        pair=pair,
        by_judge=True,
        judge_version=judge,
        rubric_version=rubric,
        author=str(judge),
        value=both.value,
        failure=both.failure,
        reason=forward.reason if forward and forward.value is not None else "",
        detail={
            "forward": forward.value if forward else None,
            "backward": backward.value if backward else None,
            "orders_disagree": both.disagree,
        },
        origin=content_hash(["preference", pair.pk, METRIC, judge.pk, rubric.pk]),
        round=number,
    )


@dataclass(frozen=True, slots=True)
class KeptPairReplies:
    """The replies of one endpoint in one project behind preferences that came out."""

    project_id: int
    endpoint_id: int

    def find(self, digests: Collection[str]) -> dict[str, JudgeReply]:
        """The newest good reply to each of the requests that has one, marked as cached and free. One query."""
        valued = Preference.objects.filter(
            pair=OuterRef("attempt__pair"),
            judge_version=OuterRef("attempt__judging__judge_version"),
            rubric_version=OuterRef("attempt__judging__rubric_version"),
            round=OuterRef("attempt__round"),
            value__isnull=False,
        )
        rows = PairReply.objects.filter(
            Exists(valued),
            request_hash__in=digests,
            outcome=Outcome.OK,
            attempt__judging__pair_set__project_id=self.project_id,
            attempt__judging__judge_version__endpoint_id=self.endpoint_id,
        ).order_by("id")
        found = rows.values_list("request_hash", "raw", "model_returned", "chances", "cost")
        return {digest: kept_reply(raw, model, chances, cost) for digest, raw, model, chances, cost in found}
