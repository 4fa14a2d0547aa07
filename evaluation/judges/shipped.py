"""Database rows of shipped rubrics, profiles, the offline baseline and declared metrics, created on first use; and the
judges of a run: one judge, several, or a jury."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.db import models, transaction
from django.db.models import Exists, OuterRef

from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.metric_specs import MetricKind, MetricSpec
from evaluation.judges.clients import check_parameters
from evaluation.judging.baseline import BASELINE_VERSION
from evaluation.judging.formulas import JuryRule
from evaluation.judging.rubric import Rubric, shipped_rubric
from evaluation.metric_packages.declared import declared_metrics
from evaluation.models import (
    Endpoint,
    JudgeVersion,
    MetricDefinition,
    ProfileVersion,
    Project,
    RubricVersion,
    Run,
    Score,
    User,
)
from evaluation.profiles.spec import DEFAULT_PROFILE, ProfileSpec, metrics_by_report_name, shipped_profiles

BASELINE = "baseline"
Row = TypeVar("Row", bound=models.Model)


def get_or_create_version(
    rows: models.QuerySet[Row], digest: str, minimum_version: int = 1, *, among: models.Q | None = None, **content: Any
) -> Row:
    """Version with exactly this content, by hash; otherwise created as the next version, at least ``minimum_version``.
    ``among`` limits the versions that may be reused."""
    if existing := rows.filter(among or models.Q(), content_hash=digest).first():
        return existing
    with transaction.atomic():
        newest = rows.order_by("-version").values_list("version", flat=True).first() or 0
        return rows.create(version=max(minimum_version, newest + 1), content_hash=digest, **content)


def rubric_row(
    rubric: Rubric, project: Project | None = None, *, by: User | None = None, note: str = ""
) -> RubricVersion:
    """Row of a rubric with exactly this content, shared or of the project; changed content becomes the next version of
    family and language. Rubrics of a ``project`` are visible and usable only there."""
    identity: dict[str, Any] = {"family": rubric.family, "language": rubric.language}
    columns = {"spec": rubric.model_dump(mode="json"), "project": project, "created_by": by, "note": note}
    among = models.Q(project=None) | models.Q(project=project) if project else models.Q(project=None)
    rows = RubricVersion.objects.filter(**identity)
    return get_or_create_version(rows, rubric.content_hash, rubric.version, among=among, **columns, **identity)


def shipped_rubric_row(family: str, language: str) -> RubricVersion:
    return rubric_row(shipped_rubric(family, language))


def default_profile(project: Project) -> str:
    return project.default_profile or DEFAULT_PROFILE


def profile_names(project: Project | None) -> list[str]:
    """Shipped profiles and those of the project, by name."""
    project_profiles = ProfileVersion.objects.filter(project=project).values_list("name", flat=True)
    return sorted({spec.name for spec in shipped_profiles()}.union(project_profiles))


def profile_row(project: Project, name: str = "") -> ProfileVersion:
    """Newest version of the named profile, else of the project's :func:`default_profile`. A shipped profile is created
    on first use.

    :raises UnknownName: if neither the project nor the product has a profile of that name."""
    name = name or default_profile(project)
    newest = ProfileVersion.objects.filter(project=project, name=name).order_by("-version").first()
    shipped_by_name = {p.name: p for p in shipped_profiles()}
    if name not in shipped_by_name:
        if newest is None:
            raise UnknownName("profile", name, profile_names(project))
        return newest
    if newest and newest.created_by_id is not None:
        # Edited by a person: their version takes precedence over the shipped one.
        return newest
    return save_profile(project, shipped_by_name[name])


def save_profile(project: Project, spec: ProfileSpec, by: User | None = None) -> ProfileVersion:
    """Version with exactly this content, created if new. ``by`` is the author; ``None`` for shipped profiles."""
    identity: dict[str, Any] = {"project": project, "name": spec.name}
    rows = ProfileVersion.objects.filter(**identity)
    return get_or_create_version(
        rows, content_hash(spec.content()), spec=spec.model_dump(mode="json"), created_by=by, **identity
    )


def baseline_judge(project: Project, language: str) -> JudgeVersion:
    rubric_language = "ko" if language.startswith("ko") else "en"
    return save_judge(project, BASELINE, None, model=f"lexical-{BASELINE_VERSION}", language=rubric_language)


def save_judge(
    project: Project,
    name: str,
    endpoint: Endpoint | None,
    *,
    model: str,
    language: str,
    params: dict[str, object] | None = None,
    method: str = JudgeVersion.Method.SAID,
) -> JudgeVersion:
    """Judge version with exactly this content, created if new.

    :raises DomainError: ``parameters_unsupported``, ``logprobs_unsupported`` for what the provider lacks."""
    check_parameters(endpoint, params or {}, method)
    content = [name, endpoint.base_url if endpoint else "", model, language, params or {}]
    # The default method is left out of the hash, so that hashes of existing judges stay valid.
    digest = content_hash(content if method == JudgeVersion.Method.SAID else [*content, method])
    identity: dict[str, Any] = {"project": project, "name": name}
    columns = {"endpoint": endpoint, "model": model, "language": language, "params": params or {}, "method": method}
    return get_or_create_version(JudgeVersion.objects.filter(**identity), digest, **(identity | columns))


def judge_names(project: Project) -> list[str]:
    """Names of the project's judges with endpoints, sorted."""
    return sorted(
        set(JudgeVersion.objects.filter(project=project, endpoint__isnull=False).values_list("name", flat=True))
    )


