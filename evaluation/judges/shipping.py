"""Rows for what ships with the product: rubrics, profiles and the offline baseline judge, made on first use, and
for the metrics that code declares; and who judges a run: one judge, several side by side, or a jury."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.db import models, transaction
from django.db.models import Exists, OuterRef

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused, UnknownName
from evaluation.core.metric_specs import MetricSpec
from evaluation.judging.baseline import BASELINE_VERSION
from evaluation.judging.catalogue import judge_metrics
from evaluation.judging.embedding.similarity import EMBEDDING_METRICS
from evaluation.judging.formulas import JuryRule
from evaluation.judging.rubric import Rubric, shipped_rubric
from evaluation.metrics.catalogue import RULE_METRICS
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
from evaluation.profiles.per_answer import ANSWER_OVERALL, DERIVED_METRICS
from evaluation.profiles.spec import DEFAULT_PROFILE, ProfileSpec, metrics_by_report_name, shipped_profiles

BASELINE = "baseline"
Row = TypeVar("Row", bound=models.Model)


def version_of(
    rows: models.QuerySet[Row], digest: str, least: int = 1, *, among: models.Q | None = None, **content: Any
) -> Row:
    """The one of a name's versions with exactly this content, by its hash; made as the next version, at ``least`` that
    one, where there is none. ``among``: which of them may be taken."""
    if same := rows.filter(among or models.Q(), content_hash=digest).first():
        return same
    with transaction.atomic():
        newest = rows.order_by("-version").values_list("version", flat=True).first() or 0
        return rows.create(version=max(least, newest + 1), content_hash=digest, **content)


def rubric_row(
    rubric: Rubric, project: Project | None = None, *, by: User | None = None, note: str = ""
) -> RubricVersion:
    """The row of a rubric with exactly this content, of everybody's or the project's own; a changed content becomes the
    next version of the family and language. What a ``project`` wrote is seen and used there alone."""
    named: dict[str, Any] = {"family": rubric.family, "language": rubric.language}
    made = {"spec": rubric.model_dump(mode="json"), "project": project, "created_by": by, "note": note}
    among = models.Q(project=None) | models.Q(project=project) if project else models.Q(project=None)
    rows = RubricVersion.objects.filter(**named)
    return version_of(rows, rubric.content_hash, rubric.version, among=among, **made, **named)


def shipped_rubric_row(family: str, language: str) -> RubricVersion:
    """The row of a family's shipped rubric in a language."""
    return rubric_row(shipped_rubric(family, language))


def default_profile(project: Project) -> str:
    """The name of the profile of runs for which none is named."""
    return project.default_profile or DEFAULT_PROFILE


def profile_names(project: Project | None) -> list[str]:
    """The shipped profiles and those of the project, by name in alphabetical order."""
    own = ProfileVersion.objects.filter(project=project).values_list("name", flat=True)
    return sorted({spec.name for spec in shipped_profiles()}.union(own))


def profile_row(project: Project, name: str = "") -> ProfileVersion:
    """The newest version of a profile: the named one, else the project's :func:`default_profile`. A shipped profile is
    made on first use.

    :raises UnknownName: when the project has none of that name and none ships.
    """
    name = name or default_profile(project)
    newest = ProfileVersion.objects.filter(project=project, name=name).order_by("-version").first()
    shipped = {p.name: p for p in shipped_profiles()}
    if name not in shipped:
        if newest is None:
            raise UnknownName("profile", name, profile_names(project))
        return newest
    if newest and newest.created_by_id is not None:
        return newest  # edited by a person: their version wins over the shipped one
    return save_profile(project, shipped[name])


def save_profile(project: Project, spec: ProfileSpec, by: User | None = None) -> ProfileVersion:
    """The version with exactly this content, made as the next version where there is none. ``by`` is who wrote it;
    nobody where the product brings it."""
    named: dict[str, Any] = {"project": project, "name": spec.name}
    rows = ProfileVersion.objects.filter(**named)
    return version_of(rows, content_hash(spec.content()), spec=spec.model_dump(mode="json"), created_by=by, **named)


def baseline_judge(project: Project, language: str) -> JudgeVersion:
    """The offline baseline judge of a project for rubrics in one language."""
    written = "ko" if language.startswith("ko") else "en"
    return save_judge(project, BASELINE, None, model=f"lexical-{BASELINE_VERSION}", language=written)


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
    """The judge version with exactly this content, made as the next version where there is none."""
    content = [name, endpoint.base_url if endpoint else "", model, language, params or {}]
    # Only where it is another one, so that judges from before there were methods keep their hashes.
    digest = content_hash(content if method == JudgeVersion.Method.SAID else [*content, method])
    named: dict[str, Any] = {"project": project, "name": name}
    asked = {"endpoint": endpoint, "model": model, "language": language, "params": params or {}, "method": method}
    return version_of(JudgeVersion.objects.filter(**named), digest, **(named | asked))


def judge_names(project: Project) -> list[str]:
    """The project's judges behind endpoints, by name in alphabetical order."""
    return sorted(
        set(JudgeVersion.objects.filter(project=project, endpoint__isnull=False).values_list("name", flat=True))
    )


def default_judge(project: Project) -> str:
    """The name of the judge that counts where nobody names one: the project's default, else its only one, else the
    offline baseline.

    :raises Refused: ``judge_needed`` where several stand and none is the default: a judge that was added must not
        change what a gate measures, nor what it costs.
    """
    if project.default_judge:
        return project.default_judge
    names = judge_names(project)
    if len(names) > 1:
        raise Refused("judge_needed", names=", ".join([*names, BASELINE]))
    return names[0] if names else BASELINE


