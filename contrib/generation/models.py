"""Generated question sets: spec, calls, questions and decisions."""

from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from evaluation.models import JudgeVersion
from evaluation.models.work import ReplyRow
from evaluation.storage.append_only import AppendOnly, Authored


class Generation(AppendOnly, Authored):
    """A question set to generate: ``per_passage`` questions about each of ``passages`` slots of a corpus, with
    alternating ``kinds``, drawn by ``seed``.

    ``writer`` is the generator version: the hash of prompts, model and parameters. ``budget`` is in US dollars,
    unlimited if null. ``name`` is that of the resulting question set."""

    class Language(models.TextChoices):
        KOREAN = "ko", _("Korean")
        ENGLISH = "en", _("English")

    corpus = models.ForeignKey(
        "corpora.Corpus", verbose_name=_("corpus"), on_delete=PROTECT, related_name="generations"
    )
    judge_version = models.ForeignKey(JudgeVersion, verbose_name=_("written by"), on_delete=PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=200)
    language = models.CharField(_("language"), max_length=5, choices=Language.choices)
    kinds = models.JSONField(_("question types"))
    passages = models.PositiveIntegerField(_("passages"))
    per_passage = models.PositiveIntegerField(_("questions per passage"))
    seed = models.PositiveBigIntegerField(_("seed"))
    budget = models.DecimalField(_("budget"), max_digits=12, decimal_places=4, null=True)
    writer = models.CharField(_("generator version"), max_length=64)

    class Meta:
        verbose_name = _("generated question set")
        verbose_name_plural = _("generated question sets")
        constraints = [
            models.CheckConstraint(condition=Q(passages__gte=1, passages__lte=1000), name="passages_of_generation"),
            models.CheckConstraint(condition=Q(per_passage__gte=1, per_passage__lte=10), name="questions_a_passage"),
            models.CheckConstraint(condition=Q(budget=None) | Q(budget__gt=0), name="budget_of_generation"),
        ]

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"


class GenerationCall(AppendOnly):
    """A call for a ``step`` of a generation, recorded before it is sent."""

    # `purge` deletes calls that were never sent.
    is_digested = False

    generation = models.ForeignKey(Generation, on_delete=PROTECT, related_name="calls")
    step = models.CharField(max_length=40)


class GenerationReply(ReplyRow):
    """The reply to a call of a generation."""

    attempt = models.OneToOneField(GenerationCall, on_delete=PROTECT, related_name="reply")

    class Meta:
        verbose_name_plural = "replies to generations"


class DraftQuestion(AppendOnly):
    """A written question.

    ``content`` is its ``QuestionSpec`` without an id; ``removed_by`` is the filter that removed it, empty for one that
    waits for a decision; ``detail`` is the filter's evidence."""

    class Filter(models.TextChoices):
        NO_QUESTION = "no_question", _("not a question with an answer")
        LEAKED = "leaked", _("reveals its answer or passage")
        DUPLICATE = "duplicate", _("duplicates another question")
        TRIVIAL = "trivial", _("passage found by question words only")
        NOT_ANSWERABLE = "not_answerable", _("not answerable from its passages")
        ELSEWHERE = "elsewhere", _("also answered by another passage, or by just one of several")
        KNOWN = "known", _("the model knows the answer without the passage")
        UNCHECKED = "unchecked", _("could not be checked")

    generation = models.ForeignKey(Generation, on_delete=PROTECT, related_name="drafts")
    position = models.PositiveIntegerField()
    kind = models.CharField(_("kind"), max_length=20)
    content = models.JSONField()
    removed_by = models.CharField(_("filtered out"), max_length=16, choices=Filter.choices, blank=True, default="")
    detail = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("generated question")
        verbose_name_plural = _("generated questions")
        ordering = ["generation", "position"]
        constraints = [models.UniqueConstraint(fields=["generation", "position"], name="one_draft_per_position")]

    def __str__(self) -> str:
        return str(self.content.get("text", ""))[:80]


class DraftDecision(AppendOnly, Authored):
    """A lead's decision on a question; the highest ``seq`` counts. ``content`` is the edited question, null without
    edits."""

    class Verb(models.TextChoices):
        ACCEPTED = "accepted", pgettext_lazy("question", "accepted")
        REJECTED = "rejected", _("rejected")

    draft = models.ForeignKey(DraftQuestion, on_delete=PROTECT, related_name="decisions")
    seq = models.PositiveIntegerField()
    verb = models.CharField(max_length=10, choices=Verb.choices)
    content = models.JSONField(null=True)

    class Meta:
        verbose_name = _("decision on a generated question")
        verbose_name_plural = _("decisions on generated questions")
        ordering = ["draft", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["draft", "seq"], name="one_decision_per_turn"),
            models.CheckConstraint(condition=Q(content=None) | Q(verb="accepted"), name="what_is_edited_is_accepted"),
        ]


class GenerationResult(AppendOnly):
    """The outcome of a generation. ``figures`` count written and removed questions."""

    class Outcome(models.TextChoices):
        DONE = "done", _("written and checked")
        BUDGET = "budget", _("budget used up")

    generation = models.OneToOneField(Generation, on_delete=PROTECT, related_name="result")
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    figures = models.JSONField(default=dict)