def default_judge(project: Project) -> str:
    """Name of the judge used if none is named: the project's default, else its only judge, else the offline baseline.

    :raises DomainError: ``judge_needed`` if there are several and no default: an added judge must not change what a
    gate
        measures or costs."""
    if project.default_judge:
        return project.default_judge
    names = judge_names(project)
    if len(names) > 1:
        raise DomainError("judge_needed", names=", ".join([*names, BASELINE]))
    return names[0] if names else BASELINE


def judge_row(project: Project, name: str = "") -> JudgeVersion:
    """Newest version of the named judge, else of the project's :func:`default_judge`.

    :raises UnknownName: for a name that the project does not have.
    :raises DomainError: see :func:`default_judge`."""
    name = name or default_judge(project)
    if name == BASELINE:
        return baseline_judge(project, settings.LANGUAGE_CODE)
    rows = JudgeVersion.objects.filter(project=project).select_related("endpoint")
    judge = rows.filter(name=name.split("@")[0]).order_by("-version").first()
    if judge is None:
        raise UnknownName("judge", name, [BASELINE, *rows.values_list("name", flat=True).distinct()])
    return judge


@dataclass(frozen=True, slots=True)
class JudgePanel:
    """Judges of a run: the one whose scores count, and the secondary ones (jury members, or judges for comparison)."""

    primary: JudgeVersion
    secondary: tuple[JudgeVersion, ...] = ()


def judge_panel(project: Project, names: Sequence[str], jury: str = "", *, baseline: bool = True) -> JudgePanel:
    """Judges by name; the first one counts, or the jury of all if ``jury`` names a rule. By default the project's
    judge, else the baseline. With ``baseline`` the offline baseline is added for comparison; it is free.

    :raises UnknownName: for a judge that the project does not have, or an unknown rule.
    :raises DomainError: as :func:`default_judge` and :func:`jury_row`."""
    judges = list({judge.pk: judge for judge in (judge_row(project, name) for name in names or [""])}.values())
    baseline_row = baseline_judge(project, judges[0].language) if baseline else None
    extra_judges = () if baseline_row is None or baseline_row in judges else (baseline_row,)
    if not jury:
        return JudgePanel(judges[0], (*judges[1:], *extra_judges))
    if jury not in list(JuryRule):
        raise UnknownName("jury rule", jury, list(JuryRule))
    return JudgePanel(jury_row(project, judges, JuryRule(jury)), (*judges, *extra_judges))