def judge_row(project: Project, name: str = "") -> JudgeVersion:
    """The newest version of a judge: the named one, else the project's :func:`default_judge`.

    :raises UnknownName: for a name the project does not have.
    :raises Refused: see :func:`default_judge`.
    """
    name = name or default_judge(project)
    if name == BASELINE:
        return baseline_judge(project, settings.LANGUAGE_CODE)
    rows = JudgeVersion.objects.filter(project=project).select_related("endpoint")
    found = rows.filter(name=name.split("@")[0]).order_by("-version").first()
    if found is None:
        raise UnknownName("judge", name, [BASELINE, *rows.values_list("name", flat=True).distinct()])
    return found


@dataclass(frozen=True, slots=True)
class Bench:
    """The judge whose values count, and those beside it, who are members of a jury or only compared."""

    primary: JudgeVersion
    beside: tuple[JudgeVersion, ...] = ()


def bench_of(project: Project, names: Sequence[str], jury: str = "", *, baseline: bool = True) -> Bench:
    """The judges of these names; the first counts, or the jury of all where ``jury`` names a rule. Without a name the
    project's own judge, else the baseline. With ``baseline`` the offline baseline sits beside them, so that everybody
    sees how much better than word counting they are; it calls nobody and costs nothing.

    :raises UnknownName: for a judge the project does not have, or another rule.
    :raises Refused: what :func:`default_judge` and :func:`jury_row` refuse.
    """
    judges = list({judge.pk: judge for judge in (judge_row(project, name) for name in names or [""])}.values())
    yardstick = baseline_judge(project, judges[0].language) if baseline else None
    beside = () if yardstick is None or yardstick in judges else (yardstick,)
    if not jury:
        return Bench(judges[0], (*judges[1:], *beside))
    if jury not in list(JuryRule):
        raise UnknownName("jury rule", jury, list(JuryRule))
    return Bench(jury_row(project, judges, JuryRule(jury)), (*judges, *beside))


def jury_row(project: Project, members: Sequence[JudgeVersion], rule: JuryRule) -> JudgeVersion:
    """The judge that joins these judges by the rule.

    :raises Refused: ``jury_too_small`` for fewer than two different judges or a jury among them, ``jury_languages``
        where they do not judge by rubrics in one language.
    """
    names = sorted({str(member) for member in members})
    if len(names) < 2 or any(member.is_jury for member in members):
        raise Refused("jury_too_small")
    languages = sorted({member.language for member in members})
    if len(languages) > 1:
        raise Refused("jury_languages", languages=", ".join(languages))
    params: dict[str, object] = {"jury": {"rule": str(rule), "members": names}}
    model, language = ", ".join(names)[:200], languages[0]
    return save_judge(project, f"{rule}-of-{len(names)}", None, model=model, language=language, params=params)


def declared() -> dict[str, MetricSpec]:
    """Every metric that code declares, by name."""
    rules = (metric.spec for metric in RULE_METRICS)
    derived = (*(metric.spec for metric in DERIVED_METRICS), ANSWER_OVERALL)
    return {spec.name: spec for spec in (*rules, *EMBEDDING_METRICS, *judge_metrics(), *derived)}


def define(spec: MetricSpec) -> MetricDefinition:
    """The row of a declared metric, made on first use."""
    found = MetricDefinition.objects.filter(name=spec.name, version=spec.version).first()
    if found:
        return found
    with transaction.atomic():
        made, _ = MetricDefinition.objects.get_or_create(
            name=spec.name,
            version=spec.version,
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
    return made


def shown_names(runs: Sequence[Run]) -> dict[str, str]:
    """The metrics by the names under which reports of the runs show them (``avg_correctness``: ``correctness``); a name
    that is a scored metric's own means that metric and is not among them. Two queries."""
    shown: dict[str, str] = {}
    for content in ProfileVersion.objects.filter(runs__in=runs).values_list("spec", flat=True):
        shown |= metrics_by_report_name(content)
    scored = Exists(Score.objects.filter(run__in=runs, metric=OuterRef("pk")))
    own = MetricDefinition.objects.filter(scored, name__in=shown).values_list("name", flat=True) if shown else ()
    return {name: metric for name, metric in shown.items() if name not in set(own)}


def own_names(runs: Sequence[Run], names: Iterable[str]) -> list[str]:
    """The metrics' own names for names that may be those of reports; unknown ones are given back as they are."""
    shown = shown_names(runs)
    return [shown.get(name, name) for name in names]


def metrics_called(name: str) -> set[str]:
    """The own names of the metrics that go by a name without a run to tell: itself where a metric has it, else every
    metric that some profile's reports show under it."""
    if name in declared() or MetricDefinition.objects.filter(name=name).exists():
        return {name}
    named = [metrics_by_report_name(content) for content in ProfileVersion.objects.values_list("spec", flat=True)]
    return {shown[name] for shown in named if name in shown}


def definitions(names: Iterable[str]) -> dict[str, MetricDefinition]:
    """Rows of the named metrics: declared ones made on first use, others by their newest version.

    :raises UnknownName: for a name that neither code nor an import has defined.
    """
    known = declared()
    found: dict[str, MetricDefinition] = {}
    for name in names:
        row = (
            define(known[name])
            if name in known
            else MetricDefinition.objects.filter(name=name).order_by("-version").first()
        )
        if row is None:
            raise UnknownName("metric", name, [*known, *MetricDefinition.objects.values_list("name", flat=True)])
        found[name] = row
    return found
