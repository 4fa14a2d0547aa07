"""People, projects, roles, API tokens and the audit log."""

import re

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import PROTECT
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evaluation.core.roles import Role
from evaluation.core.usernames import mixes_scripts, username_key
from evaluation.storage.append_only import AppendOnly, TimestampedModel

ROLE_CHOICES = [
    (Role.VIEWER.value, _("Viewer")),
    (Role.REVIEWER.value, _("Reviewer")),
    (Role.EVALUATOR.value, _("Evaluator")),
    (Role.LEAD.value, _("Lead")),
    (Role.ADMIN.value, _("Administrator")),
]


_HANGUL = re.compile("[가-힣]+")


class User(AbstractUser):
    """A person. Rights come from role grants; ``is_superuser`` is the site's administrator."""

    language = models.CharField(_("language"), max_length=5, blank=True, choices=settings.LANGUAGES)
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True)
    #: Changed keys of the review screen: action -> key position (review/ratings/card.py).
    keymap = models.JSONField(_("keys"), default=dict, blank=True, editable=False)
    keys_off = models.BooleanField(_("single-key shortcuts off"), default=False, editable=False)
    is_service = models.BooleanField(
        _("service user"),
        default=False,
        help_text=_("A program, not a person. It uses only tokens, can't log in, and never rates blind."),
    )
    #: Until then ratings are not blind, because another person made the link by which the password was chosen.
    not_blind_until = models.DateTimeField(_("ratings not blind until"), null=True, editable=False)
    #: Set for one request by a REST token: its id, its only project (``evaluation/accounts/access.py``), and whether
    #: the user created the token themselves.
    token_id: int | None = None
    token_project_id: int | None = None
    is_own_token: bool = True

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")

    def clean(self) -> None:
        """Refuse a user name that passes for another.

        :raises ValidationError: for letters of several scripts, and for a name that looks like an existing one."""
        super().clean()
        if mixes_scripts(self.username):
            raise ValidationError({"username": _("Use letters of one script: Latin, Cyrillic or Greek.")})
        # Django reports an equal name itself.
        others = User.objects.exclude(pk=self.pk).exclude(username=self.username).values_list("username", flat=True)
        if self.username and username_key(self.username) in {"", *map(username_key, others)}:
            raise ValidationError({"username": _("Another user name looks like this one. Choose a different one.")})

    @property
    def display_name(self) -> str:
        """The full name, in Korean order for Korean names, else the user name."""
        if _HANGUL.fullmatch(self.last_name) and _HANGUL.fullmatch(self.first_name):
            return f"{self.last_name}{self.first_name}"
        return self.get_full_name() or self.get_username()

    @property
    def is_distrusted(self) -> bool:
        """Return whether another person may know the password, because they made the link by which it was chosen."""
        return self.not_blind_until is not None and self.not_blind_until > timezone.now()

    @property
    def is_themselves(self) -> bool:
        """Return whether only the user can act by this session or token; otherwise ratings are not blind."""
        return self.is_own_token and not self.is_distrusted


class FailedLogin(TimestampedModel):
    """Failed logins of one name from one address within a minute, by keyed hashes.

    Not part of the audit log, so that ``purge`` can delete what attackers write. ``person``: account of the name.
    ``by``: ``code`` for a second factor. ``cleared``: a later login succeeded, so limits do not count the row."""

    name = models.CharField(_("name hash"), max_length=64)
    address = models.CharField(_("address hash"), max_length=64)
    person = models.ForeignKey(User, verbose_name=_("person"), on_delete=models.CASCADE, null=True, related_name="+")
    by = models.CharField(_("method"), max_length=10, blank=True, default="")
    count = models.PositiveIntegerField(_("attempts"), default=1)
    cleared = models.BooleanField(_("followed by a login"), default=False)
    deleted_with = "person"

    class Meta:
        verbose_name = _("failed login")
        verbose_name_plural = _("failed logins")
        indexes = [
            models.Index(fields=["name", "created_at"], name="failed_logins_of_name"),
            models.Index(fields=["address", "created_at"], name="failed_logins_from_address"),
            models.Index(fields=["created_at"], name="failed_logins_by_age"),
        ]


class CacheEntry(models.Model):
    """Table of Django's database cache (``CACHES["shared"]``), as ``createcachetable`` would create it."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)


class IdempotencyKey(TimestampedModel):
    """A POST with an ``Idempotency-Key``: hashes of key and request, and the response; stored for a day.

    ``status`` is null only within the transaction that creates the row."""

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(null=True)
    deleted_with = "person"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "key"], name="one_request_of_a_key")]


class Project(TimestampedModel):
    """Scope of roles; every other object belongs to one project. A new site has one."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    default_judge = models.CharField(
        _("default judge"),
        max_length=100,
        blank=True,
        default="",
        help_text=_("Judge used when none is named. With only one judge, that one is used."),
    )
    default_profile = models.CharField(
        _("default profile"),
        max_length=100,
        blank=True,
        default="",
        help_text=_("Profile of runs created without one. Its formula computes the overall score. Default: standard."),
    )

    class Meta:
        verbose_name = _("project")
        verbose_name_plural = _("projects")

    def __str__(self) -> str:
        return self.name


class RoleGrant(TimestampedModel):
    """A role of a person in a project."""

    user = models.ForeignKey(User, verbose_name=_("user"), on_delete=PROTECT, related_name="grants")
    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="grants")
    role = models.CharField(_("role"), max_length=20, choices=ROLE_CHOICES)

    class Meta:
        verbose_name = _("role")
        verbose_name_plural = _("roles")
        constraints = [
            models.UniqueConstraint(fields=["user", "project", "role"], name="one_grant_per_role"),
            models.CheckConstraint(condition=models.Q(role__in=[r.value for r in Role]), name="known_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role} · {self.project}"


class ApiToken(TimestampedModel):
    """A REST token, stored as its SHA-256. ``scope`` is ``read`` or ``write``; every token expires.

    ``made_by`` saw its text; ``None`` for tokens without a recorded creator."""

    user = models.ForeignKey(User, verbose_name=_("user"), on_delete=PROTECT, related_name="tokens")
    made_by = models.ForeignKey(
        User, verbose_name=_("created by"), on_delete=PROTECT, null=True, editable=False, related_name="+"
    )
    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="tokens")
    name = models.CharField(_("name"), max_length=100)
    sha256 = models.CharField(_("SHA-256"), max_length=64, unique=True, editable=False)
    scope = models.CharField(_("scope"), max_length=10, choices=[("read", _("Read")), ("write", _("Write"))])
    expires_at = models.DateTimeField(_("expires"))
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return self.name


class AuditEvent(AppendOnly):
    """An action in the audit log. ``hash`` covers the row and the hash of the previous one, so changes are detected.

    ``detail`` holds ids, versions and hashes, never personal text, so that people can be erased."""

    is_digested = False

    actor = models.ForeignKey(User, verbose_name=_("person"), on_delete=PROTECT, null=True, related_name="+")
    verb = models.CharField(_("event"), max_length=60)
    object_type = models.CharField(_("object type"), max_length=60)
    object_id = models.CharField(_("object"), max_length=64)
    detail = models.JSONField(_("details"), default=dict)
    prev_hash = models.CharField(_("previous hash"), max_length=64, unique=True)
    hash = models.CharField(_("hash"), max_length=64, unique=True)

    class Meta:
        verbose_name = _("audit event")
        verbose_name_plural = _("audit events")
        indexes = [models.Index(fields=["object_type", "object_id"], name="audit_by_object")]

    def __str__(self) -> str:
        return f"{self.verb} {self.object_type} {self.object_id}"
