"""Endpoints, judges, rubrics and profiles with immutable versions, and cached embeddings.

A judge is an endpoint, a model and parameters."""

from functools import cached_property
from typing import Any, ClassVar, Self

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import PROTECT, Exists, Max, OuterRef, Q, QuerySet
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evaluation.judging.logprobs import with_logprobs
from evaluation.judging.rubric import Rubric
from evaluation.models.accounts import Project
from evaluation.storage.append_only import AppendOnly, Authored, PausableEndpoint, TimestampedModel


def provider_choices() -> list[tuple[str, str]]:
    """Return the providers of endpoints, with titles in the reader's language."""
    # Imported here because the catalogue loads the baseline's word rules, which short-lived processes do not need.
    from evaluation.judging.providers.catalogue import endpoint_providers

    language = get_language() or "en"
    return [(provider.name, provider.title.in_language(language)) for provider in endpoint_providers()]


class Endpoint(TimestampedModel, Authored, PausableEndpoint):
    """A server that answers as its provider describes (``evaluation.judging.providers``).

    Calls require that its origin is on the operator's allow-list. The key is named by an environment variable
    (``key_env``) or stored encrypted; ``evaluation.judges.secrets`` reads both."""

    name = models.CharField(_("name"), max_length=100, unique=True)
    provider = models.CharField(_("provider"), max_length=40, choices=provider_choices, default="openai")
    base_url = models.CharField(_("base URL"), max_length=300)
    key_env = models.CharField(_("key environment variable"), max_length=100, blank=True)
    sealed_key = models.TextField(_("stored key"), blank=True, default="", editable=False)
    embedding_model = models.CharField(
        _("embedding model"),
        max_length=200,
        blank=True,
        default="",
        help_text=_("Model that this server uses for embeddings. Leave empty for none."),
    )
    azure_api_version = models.CharField(
        _("Azure API version"),
        max_length=40,
        blank=True,
        default="",
        validators=[RegexValidator(r"^\d{4}-\d{2}-\d{2}(-preview)?\Z")],
        help_text=_(
            "Only for Azure OpenAI, such as 2024-10-21. Use the resource's base URL, and the deployment "
            "name as the model. Leave empty for other servers."
        ),
    )
    max_concurrency = models.PositiveIntegerField(_("concurrent calls"), default=32)
    requests_per_minute = models.PositiveIntegerField(
        _("requests per minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Shared by all workers. Leave empty if the server sets no limit."),
    )
    tokens_per_minute = models.PositiveIntegerField(
        _("tokens per minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Input and output together, shared by all workers. Leave empty if the server sets no limit."),
    )
    batches = models.BooleanField(
        _("supports batches"),
        default=False,
        help_text=_(
            "The server offers batches (/v1/files and /v1/batches, or Anthropic's message batches): cheaper calls "
            "that may take up to a day."
        ),
    )

    class Meta:
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        constraints = [
            models.CheckConstraint(condition=Q(max_concurrency__gte=1, max_concurrency__lte=1000), name="sane_limit"),
            models.CheckConstraint(
                condition=Q(azure_api_version="") | Q(batches=False),
                name="no_batches_at_azure",
                violation_error_message=_("Batches are not sent to Azure."),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse settings that the provider does not support."""
        from evaluation.judging.providers.catalogue import PROVIDERS

        if self.provider not in PROVIDERS:
            # The field itself reports an unknown provider.
            return
        options = frozenset[str]().union(*(provider.options for provider in PROVIDERS.values()))
        unused = sorted(options - PROVIDERS[self.provider].options)
        message = _("The provider does not have this setting. Leave it empty.")
        if errors := {name: message for name in unused if getattr(self, name)}:
            raise ValidationError(errors)


class JudgeVersion(AppendOnly, Authored):
    """A judge: endpoint, model, parameters, and the method of reading levels.

    Without an endpoint it is the offline baseline, or a jury, whose parameters name its members and the rule that
    combines them."""

    class Method(models.TextChoices):
        SAID = "said", _("the level the judge states")
        EXPECTED = "expected", _("expected value over token probabilities")

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="judges")
    name = models.CharField(_("name"), max_length=100)
    version = models.PositiveIntegerField(_("version"))
    endpoint = models.ForeignKey(
        Endpoint, verbose_name=_("endpoint"), on_delete=PROTECT, null=True, blank=True, related_name="judges"
    )
    model = models.CharField(_("model"), max_length=200)
    language = models.CharField(_("rubric language"), max_length=5, default="en")
    params = models.JSONField(_("parameters"), default=dict, blank=True)
    method = models.CharField(
        _("scoring method"),
        max_length=10,
        choices=Method.choices,
        default=Method.SAID,
        help_text=_("Expected values need an endpoint that returns log probabilities. The preflight checks this."),
    )
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("judge")
        verbose_name_plural = _("judges")
        constraints = [models.UniqueConstraint(fields=["project", "name", "version"], name="one_judge_version")]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def is_baseline(self) -> bool:
        """Return whether this is the offline lexical baseline, which every page must label as such."""
        return self.endpoint_id is None and not self.is_jury

    @property
    def expects(self) -> bool:
        """Return whether levels are expected values over their token probabilities
        (``evaluation.judging.logprobs``)."""
        return self.method == self.Method.EXPECTED

    @property
    def parameters(self) -> dict[str, Any]:
        """Request parameters besides model and messages."""
        return with_logprobs(self.params) if self.expects else self.params

    @property
    def is_jury(self) -> bool:
        """Return whether this is a jury, which makes no calls: its scores combine those of its members in the run."""
        return "jury" in self.params


class PreflightRow(AppendOnly):
    """Result of preflight calls to a judge. The row with outcome ``ok`` pins the response format.

    ``judge_hash`` is the hash of the judge version and the pinned settings. Other rows hold a reason code, and
    ``retry_at`` if the server asked for a pause. ``usage`` and ``logprobs`` tell whether the judge returns token counts
    and log probabilities, null if unknown. ``cost`` is in US dollars, null if unknown; ``detail`` lists the calls."""

    outcome = models.CharField(_("outcome"), max_length=30)
    response_format = models.CharField(_("response format"), max_length=20, blank=True)
    judge_hash = models.CharField(_("pinned judge hash"), max_length=64, blank=True)
    model_returned = models.CharField(_("served model"), max_length=200, blank=True)
    fingerprint = models.CharField(_("fingerprint"), max_length=200, blank=True)
    usage = models.BooleanField(_("returns token counts"), null=True)
    logprobs = models.BooleanField(_("returns log probabilities"), null=True)
    calls = models.PositiveIntegerField(_("calls"), default=0)
    cost = models.DecimalField(_("cost"), max_digits=14, decimal_places=8, null=True)
    retry_at = models.DateTimeField(_("retry after"), null=True)
    detail = models.JSONField(default=list, blank=True)

    class Meta:
        abstract = True


class RubricVersion(AppendOnly, Authored):
    """A judge prompt with its anchored levels. Read ``spec`` as :attr:`rubric` only.

    Without a project it is shipped or derived from a criterion; with one, a person of the project wrote it, and
    ``note`` says why."""

    project = models.ForeignKey(
        Project, verbose_name=_("project"), on_delete=PROTECT, null=True, blank=True, related_name="rubrics"
    )
    note = models.TextField(_("reason"), blank=True, default="")
    family = models.CharField(_("family"), max_length=100)
    language = models.CharField(_("language"), max_length=5)
    version = models.PositiveIntegerField(_("version"))
    spec = models.JSONField(_("content"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("rubric")
        verbose_name_plural = _("rubrics")
        constraints = [models.UniqueConstraint(fields=["family", "language", "version"], name="one_rubric_version")]

    def __str__(self) -> str:
        return f"{self.family} v{self.version} ({self.language})"

    @cached_property
    def rubric(self) -> Rubric:
        return Rubric.model_validate(self.spec)


class Activation(AppendOnly, Authored):
    """An activation or deactivation. The newest event, by ``seq``, of the columns ``SUBJECT_FIELDS`` determines the
    status."""

    SUBJECT_FIELDS: ClassVar[tuple[str, ...]]

    seq = models.PositiveIntegerField()

    class Meta:
        abstract = True

    @classmethod
    def newest(cls) -> QuerySet[Self]:
        """Return the newest event of each subject."""
        same_subject = {name: OuterRef(name) for name in cls.SUBJECT_FIELDS}
        rows: QuerySet[Self] = cls._default_manager.all()
        return rows.filter(~Exists(rows.filter(**same_subject, seq__gt=OuterRef("seq"))))

    @classmethod
    def next_seq(cls, **subject: Any) -> int:
        """Return the number of the subject's next event."""
        return (cls._default_manager.filter(**subject).aggregate(newest=Max("seq"))["newest"] or 0) + 1


class RubricEvent(Activation):
    """A change of the rubric version that a judge of a project uses.

    ``retired`` returns to the shipped version, ``proposed`` submits a version for acceptance. ``ground`` says why a
    version was activated: ``accepted`` by a hold-out test, or ``decided`` by a lead with a ``reason``."""

    erasable = ("reason",)
    author_path = "created_by"

    SUBJECT_FIELDS = ("project", "judge", "family", "language")

    class Verb(models.TextChoices):
        PROPOSED = "proposed", _("proposed")
        ACTIVATED = "activated", _("activated")
        RETIRED = "retired", _("retired")

    class Ground(models.TextChoices):
        ACCEPTED = "accepted", _("accepted on expert labels")
        DECIDED = "decided", _("decided by a lead")

    project = models.ForeignKey(Project, on_delete=PROTECT, related_name="rubric_events")
    judge = models.CharField(_("judge"), max_length=100)
    family = models.CharField(_("family"), max_length=100)
    language = models.CharField(_("language"), max_length=5)
    version = models.ForeignKey(RubricVersion, on_delete=PROTECT, related_name="events")
    verb = models.CharField(max_length=20, choices=Verb.choices)
    ground = models.CharField(max_length=20, choices=Ground.choices, blank=True)
    reason = models.TextField(_("reason"), blank=True)

    class Meta:
        verbose_name = _("rubric event")
        verbose_name_plural = _("rubric events")
        constraints = [
            models.UniqueConstraint(fields=["project", "judge", "family", "language", "seq"], name="one_rubric_event"),
            models.CheckConstraint(
                condition=Q(verb="proposed", ground="")
                | Q(verb="retired", ground="") & ~Q(reason="")
                | Q(verb="activated", ground="accepted")
                | Q(verb="activated", ground="decided") & ~Q(reason=""),
                name="activation_of_rubric_has_a_ground",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.judge}: {self.version} {self.verb}"


class ProfileVersion(AppendOnly, Authored):
    """One version of a profile. Read ``spec`` through ``evaluation.profiles.spec`` only."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="profiles")
    name = models.CharField(_("name"), max_length=100)
    version = models.PositiveIntegerField(_("version"))
    spec = models.JSONField(_("content"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("profile")
        verbose_name_plural = _("profiles")
        constraints = [models.UniqueConstraint(fields=["project", "name", "version"], name="one_profile_version")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class CachedEmbedding(AppendOnly):
    """A cached embedding of one text in one space.

    ``space`` identifies embedder, model and settings, ``text_hash`` the text in NFC; the text is not stored. ``vector``
    holds four bytes per dimension."""

    space = models.CharField(max_length=64)
    text_hash = models.CharField(max_length=64)
    vector = models.BinaryField()

    class Meta:
        verbose_name = _("cached embedding")
        verbose_name_plural = _("cached embeddings")
        constraints = [models.UniqueConstraint(fields=["space", "text_hash"], name="one_vector_per_text")]