def jury_row(project: Project, members: Sequence[JudgeVersion], rule: JuryRule) -> JudgeVersion:
    """Judge that combines these judges by the rule.

    :raises DomainError: ``jury_too_small`` for fewer than two different judges or a nested jury, ``jury_languages`` if
    their rubric languages differ."""
    names = sorted({str(member) for member in members})
    if len(names) < 2 or any(member.is_jury for member in members):
        raise DomainError("jury_too_small")
    languages = sorted({member.language for member in members})
    if len(languages) > 1:
        raise DomainError("jury_languages", languages=", ".join(languages))
    params: dict[str, object] = {"jury": {"rule": str(rule), "members": names}}
    model, language = ", ".join(names)[:200], languages[0]
    return save_judge(project, f"{rule}-of-{len(names)}", None, model=model, language=language, params=params)


def metric_row(spec: MetricSpec) -> MetricDefinition:
    """Row of a declared metric, created on first use. A definition that differs from the stored one, such as a new
    scale of an own metric, becomes the next version."""
    rows = MetricDefinition.objects.filter(name=spec.name).order_by("-version")
    # The version of a criterion's metric is that of its row.
    custom = spec.kind is MetricKind.CUSTOM
    identity = {"version": spec.version} if custom else {"content_hash": spec.definition_hash}
    if existing := rows.filter(**identity).first():
        return existing
    with transaction.atomic():
        newest = rows.values_list("version", flat=True).first() or 0
        definition, _ = MetricDefinition.objects.get_or_create(
            name=spec.name,
            version=max(spec.version, newest + 1),
            defaults={
                "kind": spec.kind,
                "scale": str(spec.scale),
                "direction": spec.direction,
                "review_form": spec.review_form,
                "rubric_family": spec.rubric_family,
                "title": {"en": spec.title.en, "ko": spec.title.ko},
                "content_hash": spec.definition_hash,
            },
        )
    return definition


def report_names(runs: Sequence[Run]) -> dict[str, str]:
    """Metrics by their names in the runs' reports (``avg_correctness``: ``correctness``), without names that scored
    metrics have themselves. Two queries."""
    by_report_name: dict[str, str] = {}
    for content in ProfileVersion.objects.filter(runs__in=runs).values_list("spec", flat=True):
        by_report_name |= metrics_by_report_name(content)
    scored = Exists(Score.objects.filter(run__in=runs, metric=OuterRef("pk")))
    scored_names = (
        MetricDefinition.objects.filter(scored, name__in=by_report_name).values_list("name", flat=True)
        if by_report_name
        else ()
    )
    return {name: metric for name, metric in by_report_name.items() if name not in set(scored_names)}


def metric_names(runs: Sequence[Run], names: Iterable[str]) -> list[str]:
    """Metric names for names that may be report names; unknown names are returned unchanged."""
    by_report_name = report_names(runs)
    return [by_report_name.get(name, name) for name in names]


def metrics_matching(name: str) -> set[str]:
    """Metrics with this name, else the metrics that any profile's reports show under it."""
    if name in declared_metrics() or MetricDefinition.objects.filter(name=name).exists():
        return {name}
    name_maps = [metrics_by_report_name(content) for content in ProfileVersion.objects.values_list("spec", flat=True)]
    return {name_map[name] for name_map in name_maps if name in name_map}


def definitions(names: Iterable[str]) -> dict[str, MetricDefinition]:
    """Rows of the named metrics: declared ones are created on first use, others are their newest version.

    :raises UnknownName: for a name that neither code nor an import defines."""
    specs = declared_metrics()
    rows: dict[str, MetricDefinition] = {}
    for name in names:
        row = (
            metric_row(specs[name])
            if name in specs
            else MetricDefinition.objects.filter(name=name).order_by("-version").first()
        )
        if row is None:
            raise UnknownName("metric", name, [*specs, *MetricDefinition.objects.values_list("name", flat=True)])
        rows[name] = row
    return rows
