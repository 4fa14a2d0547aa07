"""Answer sets of systems, and runs that score them under a profile."""

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.db import models
from django.db.models import PROTECT, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec, ContextSpec
from evaluation.models.accounts import Project
from evaluation.models.judges import JudgeVersion, PreflightRow, ProfileVersion, RubricVersion
from evaluation.models.questions import Question, QuestionSet, SystemVersion
from evaluation.storage.append_only import AppendOnly, Authored, TimestampedModel


class VisibleAnswerSets(models.Manager["AnswerSet"]):
    """Hides answer sets whose import is unfinished or was abandoned."""

    def get_queryset(self) -> models.QuerySet["AnswerSet"]:
        return super().get_queryset().filter(is_unfinished=False)


class AnswerSet(TimestampedModel, Authored):
    """Answers of one collection from a system. ``content_hash`` is set once, when the set is complete.

    ``is_unfinished``: its import is in progress or was abandoned. Only :attr:`all_objects` finds it then, and no figure
    counts it."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="answer_sets")
    question_set = models.ForeignKey(
        QuestionSet, verbose_name=_("question set"), on_delete=PROTECT, related_name="answer_sets"
    )
    system_version = models.ForeignKey(
        SystemVersion, verbose_name=_("system version"), on_delete=PROTECT, related_name="answer_sets"
    )
    k = models.PositiveIntegerField(_("k"), default=5)
    evaluation_type = models.CharField(_("evaluation type"), max_length=20, default="full_rag")
    source = models.CharField(_("source"), max_length=300, blank=True)
    file_sha256 = models.CharField(_("file hash"), max_length=64, blank=True)
    content_hash = models.CharField(_("content hash"), max_length=64, null=True, blank=True, editable=False)
    is_unfinished = models.BooleanField(default=False, editable=False)

    sealed_fields = ("project", "question_set", "system_version", "k", "evaluation_type", "source")
    unfinished = "is_unfinished"

    objects = VisibleAnswerSets()
    all_objects: ClassVar[models.Manager["AnswerSet"]] = models.Manager()

    class Meta:
        verbose_name = _("answer set")
        verbose_name_plural = _("answer sets")
        constraints = [
            models.CheckConstraint(condition=Q(k__gte=1, k__lte=50), name="k_in_range"),
            models.CheckConstraint(condition=Q(evaluation_type__in=["full_rag", "retrieval_only"]), name="known_type"),
        ]

    def __str__(self) -> str:
        return f"{self.question_set} · {self.system_version}"


class Answer(AppendOnly):
    """A system's answer, or the reason of its failure. ``retrieves`` distinguishes "no contexts" from "none found"."""

    unfinished = "answer_set__is_unfinished"

    answer_set = models.ForeignKey(AnswerSet, on_delete=PROTECT, related_name="answers")
    question = models.ForeignKey(Question, on_delete=PROTECT, related_name="answers")
    sample = models.PositiveIntegerField(default=1)
    round = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=[("ok", _("answered")), ("failed", _("failed"))])
    text = models.TextField(_("answer"), blank=True)
    text_hash = models.CharField(max_length=64, db_index=True)
    reason = models.TextField(blank=True)
    latency_seconds = models.FloatField(null=True, blank=True)
    confidence = models.FloatField(null=True, blank=True)
    retrieves = models.BooleanField(default=False)
    retrieved_ids = models.JSONField(null=True, blank=True)
    metadata = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = _("answer")
        verbose_name_plural = _("answers")
        constraints = [
            models.UniqueConstraint(fields=["answer_set", "question", "sample", "round"], name="one_answer_per_sample"),
            models.CheckConstraint(
                condition=Q(status="ok") | (Q(status="failed") & ~Q(reason="")), name="failed_says_why"
            ),
            models.CheckConstraint(
                condition=Q(latency_seconds__isnull=True) | Q(latency_seconds__gte=0, latency_seconds__lt=1e9),
                name="latency_in_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.question_id}#{self.sample}"

    @classmethod
    def unsupported(cls, rows: models.QuerySet[Any]) -> Iterable[int]:
        """Answers whose text differs from its hash."""
        for pk, text, text_hash in rows.values_list("pk", "text", "text_hash").iterator():
            if hashlib.sha256(text.encode()).hexdigest() != text_hash:
                yield pk

    def read(self, passages: Sequence[ContextSpec] | None = None) -> AnswerSpec:
        """Convert the answer for metrics and judges; contexts come from ``passages``, else from the prefetched
        relation."""
        specs = (c.read() for c in self.contexts.all()) if passages is None else passages
        contexts = tuple(specs) if self.retrieves else None
        ids = None if self.retrieved_ids is None else tuple(self.retrieved_ids)
        return AnswerSpec(self.text, contexts, ids, self.latency_seconds)


class Context(AppendOnly):
    """A retrieved passage, in the order in which the system used it."""

    unfinished = "answer__answer_set__is_unfinished"

    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="contexts")
    position = models.PositiveIntegerField()
    chunk_id = models.CharField(max_length=300, blank=True)
    text = models.TextField(blank=True)
    score = models.FloatField(null=True, blank=True)
    source = models.CharField(max_length=500, blank=True)
    metadata = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["answer", "position"]
        constraints = [
            models.UniqueConstraint(fields=["answer", "position"], name="one_context_per_place"),
            models.CheckConstraint(
                condition=Q(score__isnull=True) | Q(score__gt=-1e12, score__lt=1e12), name="context_score_bounded"
            ),
        ]

    def read(self) -> ContextSpec:
        return ContextSpec(self.text, self.chunk_id, self.score, self.source, self.metadata)


class Run(TimestampedModel, Authored):
    """An answer set scored under a profile. ``config`` is frozen at the start; read it through
    ``evaluation.worker.lifecycle``. ``reason`` says why a run is paused or incomplete."""

    sealed_fields = ("project", "answer_set", "profile_version", "config", "config_hash", "created_by")
    #: Relation that names a run without a name; lists pass it to `select_related`.
    NAME_RELATION: ClassVar[str] = "answer_set__system_version__system"
    # Relations that lists of runs show, on pages and in REST.
    LIST_RELATIONS: ClassVar[tuple[str, ...]] = ("answer_set__question_set", NAME_RELATION, "profile_version")

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        PREFLIGHT = "preflight", _("checking")
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        CANCELLED = "cancelled", _("cancelled")
        COMPLETED = "completed", _("complete")
        INCOMPLETE = "incomplete", _("incomplete")

    #: States of runs that have ended with figures.
    ENDED: ClassVar[frozenset[str]] = frozenset({State.COMPLETED.value, State.INCOMPLETE.value})

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="runs")
    answer_set = models.ForeignKey(AnswerSet, verbose_name=_("answer set"), on_delete=PROTECT, related_name="runs")
    profile_version = models.ForeignKey(
        ProfileVersion, verbose_name=_("profile version"), on_delete=PROTECT, related_name="runs"
    )
    name = models.CharField(_("name"), max_length=300, blank=True)
    config = models.JSONField(_("configuration"), default=dict)
    config_hash = models.CharField(_("configuration hash"), max_length=64, editable=False)
    seed = models.PositiveBigIntegerField(_("seed"), default=0)
    budget = models.DecimalField(_("budget"), max_digits=12, decimal_places=4, null=True, blank=True)
    state = models.CharField(_("state"), max_length=12, choices=State.choices, default=State.DRAFT)
    reason = models.TextField(_("reason"), blank=True)
    start_token = models.UUIDField(_("start token"), default=uuid.uuid4, unique=True, editable=False)
    request_hash = models.CharField(max_length=64, blank=True, editable=False)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("ended"), null=True, blank=True)
    baseline = models.ForeignKey(
        "self", verbose_name=_("compared with"), on_delete=PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        indexes = [models.Index(fields=["state"], name="run_by_state")]
        constraints = [
            models.CheckConstraint(
                condition=Q(
                    state__in=["draft", "preflight", "running", "paused", "cancelled", "completed", "incomplete"]
                ),
                name="known_run_state",
            )
        ]

    def __str__(self) -> str:
        """Return the run's name, else system and date: "my-rag v2 · 2026-11-22 (#13)".

        The same in every language, because reports and cached figures contain it."""
        if self.name:
            return self.name
        date = timezone.localtime(self.created_at).date()
        return f"{self.answer_set.system_version} · {date} (#{self.pk})"

    @staticmethod
    def hash_of(config: Mapping[str, Any], profile: ProfileVersion, answer_set: AnswerSet) -> str:
        """Hash of a configuration together with the profile and the answers.

        Batching and the installed analyzer are not part of it."""
        hashed_config = {name: value for name, value in config.items() if name not in {"batch", "analysis"}}
        return content_hash([content_hash(hashed_config), profile.content_hash, answer_set.content_hash or ""])

    @classmethod
    def unsupported(cls, rows: models.QuerySet[Any]) -> Iterable[int]:
        """Runs over imported answers, which never change, whose configuration differs from its hash."""
        imported = rows.filter(answer_set__system_version__adapter="recorded")
        for run in imported.select_related("profile_version", "answer_set").iterator():
            if cls.hash_of(run.config, run.profile_version, run.answer_set) != run.config_hash:
                yield run.pk


class SealedAnswer(AppendOnly):
    """A question and an answer, by the hashes of their texts, reserved for testing prompts.

    No untested prompt version judges them in any run of the project, in whichever answer set they are."""

    project = models.ForeignKey(Project, on_delete=PROTECT, related_name="sealed_answers")
    question_hash = models.CharField(max_length=64)
    text_hash = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "question_hash", "text_hash"], name="one_seal_per_answer")
        ]

    def __str__(self) -> str:
        return f"{self.project_id} {self.text_hash[:12]}"


