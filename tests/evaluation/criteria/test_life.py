"""A criterion's life: drafted, activated, edited into the next version, taken out of force; nothing is ever changed."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import MetricKind
from evaluation.core.roles import Role
from evaluation.criteria.services import activate, active_criteria, deactivate, draft, newest_event, rubric_for_metric
from evaluation.models import AuditEvent, CriterionEvent, CriterionVersion, MetricDefinition, RubricVersion
from tests.evaluation.criteria.written import ENGLISH, KOREAN, drafted, in_force, spec
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def test_a_draft_is_judged_by_nothing_until_it_is_activated() -> None:
    project = make_project()
    version = draft(project, spec(), by=None)
    assert (version.version, list(active_criteria(project.pk))) == (1, [])
    assert not MetricDefinition.objects.filter(name="tone").exists()
    assert not RubricVersion.objects.filter(family="criterion:tone").exists()


def test_activation_makes_a_metric_and_a_rubric_in_each_language() -> None:
    event = activate(draft(make_project(), spec(), by=None), by=None)
    assert event.metric is not None
    assert (event.metric.kind, event.metric.version, event.metric.scale) == (MetricKind.CUSTOM, 1, "levels 1..3")
    assert event.metric.title == {"en": "Tone", "ko": "말투"}
    assert (event.rubric("en").language, event.rubric("ko").language) == ("en", "ko")
    assert event.rubric("ko").version == event.rubric("en").version == 1


def test_one_language_alone_serves_both() -> None:
    event = activate(drafted(make_project(), en=None), by=None)
    assert event.rubric("en").language == "ko"


def test_an_edit_is_the_next_version_and_the_same_content_is_the_same_version() -> None:
    project = make_project()
    first = draft(project, spec(), by=None)
    edited = draft(project, spec(en={**ENGLISH, "instruction": "Other"}), by=None)
    assert (edited.version, draft(project, spec(), by=None).pk) == (2, first.pk)
    assert CriterionVersion.objects.count() == 2


def test_new_guidance_keeps_the_metric_and_new_anchors_make_the_next_one() -> None:
    project = make_project()
    first = activate(draft(project, spec(), by=None), by=None)
    second = activate(draft(project, spec(en={**ENGLISH, "instruction": "Other"}), by=None), by=None)
    harsher = {**KOREAN, "levels": [{"value": 1, "text": "아주 무례함"}, *KOREAN["levels"][1:]]}
    third = activate(draft(project, spec(ko=harsher), by=None), by=None)
    assert second.metric == first.metric
    assert (third.metric and third.metric.version, third.rubric("en").version) == (2, 3)
    assert [event.version.version for event in active_criteria(project.pk)] == [3]


def test_an_earlier_version_comes_back_with_the_rubrics_and_the_metric_it_had() -> None:
    project = make_project()
    version = draft(project, spec(), by=None)
    first = activate(version, by=None)
    activate(draft(project, spec(direction="lower"), by=None), by=None)
    again = activate(version, by=None)
    assert (again.metric, again.rubric_en, again.rubric_ko) == (first.metric, first.rubric_en, first.rubric_ko)
    assert again.metric is not None
    newest = rubric_for_metric(again.metric, "ko")
    assert newest == first.rubric_ko


def test_deactivation_takes_it_out_of_force_and_changes_nothing_else() -> None:
    project = make_project()
    version = in_force(project)
    deactivate(version.criterion, by=None)
    now = newest_event(version.criterion)
    assert (now and now.verb, list(active_criteria(project.pk))) == (CriterionEvent.Verb.DEACTIVATED, [])
    assert RubricVersion.objects.filter(family__startswith="criterion:").count() == 2
    with pytest.raises(DomainError, match="criterion_not_active"):
        deactivate(version.criterion, by=None)


def test_activating_what_is_in_force_is_refused() -> None:
    version = in_force(make_project())
    with pytest.raises(DomainError, match="criterion_active"):
        activate(version, by=None)


@pytest.mark.parametrize("name", ["correctness", "keyword_hit", "semantic_similarity", "answer_overall"])
def test_the_names_of_the_products_metrics_are_taken(name: str) -> None:
    with pytest.raises(DomainError, match="criterion_name_taken"):
        draft(make_project(), spec(name=name), by=None)


def test_the_name_of_another_project_or_of_an_import_is_taken_too() -> None:
    draft(make_project(), spec(), by=None)
    with pytest.raises(DomainError, match="criterion_name_taken"):
        draft(make_project(), spec(), by=None)
    version = draft(make_project(), spec(name="manner"), by=None)
    MetricDefinition.objects.create(
        name="manner", version=1, kind=MetricKind.IMPORTED, scale="levels 1..3", content_hash="0" * 64
    )
    with pytest.raises(DomainError, match="criterion_name_taken"):
        activate(version, by=None)


def test_every_step_stands_in_the_audit_log_without_a_word_of_the_text() -> None:
    project = make_project()
    lead = make_user(Role.LEAD, project)
    version = in_force(project, by=lead)
    deactivate(version.criterion, by=lead)
    events = AuditEvent.objects.filter(object_type="evaluation.criterionversion", object_id=str(version.pk))
    verbs = [(event.verb, event.actor_id) for event in events.order_by("id")]
    assert verbs == [(f"criterion.{verb}", lead.pk) for verb in ("drafted", "activated", "deactivated")]
    assert not any("customer" in str(event.detail) for event in events)


@pytest.mark.parametrize("table", [CriterionVersion, CriterionEvent])
def test_versions_and_events_are_never_changed_or_deleted(table: type[CriterionVersion]) -> None:
    in_force(make_project())
    for change in (lambda: table.objects.update(created_by=None), lambda: table.objects.all().delete()):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()
