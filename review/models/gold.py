"""Gold sets: experts' labels frozen and split for good, and the looks that were taken at their hold-outs."""

from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, JudgeVersion, MetricDefinition, Project, RubricEvent, RubricVersion
from evaluation.models.work import Turn
from evaluation.storage.append_only import AppendOnly, Authored


class GoldSet(AppendOnly, Authored):
    """A version of a gold set. Versions of one name are its lineage: each holds all of the one before and keeps every
    group in its part. ``content_hash`` covers the items with the ratings behind them and the version before."""

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
    """A lineage at whose hold-out nobody looks any more, and why; what its looks saw may be told from then on."""

    erasable = ("reason",)
    written_by = "created_by"

    project = models.ForeignKey(Project, on_delete=PROTECT, related_name="+")
    lineage = models.CharField(max_length=100)
    reason = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "lineage"], name="one_retirement_of_a_gold_set")]

    def __str__(self) -> str:
        return self.lineage


class GoldItem(AppendOnly):
    """An answer's label on one metric: the unrounded mean of the blind first ratings ``ratings`` (key and value of
    each), with the weight of its draw. ``group`` stays together in one ``split``; ``since`` is the version that brought
    the group. ``seen``: one of its raters was shown a judge's value of the answer, if only after rating it."""

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


class Look(AppendOnly, Authored):
    """A look at the hold-out of a lineage, with all that it tests pinned before anything is asked. ``number`` counts
    the looks of the lineage for ever, ``step`` those that spend of the same budget; ``since``: only groups added since
    that version are tested. ``best`` is the best version ever accepted, against which others must not fall off. With
    ``against`` it is what was said in that look, by another judge or by this one when it was proved, that the candidate
    must not fall off from."""

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
        verbose_name = _("look at a hold-out")
        verbose_name_plural = _("looks at hold-outs")
        constraints = [
            models.UniqueConstraint(fields=["project", "lineage", "number"], name="one_look_per_number"),
            models.CheckConstraint(condition=Q(against=None) | Q(claim="not_worse"), name="proved_anew_not_worse"),
        ]

    def __str__(self) -> str:
        return f"{self.lineage} #{self.number}"


class LookTurn(Turn):
    """In whose hands a look is. ``model`` is what answered under the judge's name, several names where that changed
    meanwhile."""

    look = models.OneToOneField(Look, on_delete=PROTECT, related_name="turn")
    model = models.CharField(max_length=400, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.look_id} {self.reason}"


class LookResult(AppendOnly):
    """How a look ended: accepted, not accepted, not accepted for its residual variance alone, or refused (too many
    verdicts missing), which spends nothing. ``event`` is the activation that an acceptance made."""

    class Outcome(models.TextChoices):
        ACCEPTED = "accepted", _("accepted")
        NOT_ACCEPTED = "not_accepted", _("not accepted")
        LARGER_VARIANCE = "larger_residual_variance", _("not accepted: the residual variance is larger")
        REFUSED = "refused", _("refused")

    look = models.OneToOneField(Look, on_delete=PROTECT, related_name="result")
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
        return f"{self.look_id} {self.outcome}"


class Licence(AppendOnly):
    """What an acceptance proved of a metric for the questions of a set: with how many hold-out answers in how many
    groups, how many of them seen, the categories its labels know, and the model that answered under the judge's name.
    Never changed: whether it still holds for a run is told when that is asked (``review/calibration/licences.py``)."""

    result = models.ForeignKey(LookResult, on_delete=PROTECT, related_name="licences")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="+")
    question_set = models.CharField(max_length=200)
    answers = models.PositiveIntegerField()
    groups = models.PositiveIntegerField()
    seen = models.PositiveIntegerField(default=0)
    categories = models.JSONField(default=list)
    model = models.CharField(max_length=400, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["result", "metric", "question_set"], name="one_licence_per_metric_and_set")
        ]

    def __str__(self) -> str:
        return f"{self.result_id} {self.metric_id} {self.question_set}"


class SealedVerdict(AppendOnly):
    """What a judge said of a hold-out answer by one of the versions of a look, encrypted under the site's secret: read
    by the test of that look alone, and shown nowhere."""

    look = models.ForeignKey(Look, on_delete=PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="+")
    repeat = models.PositiveIntegerField(default=1)
    sealed = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["look", "rubric_version", "answer", "repeat"], name="one_sealed_verdict")
        ]


class AnchorCheck(Turn):
    """Validation answers judged again by the version that an acceptance put in force, to notice that the judge moved.
    ``number`` counts the checks of a proof; 0 is the reference, in which the version before judges them too. ``step``
    counts the tests for drift of the judges of the name in the year before, 0 for a reference. ``model`` answered."""

    result = models.ForeignKey(LookResult, on_delete=PROTECT, related_name="checks")
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
    """What a version said of an anchor in a check; ``value`` is empty where it gave none."""

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
    """How far the judge moved on a metric from the reference to a check: the mean ``change`` of ``answers`` anchors in
    ``groups`` with its 95% interval, and whether the test found it (``moved``), upon which the licence lapses."""

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
