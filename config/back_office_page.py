"""The first page of the back office: what is to be set up, what needs somebody, and what people come here to do."""

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
from evaluation.accounts.access import Person
from evaluation.core.roles import Action, Role
from evaluation.models import AnswerSet, Endpoint, JudgeVersion, Project, QuestionSet, RoleGrant, Run
from review.models import Rating

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Link:
    """Something to do, and where; without an address it is for another role, which ``note`` names."""

    title: Text
    address: str = ""
    note: Text = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class BackOfficePage:
    """``steps`` from an empty site to the first review, done or not; ``attention``: what has stopped; ``tasks``: what
    the person's roles allow."""

    steps: tuple[Link, ...]
    attention: tuple[Link, ...]
    tasks: tuple[Link, ...]

    @property
    def left(self) -> int:
        """How many steps are not done."""
        return sum(not step.done for step in self.steps)

    @property
    def said(self) -> str:
        """How far the site is set up."""
        if not self.left:
            return gettext("Everything is set up.")
        said = ngettext("%(count)d step is left.", "%(count)d steps are left.", self.left)
        return said % {"count": self.left}


def back_office_page(user: Person) -> BackOfficePage:
    """The page for a person, about the projects they work in. Up to 16 queries."""
    everything = bool(user.is_superuser)
    may = {action for action in Action if everything or access.projects_with(user, action).exists()}
    projects = access.projects_with(user, Action.EVALUATE)
    return BackOfficePage(tuple(_steps(projects, user, may)), tuple(_attention(projects)), tuple(_tasks(may)))


def _steps(projects: QuerySet[Project], user: Person, may: set[Action]) -> Iterator[Link]:
    administers, evaluates, leads = (
        action in may for action in (Action.ADMINISTER, Action.EVALUATE, Action.MANAGE_REVIEW)
    )
    of_admins, of_leads = _("An administrator does this."), _("A lead does this.")
    newest = Run.objects.filter(project__in=projects, state__in=Run.ENDED).order_by("-pk").first()
    begins = bool(user.is_superuser)
    reviewers = RoleGrant.objects.filter(project__in=projects, role=Role.REVIEWER)
    judges = JudgeVersion.objects.filter(project__in=projects, endpoint__isnull=False)  # the baseline has none
    said = _("Whoever is to rate needs the role of a reviewer in the project; a superuser has none until it is given.")

    def step(title: Text, table: QuerySet[Any] | bool, to: str, allowed: bool, note: Text, hint: Text = "") -> Link:
        done = table if isinstance(table, bool) else table.exists()
        return Link(title, to if allowed else "", hint if allowed else note, done)

    yield step(_("A project"), projects, reverse("admin:evaluation_project_add"), begins, of_admins)
    people = reverse("admin:evaluation_rolegrant_add")
    yield step(_("People with roles"), reviewers, people, administers, of_admins, said)
    endpoint = reverse("admin:evaluation_endpoint_add")
    without = _("Without one the built-in baseline judges.")
    yield step(_("An endpoint"), Endpoint.objects.all(), endpoint, administers, of_admins, without)
    judge = reverse("admin:evaluation_judgeversion_add")
    yield step(_("A judge"), judges, judge, evaluates, of_admins, _("A model of that endpoint."))
    chosen = projects.exclude(default_profile="").exists()
    project = access.projects_with(user, Action.ADMINISTER).filter(default_profile="").order_by("pk").first()
    change = reverse("admin:evaluation_project_change", args=[project.pk]) if project else ""
    formula = _("It decides how metrics make one score. Without one: standard.")
    yield step(_("A default profile"), chosen, change, administers, of_admins, formula)
    asked = QuestionSet.objects.filter(project__in=projects)
    yield step(_("Questions"), asked, reverse("question-set-upload"), evaluates, of_leads)
    answers = AnswerSet.objects.filter(project__in=projects)
    new = reverse("evaluation-new")
    yield step(_("Answers of a system"), answers, new, evaluates, of_leads)
    yield step(_("The first run"), newest is not None, new, evaluates, of_leads)
    queue = f"{reverse('queue-new')}?run={newest.pk}" if newest else ""
    rated = Rating.objects.filter(answer__answer_set__project__in=projects)
    waits = _("Once a run has ended.")
    yield step(_("The first review"), rated, queue, leads, of_leads, "" if queue else waits)


def _attention(projects: QuerySet[Project]) -> Iterator[Link]:
    runs = Run.objects.filter(project__in=projects)
    address = reverse("run-list")
    if count := runs.filter(state=Run.State.INCOMPLETE).count():
        said = ngettext("%(count)d run is incomplete", "%(count)d runs are incomplete", count)
        yield Link(said % {"count": count}, f"{address}?state={Run.State.INCOMPLETE}")
    if count := runs.filter(state=Run.State.PAUSED).count():
        said = ngettext("%(count)d run is paused", "%(count)d runs are paused", count)
        yield Link(said % {"count": count}, f"{address}?state={Run.State.PAUSED}")


#: What people come for, by the action that allows it.
_TASKS: tuple[tuple[Action, Text, str], ...] = (
    (Action.ADMINISTER, _("Invite a person"), "admin:evaluation_user_add"),
    (Action.ADMINISTER, _("Give somebody a role"), "admin:evaluation_rolegrant_add"),
    (Action.ADMINISTER, _("Add an endpoint"), "admin:evaluation_endpoint_add"),
    (Action.ADMINISTER, _("Make an API token"), "admin:evaluation_apitoken_add"),
    (Action.EVALUATE, _("Start a new evaluation"), "evaluation-new"),
    (Action.EVALUATE, _("Upload questions"), "question-set-upload"),
    (Action.EVALUATE, _("Add a judge"), "admin:evaluation_judgeversion_add"),
    (Action.EVALUATE, _("Add a system that can be asked"), "admin:evaluation_systemversion_add"),
    (Action.EVALUATE, _("Write a criterion of your own"), "admin:evaluation_criterionversion_add"),
    (Action.MANAGE_REVIEW, _("See how reviews go"), "queue-list"),
)


def _tasks(may: set[Action]) -> Iterator[Link]:
    return (Link(title, reverse(to)) for action, title, to in _TASKS if action in may)


#: The tables as users name what is in them: group, and the tables by name of model.
GROUPS: tuple[tuple[str, Text, tuple[str, ...]], ...] = (
    ("people", _("People and rights"), ("User", "RoleGrant", "Project", "ApiToken", "AuditEvent")),
    (
        "questions",
        _("Questions and systems"),
        ("QuestionSet", "Question", "ImportBatch", "Corpus", "Document", "System", "SystemVersion"),
    ),
    ("judges", _("Judges and criteria"), ("Endpoint", "JudgeVersion", "RubricVersion", "CriterionVersion")),
    ("scores", _("Scores"), ("ProfileVersion", "MetricDefinition")),
    ("runs", _("Answers and runs"), ("AnswerSet", "Run", "RunEvent")),
    ("review", _("Review"), ("ReviewQueue", "Draw", "Override")),
)
