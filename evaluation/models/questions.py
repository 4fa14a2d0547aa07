"""Question sets with their questions, and systems under test; versions are immutable."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.core.samples import QuestionSpec, questions_hash
from evaluation.models.accounts import AuditEvent, Project
from evaluation.storage.append_only import AppendOnly, Authored, PausableEndpoint, TimestampedModel


class VisibleQuestionSets(models.Manager["QuestionSet"]):
    """Hides question sets whose import is unfinished or was abandoned."""

    def get_queryset(self) -> models.QuerySet["QuestionSet"]:
        return super().get_queryset().filter(is_unfinished=False)


class QuestionSet(AppendOnly, Authored):
    """One version of a named set. Edits create a successor; equal content selects the existing version.

    ``content_hash`` covers every field of every question except ``metadata``, with questions sorted by id.
    ``is_unfinished``: its import is in progress or was abandoned. Only :attr:`all_objects` finds it then, and it has no
    version yet (0)."""

    mutable_while = unfinished = "is_unfinished"

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="question_sets")
    name = models.CharField(_("name"), max_length=200)
    version = models.PositiveIntegerField(_("version"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)
    predecessor = models.ForeignKey(
        "self", verbose_name=_("previous version"), on_delete=PROTECT, null=True, blank=True, related_name="successors"
    )
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    is_unfinished = models.BooleanField(default=False, editable=False)

    objects = VisibleQuestionSets()
    all_objects: ClassVar[models.Manager["QuestionSet"]] = models.Manager()

    class Meta:
        verbose_name = _("question set")
        verbose_name_plural = _("question sets")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name", "version"], condition=Q(is_unfinished=False), name="one_set_per_version"
            )
        ]
        indexes = [models.Index(fields=["project", "name", "content_hash"], name="set_by_content")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    def has_content(self, questions: Sequence["Question"]) -> bool:
        """Return whether the set's hash is that of its questions, and whether their columns agree with it."""
        try:
            specs = [question.read() for question in questions]
        # Pydantic's error: the content is no question any more.
        except ValueError:
            return False
        texts = [question.text for question in questions]
        return texts == [spec.text for spec in specs] and questions_hash(specs) == self.content_hash


class Question(AppendOnly):
    """A question of one version of a set. Read ``spec`` through :meth:`read` only."""

    unfinished = "question_set__is_unfinished"

    question_set = models.ForeignKey(
        QuestionSet, verbose_name=_("question set"), on_delete=PROTECT, related_name="questions"
    )
    external_id = models.CharField(_("id"), max_length=200)
    position = models.PositiveIntegerField(_("position"))
    category = models.CharField(_("category"), max_length=200)
    difficulty = models.CharField(_("difficulty"), max_length=100, blank=True)
    group = models.CharField(_("group"), max_length=200, blank=True)
    text = models.TextField(_("question"))
    spec = models.JSONField(_("content"))
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)

    class Meta:
        verbose_name = _("question")
        verbose_name_plural = _("questions")
        ordering = ["question_set", "position"]
        constraints = [models.UniqueConstraint(fields=["question_set", "external_id"], name="one_question_per_id")]
        indexes = [models.Index(fields=["question_set", "category"], name="question_by_category")]

    def __str__(self) -> str:
        return self.external_id

    @classmethod
    def unsupported(cls, rows: models.QuerySet[Any]) -> Iterable[int]:
        """First questions of sets whose number differs from the import's, or whose content differs from their hash.

        A set is hashed when its first question is among the rows, so that sealing reads each set once."""
        first_keys = dict(
            cls._base_manager.filter(question_set__in=rows.order_by().values("question_set"))
            .order_by()
            .values_list("question_set")
            .annotate(models.Min("pk"))
        )
        imports = AuditEvent.objects.filter(
            verb="question_set.imported",
            object_type=QuestionSet._meta.label_lower,
            object_id__in=[str(pk) for pk in first_keys],
        )
        counts = {int(event.object_id): event.detail["questions"] for event in imports}
        for question_set in QuestionSet.objects.filter(pk__in=first_keys):
            questions, first_key = question_set.questions.all(), first_keys[question_set.pk]
            count = questions.count()
            if count != counts.get(question_set.pk, count) or (
                rows.filter(pk=first_key).exists() and not question_set.has_content(list(questions))
            ):
                yield first_key

    def read(self) -> QuestionSpec:
        """Parse the question for metrics and judges."""
        return QuestionSpec.model_validate(self.spec)


