"""Searches: strategies that propose versions of judge prompts, evaluated on the open labels of a gold set."""

from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import JudgeVersion, RubricVersion, Run
from evaluation.models.work import ReplyRow
from evaluation.storage.append_only import AppendOnly, Authored
from review.models.gold import GoldSet


class Search(AppendOnly, Authored):
    """A search for a better version of a rubric family for a judge, by one strategy. ``active`` is the version in force
    at the start, with which all others are compared; ``budget`` is in US dollars, unlimited if null."""

    class Strategy(models.TextChoices):
        EXAMPLES = "examples", _("graded examples in the prompt")
        REWRITE = "rewrite", _("rewritten by a model")
        MAP = "map", _("score map")

    gold_set = models.ForeignKey(GoldSet, on_delete=PROTECT, related_name="searches")
    judge_version = models.ForeignKey(JudgeVersion, on_delete=PROTECT, related_name="+")
    family = models.CharField(_("family"), max_length=100)
    active = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    strategy = models.CharField(_("strategy"), max_length=12, choices=Strategy.choices)
    rounds = models.PositiveIntegerField(_("rounds"), default=1)
    budget = models.DecimalField(_("budget"), max_digits=12, decimal_places=4, null=True)

    class Meta:
        verbose_name = _("prompt search")
        verbose_name_plural = _("prompt searches")
        constraints = [
            models.CheckConstraint(condition=Q(rounds__gte=1, rounds__lte=10), name="rounds_of_search"),
            models.CheckConstraint(condition=Q(budget=None) | Q(budget__gt=0), name="budget_of_search_is_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.family}: {self.get_strategy_display()} #{self.pk}"


class SearchVersion(AppendOnly):
    """A version created by a search, with its ``phase`` and how it was made (``kind``)."""

    search = models.ForeignKey(Search, on_delete=PROTECT, related_name="versions")
    phase = models.PositiveIntegerField()
    kind = models.CharField(max_length=12)
    version = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["search", "phase", "version"], name="one_version_per_phase_of_search")
        ]


class SearchRun(AppendOnly):
    """A run that judges a phase of a search, one per answer set; phase 0 is the active version."""

    search = models.ForeignKey(Search, on_delete=PROTECT, related_name="runs")
    phase = models.PositiveIntegerField()
    run = models.OneToOneField(Run, on_delete=PROTECT, related_name="+")

    class Meta:
        ordering = ["id"]


class SearchCall(AppendOnly):
    """A call to the rewriting model in a phase of a search, inserted before it is sent."""

    # `purge` deletes calls that were never sent.
    is_digested = False

    search = models.ForeignKey(Search, on_delete=PROTECT, related_name="calls")
    phase = models.PositiveIntegerField()


class SearchReply(ReplyRow):
    """Reply to such a call."""

    attempt = models.OneToOneField(SearchCall, on_delete=PROTECT, related_name="reply")

    class Meta:
        verbose_name_plural = "replies to searches"


class SearchResult(AppendOnly):
    """Outcome of a search. ``figures`` are the validation figures of every version; ``version`` is the offered one."""

    class Outcome(models.TextChoices):
        OFFERED = "offered", _("proposed as a candidate")
        NOTHING_BETTER = "nothing_better", _("no improvement found")
        COMPRESSES = "compresses", _("the map only compresses scores")
        TOO_FEW = "too_few", _("too few labels")
        BUDGET = "budget", _("budget used up")

    search = models.OneToOneField(Search, on_delete=PROTECT, related_name="result")
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    version = models.ForeignKey(RubricVersion, on_delete=PROTECT, null=True, related_name="+")
    figures = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome="offered", version__isnull=False) | ~Q(outcome="offered") & Q(version__isnull=True),
                name="search_offers_a_version",
            )
        ]
