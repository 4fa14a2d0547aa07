"""Life cycle of rubric versions per judge: draft, propose, activate, retire; and the versions that a judge uses.

Each judge name, rubric family and language has one active version: the last activated one, else the shipped one. A
version is activated because it passed a hold-out test or by a lead's decision with a reason; the event records which.
Runs pin their versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import DomainError, UnknownName
from evaluation.judges.shipped import rubric_row, shipped_rubric_row
from evaluation.judging.draft_checks import check_draft
from evaluation.judging.rubric import FAMILY_PREFIX, Rubric
from evaluation.models import HoldOutOpening, JudgeVersion, Project, RubricEvent, RubricVersion, User, VersionStatus

Verb, Ground = RubricEvent.Verb, RubricEvent.Ground
MAX_REASON_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class RubricScope:
    """Scope in which one rubric version is active: judges of one name in a project, a family and a language."""

    project_id: int
    judge: str
    family: str
    language: str

    @property
    def columns(self) -> dict[str, object]:
        """Columns of an event."""
        return {name: getattr(self, name) for name in ("project_id", "judge", "family", "language")}


def rubric_scope(judge: JudgeVersion, family: str, language: str = "") -> RubricScope:
    """Scope of a family for a judge, by default in the judge's language. All languages except Korean use English
    rubrics."""
    language_code = language or judge.language
    return RubricScope(judge.project_id, judge.name, family, "ko" if language_code.startswith("ko") else "en")


@dataclass(frozen=True, slots=True)
class VersionStatuses:
    """Statuses of the versions in a scope: the active and the shipped version, and the statuses of versions with
    events."""

    active: RubricVersion
    shipped: RubricVersion
    statuses: Mapping[int, VersionStatus]

    def status_of(self, version: RubricVersion) -> VersionStatus:
        """Status of a version. The shipped version is retired while another is active; a version without events is a
        draft."""
        if version.pk == self.active.pk:
            return VersionStatus.ACTIVE
        return self.statuses.get(
            version.pk, VersionStatus.RETIRED if version.pk == self.shipped.pk else VersionStatus.DRAFT
        )


def version_statuses(scope: RubricScope) -> VersionStatuses:
    """Replay the events of a scope. Two queries."""
    active: RubricVersion | None = None
    statuses: dict[int, VersionStatus] = {}
    events = RubricEvent.objects.filter(**scope.columns).select_related("version").order_by("seq")
    for event in events:
        if event.verb == Verb.PROPOSED:
            statuses[event.version_id] = VersionStatus.CANDIDATE
            continue
        if active is not None:
            statuses[active.pk] = VersionStatus.RETIRED
        active = event.version if event.verb == Verb.ACTIVATED else None
    shipped = shipped_rubric_row(scope.family, scope.language)
    return VersionStatuses(active or shipped, shipped, statuses)


def active_rubrics(project_id: int) -> dict[RubricScope, RubricVersion]:
    """Activated versions in a project; other scopes use the shipped ones. One query."""
    events = RubricEvent.objects.filter(project=project_id).exclude(verb=Verb.PROPOSED).select_related("version")
    newest = {RubricScope(e.project_id, e.judge, e.family, e.language): e for e in events.order_by("seq")}
    return {scope: event.version for scope, event in newest.items() if event.verb == Verb.ACTIVATED}


def usable_rubrics(project_ids: Iterable[int]) -> QuerySet[RubricVersion]:
    """Versions usable in these projects: shipped ones and their own, without those of criteria."""
    rows = RubricVersion.objects.filter(Q(project=None) | Q(project__in=list(project_ids)))
    return rows.exclude(family__startswith=FAMILY_PREFIX)


def find_version(project_id: int, language: str, name: str) -> RubricVersion:
    """Version with the name ``FAMILY@V`` in a language.

    :raises UnknownName: with the existing versions.
    :raises DomainError: ``rubric_other_language``."""
    family, _, number = name.rpartition("@")
    usable = usable_rubrics([project_id])
    numbered = usable.filter(family=family, version=int(number)) if _is_number(number) else usable.none()
    rows, version = usable.filter(language=language), numbered.filter(language=language).first()
    if version is None:
        if numbered.exists():
            raise DomainError("rubric_other_language", rubric=name, language=language)
        labels = [f"{row.family}@{row.version}" for row in rows.order_by("family", "version")]
        raise UnknownName("rubric version", name, labels)
    return version


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


@dataclass(frozen=True, slots=True)
class RubricAssignment:
    """Rubric version of a judge in a run, and its status at that time."""

    rubric: RubricVersion
    status: VersionStatus


def assign_rubrics(
    judge: JudgeVersion, families: Sequence[str], rubric_names: Sequence[str], language: str = ""
) -> list[list[RubricAssignment]]:
    """Versions that a judge uses in each family: those in ``rubric_names`` (``FAMILY@V``), else the active one. The
    offline baseline and juries read no rubric and always get the active one.

    :raises UnknownName: for a version that the project does not have."""
    uses_rubrics = not (judge.is_baseline or judge.is_jury)
    assignments = []
    for family in families:
        scope = rubric_scope(judge, family, language)
        statuses = version_statuses(scope)
        requested = (
            [name for name in dict.fromkeys(rubric_names) if name.rpartition("@")[0] == family] if uses_rubrics else []
        )
        versions = [find_version(scope.project_id, scope.language, name) for name in requested] or [statuses.active]
        assignments.append([RubricAssignment(version, statuses.status_of(version)) for version in versions])
    return assignments


@transaction.atomic
def draft(project: Project, rubric: Rubric, *, by: User | None, note: str = "") -> RubricVersion:
    """Version with exactly this content, created as the next version of family and language if new.

    :raises DomainError: see :func:`evaluation.judging.draft_checks.check_draft`; ``reason_too_long``;
    ``drafter_opened``.
    :raises UnknownName: for a family that does not ship."""
    check_may_draft(project.pk, rubric.family, by)
    check_draft(rubric)
    lock_project(project.pk)
    # Creates the shipped version first, so that a draft cannot take its number.
    shipped_rubric_row(rubric.family, rubric.language)
    before = RubricVersion.objects.filter(family=rubric.family, language=rubric.language).count()
    version = rubric_row(rubric, project, by=by, note=_checked_reason(note))
    if RubricVersion.objects.filter(family=rubric.family, language=rubric.language).count() > before:
        audit.record(by, "rubric.drafted", version, hash=version.content_hash, version=version.version)
    return version


def propose(version: RubricVersion, judge: JudgeVersion, *, by: User | None) -> RubricEvent:
    """Propose a draft for acceptance; it does not yet judge sealed answers.

    :raises DomainError: ``rubric_active``, ``drafter_opened``."""
    check_may_draft(judge.project_id, version.family, by)
    return _record_event(version, rubric_scope(judge, version.family), Verb.PROPOSED, by)


def check_may_draft(project_id: int, family: str, by: User | None) -> None:
    """Refuse a person who opened the hold-out labels of the family.

    :raises DomainError: ``drafter_opened``."""
    if lineage := opened_lineage(project_id, family, by):
        raise DomainError("drafter_opened", gold=lineage, family=family)


def opened_lineage(project_id: int, family: str, by: User | None) -> str:
    """Gold set lineage that bars the person from drafting the family; empty if none."""
    rows = HoldOutOpening.objects.filter(project=project_id, created_by=by, ended_at=None) if by else ()
    return next((row.lineage for row in rows if family in row.families), "")


def activate(
    version: RubricVersion, judge: JudgeVersion, *, by: User | None, reason: str, ground: str = Ground.DECIDED
) -> RubricEvent:
    """Use this version in new runs of the judge. ``ground`` is ``accepted`` only after a passed hold-out test.

    An active version can only be accepted again.

    :raises DomainError: ``rubric_active`` if it is active already, ``rubric_other_language``, ``reason_required``."""
    return _record_event(version, rubric_scope(judge, version.family), Verb.ACTIVATED, by, reason, ground)


def retire(judge: JudgeVersion, family: str, *, by: User | None, reason: str) -> RubricEvent:
    """Return to the shipped version in new runs of the judge.

    :raises DomainError: ``rubric_not_activated`` if the shipped version is active already, ``reason_required``."""
    scope = rubric_scope(judge, family)
    return _record_event(version_statuses(scope).active, scope, Verb.RETIRED, by, reason)


@transaction.atomic
def _record_event(
    version: RubricVersion, scope: RubricScope, verb: str, by: User | None, reason: str = "", ground: str = ""
) -> RubricEvent:
    if verb != Verb.PROPOSED and ground != Ground.ACCEPTED and not reason.strip():
        raise DomainError("reason_required")
    if version.language != scope.language:
        raise DomainError("rubric_other_language", rubric=str(version), language=scope.language)
    if version.project_id not in {None, scope.project_id}:
        raise UnknownName("rubric version", f"{version.family}@{version.version}", [])
    lock_project(scope.project_id)
    statuses = version_statuses(scope)
    if verb == Verb.RETIRED:
        if version.pk == statuses.shipped.pk:
            raise DomainError("rubric_not_activated", family=scope.family, judge=scope.judge)
    elif version.pk == statuses.active.pk and ground != Ground.ACCEPTED:
        raise DomainError("rubric_active", rubric=str(version), judge=scope.judge)
    seq = RubricEvent.next_seq(**scope.columns)
    columns = {"version": version, "verb": verb, "ground": ground, "reason": _checked_reason(reason), "created_by": by}
    event = RubricEvent.objects.create(seq=seq, **scope.columns, **columns)
    audit.record(by, f"rubric.{verb}", version, hash=version.content_hash, judge=scope.judge, ground=ground)
    return event


def _checked_reason(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_REASON_LENGTH:
        raise DomainError("reason_too_long", length=len(text), limit=MAX_REASON_LENGTH)
    return text