class ImportBatch(TimestampedModel, Authored):
    """An upload between preview and confirmation. The file is stored under ``uuid``; its name is for display.

        (checking ->) parsed (-> importing) -> confirmed | expired | refused | cancelled

    The states in brackets are for large files, which workers read; their content is in :class:`ImportChunk`. A parsed
    large file without rows waits for the mapping of its columns, then it is checked again."""

    class State(models.TextChoices):
        CHECKING = "checking", _("validating")
        PARSED = "parsed", _("awaiting confirmation")
        IMPORTING = "importing", _("importing")
        CONFIRMED = "confirmed", _("confirmed")
        EXPIRED = "expired", _("expired")
        REFUSED = "refused", _("refused")
        CANCELLED = "cancelled", _("cancelled")

    uuid = models.UUIDField(_("UUID"), unique=True, editable=False)
    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="+")
    kind = models.CharField(_("kind"), max_length=20)
    name = models.CharField(_("name"), max_length=200)
    file_name = models.CharField(_("file name"), max_length=300)
    file_sha256 = models.CharField(_("file hash"), max_length=64)
    content = models.BinaryField(_("file content"))
    options = models.JSONField(_("options"), default=dict)
    rows = models.PositiveIntegerField(_("rows"), default=0)
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.PARSED)
    result_id = models.PositiveBigIntegerField(_("result"), null=True, blank=True)

    class Meta:
        verbose_name = _("upload")
        verbose_name_plural = _("uploads")

    def __str__(self) -> str:
        return self.file_name


class ImportChunk(models.Model):
    """A part of a large upload, stored in the database for workers on any host and deleted with the upload."""

    batch = models.ForeignKey(ImportBatch, on_delete=models.CASCADE, related_name="chunks")
    position = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "position"], name="one_chunk_per_place")]


class System(TimestampedModel, Authored, PausableEndpoint):
    """A system under test, identified by its name in a project. Its limits apply to all workers and versions
    together."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="systems")
    name = models.CharField(_("name"), max_length=200)
    max_concurrency = models.PositiveIntegerField(
        _("concurrent questions"), default=4, help_text=_("Maximum concurrent questions across all workers.")
    )
    requests_per_minute = models.PositiveIntegerField(
        _("questions per minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Shared by all workers. Leave empty for no limit."),
    )

    class Meta:
        verbose_name = _("system")
        verbose_name_plural = _("systems")
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="one_system_per_name"),
            models.CheckConstraint(
                condition=models.Q(max_concurrency__gte=1, max_concurrency__lte=1000), name="sane_limit_of_system"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SystemVersion(AppendOnly, Authored):
    """A configuration of a system. ``adapter`` names its connector (``evaluation.connectors.catalogue``), ``config``
    holds its settings; with ``recorded`` the answers are imported."""

    system = models.ForeignKey(System, verbose_name=_("system"), on_delete=PROTECT, related_name="versions")
    version = models.PositiveIntegerField(_("version"))
    adapter = models.CharField(_("adapter"), max_length=40, default="recorded")
    config = models.JSONField(_("configuration"), default=dict, blank=True)
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("system version")
        verbose_name_plural = _("system versions")
        constraints = [models.UniqueConstraint(fields=["system", "version"], name="one_system_version")]

    def __str__(self) -> str:
        return f"{self.system} v{self.version}"
