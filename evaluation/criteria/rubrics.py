"""A rubric version's life for the judges of a project: drafted, offered, put in force, taken out again; and which
version a judge works by.

Every judge (by its name), rubric family and language has one version in force: the one that was activated last, else
the shipped one. A version comes in force because it proved itself on answers it had never seen, or because a lead
decided it and said why; the event tells which. Runs pin what they used and are never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import Refused, UnknownName
from evaluation.judges.shipping import rubric_row, shipped_rubric_row
from evaluation.judging.drafting import check_draft
from evaluation.judging.rubric import FAMILY_PREFIX, Rubric
from evaluation.models import HoldOutOpening, JudgeVersion, Project, RubricEvent, RubricVersion, Standing, User

Verb, Ground = RubricEvent.Verb, RubricEvent.Ground
LONGEST_REASON = 2000


@dataclass(frozen=True, slots=True)
class Slot:
    """What one version of a rubric is in force for: the judges of a name in a project, a family, a language."""

    project_id: int
    judge: str
    family: str
    language: str

    @property
    def columns(self) -> dict[str, object]:
        """As columns of an event."""
        return {name: getattr(self, name) for name in ("project_id", "judge", "family", "language")}


def slot_of(judge: JudgeVersion, family: str, language: str = "") -> Slot:
    """The slot of a family for a judge, in the judge's own language where no other is named; every language but Korean
    is judged in English."""
    written = language or judge.language
    return Slot(judge.project_id, judge.name, family, "ko" if written.startswith("ko") else "en")


@dataclass(frozen=True, slots=True)
class Standings:
    """How the versions of a slot stand: the one in force, the shipped one, and what became of those that events
    name."""

    active: RubricVersion
    shipped: RubricVersion
    others: Mapping[int, Standing]

    def of(self, version: RubricVersion) -> Standing:
        """How a version stands: the shipped one is retired while another is in force, any other is a draft until
        something is done with it."""
        if version.pk == self.active.pk:
            return Standing.ACTIVE
        return self.others.get(version.pk, Standing.RETIRED if version.pk == self.shipped.pk else Standing.DRAFT)


def standings(slot: Slot) -> Standings:
    """How the versions of a slot stand by its events, in their order. One query, and one for the shipped version."""
    active: RubricVersion | None = None
    found: dict[int, Standing] = {}
    events = RubricEvent.objects.filter(**slot.columns).select_related("version").order_by("seq")
    for event in events:
        if event.verb == Verb.PROPOSED:
            found[event.version_id] = Standing.CANDIDATE
            continue
        if active is not None:
            found[active.pk] = Standing.RETIRED
        active = event.version if event.verb == Verb.ACTIVATED else None
    shipped = shipped_rubric_row(slot.family, slot.language)
    return Standings(active or shipped, shipped, found)


def all_in_force(project_id: int) -> dict[Slot, RubricVersion]:
    """The versions that were put in force in a project and still are; elsewhere the shipped ones are. One query."""
    events = RubricEvent.objects.filter(project=project_id).exclude(verb=Verb.PROPOSED).select_related("version")
    newest = {Slot(e.project_id, e.judge, e.family, e.language): e for e in events.order_by("seq")}
    return {slot: event.version for slot, event in newest.items() if event.verb == Verb.ACTIVATED}


def rubrics_for(project_ids: Iterable[int]) -> QuerySet[RubricVersion]:
    """The versions that people of these projects may use: shipped ones and their own, without those of criteria."""
    rows = RubricVersion.objects.filter(Q(project=None) | Q(project__in=list(project_ids)))
    return rows.exclude(family__startswith=FAMILY_PREFIX)


def version_named(project_id: int, language: str, name: str) -> RubricVersion:
    """The version that ``FAMILY@V`` names in a language.

    :raises UnknownName: naming the versions there are.
    :raises Refused: ``rubric_other_language``.
    """
    family, _, number = name.rpartition("@")
    every = rubrics_for([project_id])
    named = every.filter(family=family, version=int(number)) if _is_number(number) else every.none()
    rows, found = every.filter(language=language), named.filter(language=language).first()
    if found is None:
        if named.exists():
            raise Refused("rubric_other_language", rubric=name, language=language)
        known = [f"{one.family}@{one.version}" for one in rows.order_by("family", "version")]
        raise UnknownName("rubric version", name, known)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


@dataclass(frozen=True, slots=True)
class Seat:
    """A version by which a judge works in a run, and how it stood for the judge then."""

    rubric: RubricVersion
    standing: Standing


def seats_of(
    judge: JudgeVersion, families: Sequence[str], chosen: Sequence[str], language: str = ""
) -> list[list[Seat]]:
    """By which versions a judge works in each family: those ``chosen`` as ``FAMILY@V``, else the one in force; in the
    judge's own language where none is named. The offline baseline and juries read no rubric and stay with the one in
    force.

    :raises UnknownName: for a version the project does not have.
    """
    reads = not (judge.is_baseline or judge.is_jury)
    found = []
    for family in families:
        slot = slot_of(judge, family, language)
        stand = standings(slot)
        named = [name for name in dict.fromkeys(chosen) if name.rpartition("@")[0] == family] if reads else []
        versions = [version_named(slot.project_id, slot.language, name) for name in named] or [stand.active]
        found.append([Seat(version, stand.of(version)) for version in versions])
    return found


@transaction.atomic
def draft(project: Project, rubric: Rubric, *, by: User | None, note: str = "") -> RubricVersion:
    """The version with exactly this content, made as the next version of the family and language where there is none.

    :raises Refused: see :func:`evaluation.judging.drafting.check_draft`; ``reason_too_long``; ``drafter_opened``.
    :raises UnknownName: for a family that does not ship.
    """
    check_may_draft(project.pk, rubric.family, by)
    check_draft(rubric)
    lock_project(project.pk)
    shipped_rubric_row(rubric.family, rubric.language)  # so that its number is not given to a draft
    before = RubricVersion.objects.filter(family=rubric.family, language=rubric.language).count()
    made = rubric_row(rubric, project, by=by, note=_short(note))
    if RubricVersion.objects.filter(family=rubric.family, language=rubric.language).count() > before:
        audit.record(by, "rubric.drafted", made, hash=made.content_hash, version=made.version)
    return made


def propose(version: RubricVersion, judge: JudgeVersion, *, by: User | None) -> RubricEvent:
    """Offer a draft for acceptance; it still makes no verdicts on sealed answers.

    :raises Refused: ``rubric_active``, ``drafter_opened``.
    """
    check_may_draft(judge.project_id, version.family, by)
    return _happen(version, slot_of(judge, version.family), Verb.PROPOSED, by)


def check_may_draft(project_id: int, family: str, by: User | None) -> None:
    """Refuse a person who opened the labels on which versions of the family prove themselves.

    :raises Refused: ``drafter_opened``.
    """
    if lineage := opened_lineage(project_id, family, by):
        raise Refused("drafter_opened", gold=lineage, family=family)


def opened_lineage(project_id: int, family: str, by: User | None) -> str:
    """The lineage of gold sets because of which the person may not draft versions of the family; empty without one."""
    rows = HoldOutOpening.objects.filter(project=project_id, created_by=by, ended_at=None) if by else ()
    return next((row.lineage for row in rows if family in row.families), "")


def activate(
    version: RubricVersion, judge: JudgeVersion, *, by: User | None, reason: str, ground: str = Ground.DECIDED
) -> RubricEvent:
    """Let new runs of the judge work by this version. ``ground`` is ``accepted`` only where the version proved itself.

    What is in force already can only prove itself anew.

    :raises Refused: ``rubric_active`` when it is in force already, ``rubric_other_language``, ``reason_required``.
    """
    return _happen(version, slot_of(judge, version.family), Verb.ACTIVATED, by, reason, ground)


def retire(judge: JudgeVersion, family: str, *, by: User | None, reason: str) -> RubricEvent:
    """Let new runs of the judge work by the shipped version again.

    :raises Refused: ``rubric_not_activated`` when it is in force already, ``reason_required``.
    """
    slot = slot_of(judge, family)
    return _happen(standings(slot).active, slot, Verb.RETIRED, by, reason)


@transaction.atomic
def _happen(
    version: RubricVersion, slot: Slot, verb: str, by: User | None, reason: str = "", ground: str = ""
) -> RubricEvent:
    if verb != Verb.PROPOSED and ground != Ground.ACCEPTED and not reason.strip():
        raise Refused("reason_required")
    if version.language != slot.language:
        raise Refused("rubric_other_language", rubric=str(version), language=slot.language)
    if version.project_id not in {None, slot.project_id}:
        raise UnknownName("rubric version", f"{version.family}@{version.version}", [])
    lock_project(slot.project_id)
    stand = standings(slot)
    if verb == Verb.RETIRED:
        if version.pk == stand.shipped.pk:
            raise Refused("rubric_not_activated", family=slot.family, judge=slot.judge)
    elif version.pk == stand.active.pk and ground != Ground.ACCEPTED:
        raise Refused("rubric_active", rubric=str(version), judge=slot.judge)
    seq = RubricEvent.next_seq(**slot.columns)
    what = {"version": version, "verb": verb, "ground": ground, "reason": _short(reason), "created_by": by}
    made = RubricEvent.objects.create(seq=seq, **slot.columns, **what)
    audit.record(by, f"rubric.{verb}", version, hash=version.content_hash, judge=slot.judge, ground=ground)
    return made


def _short(text: str) -> str:
    text = text.strip()
    if len(text) > LONGEST_REASON:
        raise Refused("reason_too_long", length=len(text), limit=LONGEST_REASON)
    return text
