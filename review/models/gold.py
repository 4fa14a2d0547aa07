"""Gold sets: frozen expert labels with a fixed split, and the hold-out tests made on them."""

from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, JudgeVersion, MetricDefinition, Project, RubricEvent, RubricVersion
from evaluation.storage.append_only import AppendOnly, Authored, TimestampedModel


class GoldSet(AppendOnly, Authored):
    """A version of a gold set. Versions of one name form a lineage: each contains the one before and keeps every group
    in its split. ``content_hash`` covers the items with their ratings, and the version before."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="gold_sets")
    name = models.CharField(_("name"), max_length=100)
    version = models.PositiveIntegerField(_("version"))
    seed = models.PositiveBigIntegerField(_("seed"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("gold set")
        verbose_name_plural = _("gold sets")
        constraints = [models.UniqueConstraint(fields=["project", "name", "version"], name="one_gold_set_version")]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class GoldRetirement(AppendOnly, Authored):
    """Retirement of a lineage, with a reason: no hold-out test is made on it any more, and data of its tests may be
    disclosed."""

    erasable = ("reason",)
    author_path = "created_by"

    project = models.ForeignKey(Project, on_delete=PROTECT, related_name="+")
    lineage = models.CharField(max_length=100)
    reason = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "lineage"], name="one_retirement_of_a_gold_set")]

    def __str__(self) -> str:
        return self.lineage


class GoldItem(AppendOnly):
    """An answer's label on one metric: the unrounded mean of the blind first ratings ``ratings`` (key and value of
    each), with its sampling weight.

    A ``group`` stays together in one ``split``; ``since`` is the version that added it. ``seen``: one of its raters was
    shown a judge's value of the answer, even if only after the rating."""

    gold_set = models.ForeignKey(GoldSet, on_delete=PROTECT, related_name="items")
    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="+")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="+")
    label = models.FloatField()
    raters = models.PositiveIntegerField()
    ratings_hash = models.CharField(max_length=64)
    ratings = models.JSONField()
    weight = models.FloatField(default=1.0)
    split = models.CharField(max_length=12)
    group = models.CharField(max_length=300)
    category = models.CharField(max_length=200, blank=True)
    since = models.PositiveIntegerField()
    seen = models.BooleanField(default=False)

    class Meta:
        ordering = ["gold_set", "id"]
        constraints = [
            models.UniqueConstraint(fields=["gold_set", "answer", "metric"], name="one_label_per_answer_and_metric"),
            models.CheckConstraint(condition=Q(split__in=["examples", "validation", "hold_out"]), name="known_split"),
            models.CheckConstraint(condition=Q(weight__gt=0), name="gold_weight_is_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.gold_set_id} {self.answer_id} {self.metric_id}"


class HoldoutTest(AppendOnly, Authored):
    """A hold-out test of a lineage. All inputs are pinned before any call.

    ``number`` counts the tests of the lineage, ``step`` those that share an error budget. ``since``: only groups added
    since that version are tested. ``best`` is the best version ever accepted, against which the candidate must not be
    worse. With ``against``, the comparison is with the verdicts of that test instead, by another judge or by this one
    when it was accepted."""

    gold_set = models.ForeignKey(GoldSet, on_delete=PROTECT, related_name="looks")
    lineage = models.CharField(max_length=100)
    project = models.ForeignKey(Project, on_delete=PROTECT, related_name="looks")
    number = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    judge_version = models.ForeignKey(JudgeVersion, on_delete=PROTECT, related_name="+")
    candidate = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    active = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    best = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    claim = models.CharField(max_length=12)
    repeat = models.PositiveIntegerField(default=1)
    since = models.PositiveIntegerField(default=1)
    against = models.ForeignKey("self", on_delete=PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("hold-out test")
        verbose_name_plural = _("hold-out tests")
        constraints = [
            models.UniqueConstraint(fields=["project", "lineage", "number"], name="one_look_per_number"),
            models.CheckConstraint(condition=Q(against=None) | Q(claim="not_worse"), name="renewed_not_worse"),
        ]

    def __str__(self) -> str:
        return f"{self.lineage} #{self.number}"


class HoldoutTestResult(AppendOnly):
    """Outcome of a hold-out test: accepted, not accepted, not accepted only for its residual variance, or refused (too
    many verdicts missing), which spends no budget. ``event`` is the activation by an acceptance."""

    class Outcome(models.TextChoices):
        ACCEPTED = "accepted", _("accepted")
        NOT_ACCEPTED = "not_accepted", _("not accepted")
        LARGER_VARIANCE = "larger_residual_variance", _("not accepted: the residual variance is larger")
        REFUSED = "refused", _("refused")

    test = models.OneToOneField(HoldoutTest, on_delete=PROTECT, related_name="result")
    outcome = models.CharField(max_length=30, choices=Outcome.choices)
    event = models.ForeignKey(RubricEvent, on_delete=PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome="accepted", event__isnull=False)
                | Q(outcome__in=["not_accepted", "larger_residual_variance", "refused"], event__isnull=True),
                name="acceptance_activates",
            )
        ]

    def __str__(self) -> str:
        return f"{self.test_id} {self.outcome}"


class PromptApproval(AppendOnly):
    """Approval of a prompt version for a metric and the questions of a set.

    It holds the number of hold-out answers and groups, how many answers were ``seen``, the categories of the labels,
    and the model that answered. Rows never change: ``review/calibration/approvals.py`` decides whether an approval
    holds for a run."""

    result = models.ForeignKey(HoldoutTestResult, on_delete=PROTECT, related_name="approvals")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="+")
    question_set = models.CharField(max_length=200)
    answers = models.PositiveIntegerField()
    groups = models.PositiveIntegerField()
    seen = models.PositiveIntegerField(default=0)
    categories = models.JSONField(default=list)
    model = models.CharField(max_length=400, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["result", "metric", "question_set"], name="one_approval_per_metric_and_set")
        ]

    def __str__(self) -> str:
        return f"{self.result_id} {self.metric_id} {self.question_set}"


