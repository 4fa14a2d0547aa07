"""Checks of judges by the shipped attacks, and the result of each attack."""

from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import JudgeVersion
from evaluation.storage.append_only import AppendOnly, Authored


class JudgeCheck(AppendOnly, Authored):
    """A check of a judge configuration by the shipped attacks: rubric, response format, and number of passed attacks.

    ``reason`` says why a check failed; it has no results then. ``cost`` is in US dollars, null if unknown."""

    judge_version = models.ForeignKey(JudgeVersion, verbose_name=_("judge"), on_delete=PROTECT, related_name="checks")
    rubric_hash = models.CharField(_("rubric hash"), max_length=64)
    attacks_hash = models.CharField(_("attack set hash"), max_length=64)
    response_format = models.CharField(_("response format"), max_length=20, blank=True)
    model_returned = models.CharField(_("served model"), max_length=200, blank=True)
    reason = models.TextField(_("reason"), blank=True)
    attacks = models.PositiveIntegerField(_("attacks"), default=0)
    passed = models.PositiveIntegerField(_("passed"), default=0)
    calls = models.PositiveIntegerField(_("calls"), default=0)
    cost = models.DecimalField(_("cost"), max_digits=14, decimal_places=8, null=True)

    class Meta:
        verbose_name = _("judge check")
        verbose_name_plural = _("judge checks")
        ordering = ["judge_version", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(passed__lte=models.F("attacks")), name="no_more_passed_than_faced")
        ]

    def __str__(self) -> str:
        return f"{self.judge_version} {self.passed}/{self.attacks}"


class AttackResult(AppendOnly):
    """A judge's result for one attack.

    ``values`` are its scores by metric (null without a verdict), ``broken`` the broken bounds; ``gate`` names the rule
    that decided without a call; ``raw`` is the judge's last text."""

    check_of = models.ForeignKey(JudgeCheck, on_delete=PROTECT, related_name="results")
    attack = models.CharField(max_length=60)
    kind = models.CharField(max_length=20)
    language = models.CharField(max_length=5)
    passed = models.BooleanField()
    gate = models.CharField(max_length=20, blank=True)
    reason = models.CharField(max_length=100, blank=True)
    values = models.JSONField(default=dict)
    broken = models.JSONField(default=list)
    raw = models.TextField(blank=True)

    class Meta:
        ordering = ["check_of", "id"]
        constraints = [models.UniqueConstraint(fields=["check_of", "language", "attack"], name="one_result_per_attack")]

    def __str__(self) -> str:
        return f"{self.language}/{self.attack}"