class HoldOutOpening(TimestampedModel, Authored):
    """A lead viewed the figures of a lineage of gold sets with sealed labels.

    Until the lineage is retired (``ended_at``) the person may not draft or propose versions of the rubric ``families``
    that it tests."""

    project = models.ForeignKey(Project, on_delete=PROTECT, related_name="+")
    lineage = models.CharField(max_length=100)
    families = models.JSONField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "lineage", "created_by"], name="one_opening_per_person")
        ]

    def __str__(self) -> str:
        return self.lineage


SINGLE = "single"


class VersionStatus(models.TextChoices):
    """Status of a rubric version for a judge."""

    DRAFT = "draft", _("draft")
    CANDIDATE = "candidate", _("candidate")
    ACTIVE = "active", _("active")
    RETIRED = "retired", _("retired")


UNAPPROVED = (VersionStatus.DRAFT, VersionStatus.CANDIDATE)


class RunJudge(AppendOnly):
    """A judge of a run with its pinned rubric. The primary one counts; others are only compared.

    ``standing`` is the status of the rubric version for the judge when the run was created; drafts and candidates do
    not judge sealed answers (:class:`SealedAnswer`). ``method`` names the origin of a value: ``single``, ``mean_of_3``
    (of repeats), ``expected`` (over the token probabilities of levels) or ``expected_mean_of_3``. Values of different
    methods never form one series."""

    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="judges")
    judge_version = models.ForeignKey(JudgeVersion, on_delete=PROTECT, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="+")
    primary = models.BooleanField(default=True)
    repeat_count = models.PositiveIntegerField(default=1)
    standing = models.CharField(
        _("rubric status"), max_length=10, choices=VersionStatus.choices, default=VersionStatus.ACTIVE
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "judge_version", "rubric_version"], name="one_judge_per_run"),
            models.UniqueConstraint(
                fields=["run", "rubric_version"], condition=Q(primary=True), name="one_primary_judge"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.judge_version} · {self.rubric_version}"

    @property
    def method(self) -> str:
        """Method by which values are obtained, as listed in the class."""
        mean = f"mean_of_{self.repeat_count}" if self.repeat_count > 1 else ""
        return "_".join(filter(None, ["expected" if self.judge_version.expects else "", mean])) or SINGLE


