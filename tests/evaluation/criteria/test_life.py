"""Life cycle of a criterion: drafted, activated, edited, deactivated; versions never change."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import MetricKind
from evaluation.core.roles import Role
from evaluation.criteria.services import (
    activate,
    active_criteria,
    deactivate,
    draft_version,
    newest_event,
    rubric_for_metric,
)
from evaluation.models import AuditEvent, CriterionEvent, CriterionVersion, MetricDefinition, RubricVersion
from tests.evaluation.criteria.written import ENGLISH, KOREAN, drafted, in_force, spec
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def test_draft_is_not_judged_before_activation() -> None:
    project = make_project()
    version = draft_version(project, spec(), by=None)
    assert (version.version, list(active_criteria(project.pk))) == (1, [])
    assert not MetricDefinition.objects.filter(name="tone").exists()
    assert not RubricVersion.objects.filter(family="criterion:tone").exists()


def test_activation_creates_a_metric_and_a_rubric_per_language() -> None:
    event = activate(draft_version(make_project(), spec(), by=None), by=None)
    assert event.metric is not None
    assert (event.metric.kind, event.metric.version, event.metric.scale) == (MetricKind.CUSTOM, 1, "levels 1..3")
    assert event.metric.title == {"en": "Tone", "ko": "말투"}
    assert (event.rubric("en").language, event.rubric("ko").language) == ("en", "ko")
    assert event.rubric("ko").version == event.rubric("en").version == 1


def test_missing_language_uses_the_other_rubric() -> None:
    event = activate(drafted(make_project(), en=None), by=None)
    assert event.rubric("en").language == "ko"


def test_edit_creates_a_version_and_equal_content_reuses_one() -> None:
    project = make_project()
    first = draft_version(project, spec(), by=None)
    edited = draft_version(project, spec(en={**ENGLISH, "instruction": "Other"}), by=None)
    assert (edited.version, draft_version(project, spec(), by=None).pk) == (2, first.pk)
    assert CriterionVersion.objects.count() == 2


def test_new_guidance_keeps_the_metric_and_new_anchors_replace_it() -> None:
    project = make_project()
    first = activate(draft_version(project, spec(), by=None), by=None)
    second = activate(draft_version(project, spec(en={**ENGLISH, "instruction": "Other"}), by=None), by=None)
    harsher_text = {**KOREAN, "levels": [{"value": 1, "text": "아주 무례함"}, *KOREAN["levels"][1:]]}
    third = activate(draft_version(project, spec(ko=harsher_text), by=None), by=None)
    assert second.metric == first.metric
    assert (third.metric and third.metric.version, third.rubric("en").version) == (2, 3)
    assert [event.version.version for event in active_criteria(project.pk)] == [3]


def test_reactivated_version_reuses_its_rubrics_and_metric() -> None:
    project = make_project()
    version = draft_version(project, spec(), by=None)
    first = activate(version, by=None)
    activate(draft_version(project, spec(direction="lower"), by=None), by=None)
    reactivated = activate(version, by=None)
    assert (reactivated.metric, reactivated.rubric_en, reactivated.rubric_ko) == (
        first.metric,
        first.rubric_en,
        first.rubric_ko,
    )
    assert reactivated.metric is not None
    newest = rubric_for_metric(reactivated.metric, "ko")
    assert newest == first.rubric_ko


def test_deactivation_only_ends_the_active_version() -> None:
    project = make_project()
    version = in_force(project)
    deactivate(version.criterion, by=None)
    last_event = newest_event(version.criterion)
    assert (last_event and last_event.verb, list(active_criteria(project.pk))) == (CriterionEvent.Verb.DEACTIVATED, [])
    assert RubricVersion.objects.filter(family__startswith="criterion:").count() == 2
    with pytest.raises(DomainError, match="criterion_not_active"):
        deactivate(version.criterion, by=None)


def test_activating_an_active_version_is_refused() -> None:
    version = in_force(make_project())
    with pytest.raises(DomainError, match="criterion_active"):
        activate(version, by=None)


@pytest.mark.parametrize("name", ["correctness", "keyword_hit", "semantic_similarity", "answer_overall"])
def test_built_in_metric_names_are_reserved(name: str) -> None:
    with pytest.raises(DomainError, match="criterion_name_taken"):
        draft_version(make_project(), spec(name=name), by=None)


def test_names_of_other_projects_and_imports_are_reserved() -> None:
    draft_version(make_project(), spec(), by=None)
    with pytest.raises(DomainError, match="criterion_name_taken"):
        draft_version(make_project(), spec(), by=None)
    version = draft_version(make_project(), spec(name="manner"), by=None)
    MetricDefinition.objects.create(
        name="manner", version=1, kind=MetricKind.IMPORTED, scale="levels 1..3", content_hash="0" * 64
    )
    with pytest.raises(DomainError, match="criterion_name_taken"):
        activate(version, by=None)


def test_audit_log_records_every_step_without_the_text() -> None:
    project = make_project()
    lead = make_user(Role.LEAD, project)
    version = in_force(project, by=lead)
    deactivate(version.criterion, by=lead)
    events = AuditEvent.objects.filter(object_type="evaluation.criterionversion", object_id=str(version.pk))
    verbs = [(event.verb, event.actor_id) for event in events.order_by("id")]
    assert verbs == [(f"criterion.{verb}", lead.pk) for verb in ("drafted", "activated", "deactivated")]
    assert not any("customer" in str(event.detail) for event in events)


@pytest.mark.parametrize("table", [CriterionVersion, CriterionEvent])
def test_versions_and_events_are_immutable(table: type[CriterionVersion]) -> None:
    in_force(make_project())
    for write in (lambda: table.objects.update(created_by=None), lambda: table.objects.all().delete()):
        with pytest.raises(DatabaseError), transaction.atomic():
            write()
