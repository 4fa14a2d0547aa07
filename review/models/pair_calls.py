"""The ledger of judges that compare pairs: who is at work, every call before it is sent, and what came back."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from evaluation.models import JudgeVersion, RubricVersion
from evaluation.models.judges import PreflightRow
from evaluation.models.work import ReplyRow
from evaluation.storage.rows import AppendOnly, Row
from review.models.pairs import Pair, PairSet


class PairJudging(Row):
    """A judge comparing the pairs of a set by a rubric. One process at a time works on it, as long as it prolongs its
    lease; what is left to do follows from the pairs' preferences."""

    pair_set = models.ForeignKey(PairSet, on_delete=models.PROTECT, related_name="judgings")
    judge_version = models.ForeignKey(JudgeVersion, on_delete=models.PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="+")
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pair_set", "judge_version", "rubric_version"], name="one_judging_per_set")
        ]

    def __str__(self) -> str:
        return f"{self.pair_set_id} {self.judge_version}"


class PairPreflight(PreflightRow):
    """What the small calls before a comparison told about its judge, pinned for the whole of it."""

    judging = models.ForeignKey(PairJudging, on_delete=models.PROTECT, related_name="preflights")
    judge_version = models.ForeignKey(JudgeVersion, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judging"], condition=Q(outcome="ok"), name="one_pin_per_judging"),
            models.CheckConstraint(
                condition=~Q(outcome="ok") | (~Q(rung="") & ~Q(judge_hash="")), name="pinned_pairs_have_a_rung"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.judging_id} {self.outcome}"


class PairAttempt(AppendOnly):
    """One HTTP call for a pair, written before it is sent. ``round`` is that of the preference it is made for,
    ``number`` counts the pair's calls in the round. One without a reply died with its process."""

    judging = models.ForeignKey(PairJudging, on_delete=models.PROTECT, related_name="attempts")
    pair = models.ForeignKey(Pair, on_delete=models.PROTECT, related_name="attempts")
    round = models.PositiveIntegerField()
    number = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judging", "pair", "round", "number"], name="one_attempt_per_pair_call")
        ]

    def __str__(self) -> str:
        return f"{self.pair_id}/{self.round}.{self.number}"


class PairReply(ReplyRow):
    """What an attempt for a pair gave."""

    attempt = models.OneToOneField(PairAttempt, on_delete=models.PROTECT, related_name="reply")

    class Meta:
        verbose_name_plural = "pair replies"

    def __str__(self) -> str:
        return f"{self.attempt_id} {self.outcome}"
