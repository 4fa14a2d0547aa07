"""First page of the back office: setup steps, runs that need attention, and common tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from evaluation.accounts import access
from evaluation.accounts.access import UserOrAnonymous
from evaluation.core.roles import Action, Role
from evaluation.models import AnswerSet, Endpoint, JudgeVersion, Project, QuestionSet, RoleGrant, Run
from review.models import Rating

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Link:
    """A step or task with its URL. Without a URL it belongs to another role, which ``note`` names."""

    title: Text
    address: str = ""
    note: Text = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class BackOfficePage:
    """The setup ``steps`` up to the first review, paused or incomplete runs (``attention``), and ``tasks`` of the
    user's roles."""

    steps: tuple[Link, ...]
    attention: tuple[Link, ...]
    tasks: tuple[Link, ...]

    @property
    def open_steps(self) -> int:
        """Number of steps that are not done."""
        return sum(not step.done for step in self.steps)

    @property
    def progress(self) -> str:
        """Setup progress as a sentence."""
        if not self.open_steps:
            return gettext("Everything is set up.")
        text = ngettext("%(count)d step left.", "%(count)d steps left.", self.open_steps)
        return text % {"count": self.open_steps}


def back_office_page(user: UserOrAnonymous) -> BackOfficePage:
    """Build the page for a user, over the projects they work in. Up to 16 queries."""
    is_superuser = bool(user.is_superuser)
    actions = {action for action in Action if is_superuser or access.projects_with(user, action).exists()}
    projects = access.projects_with(user, Action.EVALUATE)
    return BackOfficePage(tuple(_steps(projects, user, actions)), tuple(_attention(projects)), tuple(_tasks(actions)))


def _steps(projects: QuerySet[Project], user: UserOrAnonymous, actions: set[Action]) -> Iterator[Link]:
    may_administer, may_evaluate, may_lead = (
        action in actions for action in (Action.ADMINISTER, Action.EVALUATE, Action.MANAGE_REVIEW)
    )
    admin_note, lead_note = _("Ask an administrator."), _("Ask a lead.")
    newest = Run.objects.filter(project__in=projects, state__in=Run.ENDED).order_by("-pk").first()
    may_create_project = bool(user.is_superuser)
    reviewers = RoleGrant.objects.filter(project__in=projects, role=Role.REVIEWER)
    # The baseline judge has no endpoint and does not count.
    judges = JudgeVersion.objects.filter(project__in=projects, endpoint__isnull=False)
    reviewer_hint = _("Reviewers need the reviewer role in the project. Superusers need it too.")

    def step(title: Text, table: QuerySet[Any] | bool, url: str, allowed: bool, note: Text, hint: Text = "") -> Link:
        done = table if isinstance(table, bool) else table.exists()
        return Link(title, url if allowed else "", hint if allowed else note, done)

    yield step(_("Project"), projects, reverse("admin:evaluation_project_add"), may_create_project, admin_note)
    grant_url = reverse("admin:evaluation_rolegrant_add")
    yield step(_("People and roles"), reviewers, grant_url, may_administer, admin_note, reviewer_hint)
    endpoint_url = reverse("admin:evaluation_endpoint_add")
    endpoint_hint = _("Without one, the built-in baseline judges.")
    yield step(_("Endpoint"), Endpoint.objects.all(), endpoint_url, may_administer, admin_note, endpoint_hint)
    judge_url = reverse("admin:evaluation_judgeversion_add")
    yield step(_("Judge"), judges, judge_url, may_evaluate, admin_note, _("A model at that endpoint."))
    has_profile = projects.exclude(default_profile="").exists()
    project = access.projects_with(user, Action.ADMINISTER).filter(default_profile="").order_by("pk").first()
    project_url = reverse("admin:evaluation_project_change", args=[project.pk]) if project else ""
    profile_hint = _("Combines metrics into one score. Until you choose one, runs use “standard”.")
    yield step(_("Default profile"), has_profile, project_url, may_administer, admin_note, profile_hint)
    question_sets = QuestionSet.objects.filter(project__in=projects)
    yield step(_("Questions"), question_sets, reverse("question-set-upload"), may_evaluate, lead_note)
    answers = AnswerSet.objects.filter(project__in=projects)
    evaluation_url = reverse("evaluation-new")
    yield step(_("System answers"), answers, evaluation_url, may_evaluate, lead_note)
    yield step(_("First run"), newest is not None, evaluation_url, may_evaluate, lead_note)
    queue_url = f"{reverse('queue-new')}?run={newest.pk}" if newest else ""
    ratings = Rating.objects.filter(answer__answer_set__project__in=projects)
    run_hint = _("Available once a run has ended.")
    yield step(_("First review"), ratings, queue_url, may_lead, lead_note, "" if queue_url else run_hint)


def _attention(projects: QuerySet[Project]) -> Iterator[Link]:
    runs = Run.objects.filter(project__in=projects)
    run_list_url = reverse("run-list")
    if count := runs.filter(state=Run.State.INCOMPLETE).count():
        text = ngettext("%(count)d run is incomplete", "%(count)d runs are incomplete", count)
        yield Link(text % {"count": count}, f"{run_list_url}?state={Run.State.INCOMPLETE}")
    if count := runs.filter(state=Run.State.PAUSED).count():
        text = ngettext("%(count)d run is paused", "%(count)d runs are paused", count)
        yield Link(text % {"count": count}, f"{run_list_url}?state={Run.State.PAUSED}")


#: Common tasks: the action that allows one, its title and its URL name.
_TASKS: tuple[tuple[Action, Text, str], ...] = (
    (Action.ADMINISTER, _("Invite a person"), "admin:evaluation_user_add"),
    (Action.ADMINISTER, _("Assign a role"), "admin:evaluation_rolegrant_add"),
    (Action.ADMINISTER, _("Add an endpoint"), "admin:evaluation_endpoint_add"),
    (Action.ADMINISTER, _("Create an API token"), "admin:evaluation_apitoken_add"),
    (Action.EVALUATE, _("Start a new evaluation"), "evaluation-new"),
    (Action.EVALUATE, _("Upload questions"), "question-set-upload"),
    (Action.EVALUATE, _("Add a judge"), "admin:evaluation_judgeversion_add"),
    (Action.EVALUATE, _("Connect a system"), "admin:evaluation_systemversion_add"),
    (Action.EVALUATE, _("Write a custom criterion"), "admin:evaluation_criterionversion_add"),
    (Action.MANAGE_REVIEW, _("View review progress"), "queue-list"),
)


def _tasks(actions: set[Action]) -> Iterator[Link]:
    return (Link(title, reverse(url_name)) for action, title, url_name in _TASKS if action in actions)


#: Groups of tables in the back office: anchor, title, and model names.
GROUPS: tuple[tuple[str, Text, tuple[str, ...]], ...] = (
    ("people", _("People and permissions"), ("User", "RoleGrant", "Project", "ApiToken", "AuditEvent", "FailedLogin")),
    (
        "questions",
        _("Questions and systems"),
        ("QuestionSet", "Question", "ImportBatch", "Corpus", "Document", "System", "SystemVersion"),
    ),
    ("judges", _("Judges and criteria"), ("Endpoint", "JudgeVersion", "RubricVersion", "CriterionVersion")),
    ("scores", _("Profiles and metrics"), ("ProfileVersion", "MetricDefinition")),
    ("runs", _("Answers and runs"), ("AnswerSet", "Run", "RunEvent")),
    ("review", _("Review"), ("ReviewQueue", "Draw", "Override")),
)