class SealedVerdict(AppendOnly):
    """A judge's verdict on a hold-out answer by one of the versions of a test, encrypted with the site's secret. Only
    that test reads it, and no page shows it."""

    test = models.ForeignKey(HoldoutTest, on_delete=PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="+")
    repeat = models.PositiveIntegerField(default=1)
    sealed = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["test", "rubric_version", "answer", "repeat"], name="one_sealed_verdict")
        ]


class AnchorCheck(TimestampedModel):
    """Validation answers judged again by the accepted version, to detect drift of the judge.

    ``number`` counts the checks of an approval; 0 is the reference, in which the previous version judges them too.
    ``step`` counts the drift tests of judges with this name within a year, 0 for a reference. ``model`` is the model
    that answered."""

    result = models.ForeignKey(HoldoutTestResult, on_delete=PROTECT, related_name="checks")
    number = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    model = models.CharField(max_length=400, blank=True, default="")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["result", "number"]
        constraints = [
            models.UniqueConstraint(fields=["result", "number"], name="one_check_per_number"),
            models.CheckConstraint(condition=Q(number=0, step=0) | Q(number__gt=0, step__gt=0), name="checks_spend"),
        ]

    def __str__(self) -> str:
        return f"{self.result_id} #{self.number}"


class AnchorVerdict(AppendOnly):
    """A version's verdict on an anchor in a check; ``value`` is null if it gave none."""

    check_of = models.ForeignKey(AnchorCheck, on_delete=PROTECT, related_name="verdicts")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="+")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="+")
    group = models.CharField(max_length=300)
    value = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["check_of", "rubric_version", "answer", "metric"], name="one_verdict_per_anchor_of_check"
            )
        ]


class AnchorShift(AppendOnly):
    """Drift of a judge on a metric from the reference to a check: mean ``change`` over ``answers`` anchors in
    ``groups``, with its 95% interval. ``moved``: the test detected drift, so the approval ends."""

    check_of = models.ForeignKey(AnchorCheck, on_delete=PROTECT, related_name="shifts")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="+")
    answers = models.PositiveIntegerField()
    groups = models.PositiveIntegerField()
    change = models.FloatField()
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    moved = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["check_of", "metric"], name="one_shift_per_metric_of_check")]
