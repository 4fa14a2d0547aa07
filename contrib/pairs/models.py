"""Pairs of answers to one question, preferences of people and judges, and the ledger of the judges' calls."""

from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, JudgeVersion, Project, Question, RubricVersion, Run, User
from evaluation.models.judges import PreflightRow
from evaluation.models.work import ReplyRow
from evaluation.storage.append_only import AppendOnly, Authored, TimestampedModel


class PairSet(TimestampedModel, Authored):
    """A comparison: pairs of answers to rate. Every member rates every pair; ``seed`` fixes each person's order and
    sides. Imported sets have no runs."""

    sealed_fields = ("project", "run_a", "run_b", "seed")

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="pair_sets")
    name = models.CharField(_("name"), max_length=200)
    guideline = models.TextField(_("guideline"), blank=True)
    run_a = models.ForeignKey(Run, verbose_name=_("run A"), on_delete=PROTECT, null=True, blank=True, related_name="+")
    run_b = models.ForeignKey(Run, verbose_name=_("run B"), on_delete=PROTECT, null=True, blank=True, related_name="+")
    seed = models.PositiveBigIntegerField(_("seed"), default=0)
    closed_at = models.DateTimeField(_("closed"), null=True, blank=True)

    class Meta:
        verbose_name = _("pair set")
        verbose_name_plural = _("pair sets")
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_pair_set_per_name")]

    def __str__(self) -> str:
        return self.name


class PairMember(TimestampedModel):
    """A person who rates the pairs of a set."""

    pair_set = models.ForeignKey(PairSet, on_delete=PROTECT, related_name="members")
    reviewer = models.ForeignKey(User, on_delete=PROTECT, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pair_set", "reviewer"], name="one_pair_membership")]


class Pair(AppendOnly):
    """Answers of two systems to one question, with the texts as they were compared. ``answer_a`` and ``answer_b`` are
    set for answers of runs."""

    pair_set = models.ForeignKey(PairSet, on_delete=PROTECT, related_name="pairs")
    external_id = models.CharField(max_length=300)
    position = models.PositiveIntegerField()
    question = models.ForeignKey(Question, on_delete=PROTECT, null=True, related_name="+")
    answer_a = models.ForeignKey(Answer, on_delete=PROTECT, null=True, related_name="+")
    answer_b = models.ForeignKey(Answer, on_delete=PROTECT, null=True, related_name="+")
    question_text = models.TextField()
    reference = models.TextField(blank=True)
    system_a = models.CharField(max_length=200, blank=True)
    system_b = models.CharField(max_length=200, blank=True)
    text_a = models.TextField(blank=True)
    text_b = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pair_set", "external_id"], name="one_pair_per_id")]

    def __str__(self) -> str:
        return self.external_id


class Preference(AppendOnly):
    """A preference from -2 (A much better) to 2 (B much better), or the reason for a missing value.

    Of rows with one ``origin`` (pair, metric and rater) the highest round counts. ``swapped``: B was shown on the left.
    A judge's row joins its verdicts in both orders (``detail``); if they disagree, it is a tie."""

    erasable = ("reason",)
    author_path = "rater"

    pair = models.ForeignKey(Pair, on_delete=PROTECT, related_name="preferences")
    metric = models.CharField(max_length=100, default="preference")
    rater = models.ForeignKey(User, on_delete=PROTECT, null=True, related_name="+")
    judge_version = models.ForeignKey(JudgeVersion, on_delete=PROTECT, null=True, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, null=True, related_name="+")
    author = models.CharField(max_length=200, blank=True)
    by_judge = models.BooleanField(default=False)
    value = models.FloatField(null=True)
    failure = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    swapped = models.BooleanField(default=False)
    seconds = models.FloatField(null=True)
    detail = models.JSONField(default=dict)
    origin = models.CharField(max_length=64)
    round = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["origin", "round"], name="one_preference_per_round"),
            models.CheckConstraint(
                condition=Q(value__gte=-2, value__lte=2, failure="") | (Q(value__isnull=True) & ~Q(failure="")),
                name="preference_or_failure",
            ),
        ]


class PairJudging(TimestampedModel):
    """A judge's work on the pairs of a set by a rubric. One process at a time holds its lease; pending pairs follow
    from the stored preferences."""

    pair_set = models.ForeignKey(PairSet, on_delete=PROTECT, related_name="judgings")
    judge_version = models.ForeignKey(JudgeVersion, on_delete=PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pair_set", "judge_version", "rubric_version"], name="one_judging_per_set")
        ]


class PairPreflight(PreflightRow):
    """Result of the preflight calls of a comparison's judge, pinned for the whole comparison."""

    judging = models.ForeignKey(PairJudging, on_delete=PROTECT, related_name="preflights")
    judge_version = models.ForeignKey(JudgeVersion, on_delete=PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judging"], condition=Q(outcome="ok"), name="one_pin_per_judging"),
            models.CheckConstraint(
                condition=~Q(outcome="ok") | (~Q(response_format="") & ~Q(judge_hash="")),
                name="pinned_pairs_have_a_response_format",
            ),
        ]


class PairAttempt(AppendOnly):
    """An HTTP call for a pair, written before it is sent. ``round`` is that of its preference; ``number`` counts the
    pair's calls in the round. An attempt without a reply died with its process."""

    # `purge` deletes calls that were never sent.
    is_digested = False

    judging = models.ForeignKey(PairJudging, on_delete=PROTECT, related_name="attempts")
    pair = models.ForeignKey(Pair, on_delete=PROTECT, related_name="attempts")
    round = models.PositiveIntegerField()
    number = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judging", "pair", "round", "number"], name="one_attempt_per_pair_call")
        ]


class PairReply(ReplyRow):
    """Reply to an attempt for a pair."""

    attempt = models.OneToOneField(PairAttempt, on_delete=PROTECT, related_name="reply")

    class Meta:
        verbose_name_plural = "pair replies"