class Preflight(PreflightRow):
    """Result of the preflight calls to a judge of a run, pinned for the whole run.

    The hash of the pinned judge covers the number of repeats too."""

    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="preflights")
    judge_version = models.ForeignKey(JudgeVersion, on_delete=PROTECT, related_name="preflights")

    class Meta:
        verbose_name = _("preflight")
        verbose_name_plural = _("preflights")
        constraints = [
            models.UniqueConstraint(
                fields=["run", "judge_version"], condition=Q(outcome="ok"), name="one_pinned_judge_per_run"
            ),
            models.CheckConstraint(
                condition=~Q(outcome="ok") | (~Q(response_format="") & ~Q(judge_hash="")),
                name="pinned_has_a_response_format",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.judge_version} {self.outcome}"


class RunEvent(AppendOnly, Authored):
    """A state change of a run (started, paused, resumed, cancelled, retried, completed) with its reason."""

    erasable = ("reason",)
    author_path = "created_by"

    run = models.ForeignKey(Run, verbose_name=_("run"), on_delete=PROTECT, related_name="events")
    verb = models.CharField(_("event"), max_length=30)
    reason = models.TextField(_("reason"), blank=True)

    class Meta:
        verbose_name = _("run event")
        verbose_name_plural = _("run events")
        ordering = ["run", "-id"]

    def __str__(self) -> str:
        return f"{self.run_id} {self.verb}"
