"""Retrieval repairs: pooled passages with their sampling probabilities, ratings, and accepted labels."""

from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Project, Question, QuestionSet, Run, User
from evaluation.storage.append_only import AppendOnly, Authored, TimestampedModel


class RetrievalRepair(TimestampedModel, Authored):
    """A pool of the passages that several runs retrieved to depth ``k`` for the questions of one version of a set.

    ``partly_counts``: *partly relevant* counts as relevant. ``first_relevant``: passages that decide hit and MRR were
    drawn with certainty. Only ``closed_at`` ever changes."""

    sealed_fields = ("project", "question_set", "k", "partly_counts", "first_relevant", "size", "seed")

    project = models.ForeignKey(Project, on_delete=PROTECT, related_name="retrieval_repairs")
    question_set = models.ForeignKey(QuestionSet, on_delete=PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=200)
    guideline = models.TextField(_("guideline"), blank=True)
    k = models.PositiveIntegerField()
    partly_counts = models.BooleanField(default=False)
    first_relevant = models.BooleanField(default=False)
    size = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField()
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="one_repair_per_name"),
            models.CheckConstraint(condition=Q(k__gte=1, k__lte=50), name="depth_of_repair_in_range"),
        ]

    def __str__(self) -> str:
        return self.name


class RepairSystem(AppendOnly):
    """A system of a repair by one of its runs, in the order of ``ranks``."""

    repair = models.ForeignKey(RetrievalRepair, on_delete=PROTECT, related_name="systems")
    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="+")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repair", "position"], name="one_system_per_place")]


class RepairMember(TimestampedModel):
    """A rater of a repair."""

    repair = models.ForeignKey(RetrievalRepair, on_delete=PROTECT, related_name="members")
    reviewer = models.ForeignKey(User, on_delete=PROTECT, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repair", "reviewer"], name="one_repair_membership")]


class PooledPassage(AppendOnly):
    """A passage of the pool with its stratum and probability, drawn or not.

    ``ranks`` holds its first rank by system, 0 if not among the first k. ``label`` is the relevance in the question set
    (0 or 1), ``judge`` the share of judge verdicts that call it relevant, ``guess`` the predicted relevance before
    ratings."""

    class Stratum(models.TextChoices):
        LABELLED = "labelled", _("labelled")
        CERTAIN = "certain", _("sampled with certainty")
        DRAWN = "drawn", _("sampled with a probability below 1")

    repair = models.ForeignKey(RetrievalRepair, on_delete=PROTECT, related_name="passages")
    question = models.ForeignKey(Question, on_delete=PROTECT, related_name="+")
    chunk_id = models.CharField(max_length=300, blank=True)
    text_hash = models.CharField(max_length=64, blank=True)
    text = models.TextField(blank=True)
    ranks = models.JSONField()
    label = models.FloatField(null=True)
    judge = models.FloatField(null=True)
    guess = models.FloatField()
    stratum = models.CharField(max_length=10, choices=Stratum.choices)
    probability = models.FloatField()
    sampled = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["repair", "question", "chunk_id", "text_hash"], name="one_passage_per_question"
            ),
            models.CheckConstraint(
                condition=Q(label__isnull=False, stratum="labelled", sampled=False)
                | Q(label__isnull=True, probability__gt=0, probability__lte=1),
                name="unlabelled_has_a_probability",
            ),
        ]


class PassageRating(AppendOnly):
    """An expert's blind rating of a passage; the highest round of a person counts."""

    erasable = ("reason",)
    author_path = "rater"

    class Grade(models.TextChoices):
        RELEVANT = "relevant", _("Relevant")
        PARTLY = "partly", _("Partly relevant")
        NOT = "not", _("Not relevant")
        CANNOT = "cannot", _("Cannot judge")

    passage = models.ForeignKey(PooledPassage, on_delete=PROTECT, related_name="ratings")
    rater = models.ForeignKey(User, on_delete=PROTECT, related_name="+")
    grade = models.CharField(max_length=10, choices=Grade.choices)
    reason = models.TextField(blank=True)
    seconds = models.FloatField(null=True)
    round = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["passage", "rater", "round"], name="one_passage_rating_per_round"),
            models.CheckConstraint(
                condition=Q(grade__in=["relevant", "partly", "not", "cannot"]), name="grade_of_a_passage"
            ),
        ]


class AcceptedLabels(AppendOnly, Authored):
    """The acceptance of a repair's labels into a new version of the question set, by a lead."""

    repair = models.ForeignKey(RetrievalRepair, on_delete=PROTECT, related_name="accepted")
    question_set = models.ForeignKey(QuestionSet, on_delete=PROTECT, related_name="+")
    relevant = models.PositiveIntegerField()
    unrated = models.PositiveIntegerField()
