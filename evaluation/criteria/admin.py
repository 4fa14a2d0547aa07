"""Custom criteria: an evaluator drafts, a lead activates. A version never changes; an edit is the next one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import admin, messages
from django.db.models import Exists, F, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from evaluation.accounts import access
from evaluation.accounts.access import person
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.criteria.forms import CriterionForm, filled
from evaluation.criteria.pages import STATES, Choices, CriterionPage, preview_of, state_of
from evaluation.criteria.services import (
    activate,
    deactivate,
    draft,
    draft_rubric,
    newest_events,
    preview,
    sample_answers,
    standing,
    try_out,
)
from evaluation.judges.admin import VersionAdmin
from evaluation.judges.shipping import baseline_judge
from evaluation.messages.sentences import explain_refusal
from evaluation.models import AnswerSet, CriterionEvent, CriterionVersion, JudgeVersion

MOST_OFFERED = 20  # answer sets and judges to choose from, the newest first
OF_PROJECT = "criterion__project_id"


@admin.register(CriterionVersion)
class CriterionVersionAdmin(VersionAdmin):
    """Criteria in all their versions."""

    path = OF_PROJECT
    form = CriterionForm
    sections = (
        (None, {"fields": ("project", "name", ("title_ko", "title_en"), ("form", "direction"))}),
        (_("What the judge sees"), {"fields": (("sees", "needs"),)}),
        (_("Where it applies"), {"fields": ("categories", "offline"), "classes": ("collapse",)}),
    )
    list_display = ("version_name", "state", "project", "created_at", "created_by")
    list_filter = ("criterion__project",)
    list_select_related = ("criterion__project", "created_by")
    search_fields = ("criterion__name",)
    ordering = ("criterion__name", "-version")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The texts in the reader's language stand open, those in the other one, which is not needed, folded."""
        first, *rest = super().get_fieldsets(request, obj)
        if obj:
            return (first, *rest)
        texts: list[tuple[Any, dict[str, Any]]] = [
            (title, {"fields": [f"{name}_{code}" for name in ("question", "instruction")]})
            for code, title in (("ko", _("In Korean")), ("en", _("In English")))
        ]
        if not (get_language() or "en").startswith("ko"):
            texts.reverse()
        own, (title, other) = texts
        other |= {
            "classes": ("collapse",),
            "description": _("One language is enough: readers and judges of this one then get the other."),
        }
        return (first, own, (_("Levels"), {"fields": ["levels"]}), (title, other), *rest)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The versions of one's projects with how they stand."""
        newest = newest_events().filter(criterion=OuterRef("criterion"))
        rows: QuerySet[Any] = super().get_queryset(request)
        standing_so: QuerySet[Any] = rows.annotate(
            newest_version=Subquery(newest.values("version")[:1]),
            newest_verb=Subquery(newest.values("verb")[:1]),
            ever=Exists(CriterionEvent.objects.filter(version=OuterRef("pk"))),
        )
        return standing_so

    @admin.display(description=_("criterion"), ordering=F("criterion__name"))
    def version_name(self, row: CriterionVersion) -> str:
        """Name and version."""
        return str(row)

    @admin.display(description=_("state"))
    def state(self, row: Any) -> str:
        """How the version stands."""
        if row.newest_version == row.pk:
            return str(STATES["active" if row.newest_verb == CriterionEvent.Verb.ACTIVATED else "deactivated"])
        return str(STATES["earlier" if row.ever else "draft"])

    @admin.display(description=_("project"))
    def project(self, row: CriterionVersion) -> str:
        """Where it belongs."""
        return str(row.criterion.project)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """With the project filled in where there is one only."""
        form = super().get_form(request, obj, change, **kwargs)
        if field := form.base_fields.get("project"):
            field.initial = field.queryset.first() if field.queryset.count() == 1 else None
        return form

    def make(self, request: HttpRequest, form: Any) -> CriterionVersion:
        """The version of the form's values; a name that is taken was refused before."""
        return draft(form.cleaned_data["project"], form.spec, by=person(request))

    def values_of(self, row: CriterionVersion) -> dict[str, Any]:
        """Its project and what it says."""
        return {"project": row.criterion.project_id, **filled(row.read())}

    def get_urls(self) -> list[URLPattern]:
        """The actions of a version beside Django's own addresses."""
        wrapped = self.admin_site.admin_view
        own = [
            path("<int:pk>/activate/", wrapped(require_POST(self.activate_view)), name="criterion-activate"),
            path("<int:pk>/deactivate/", wrapped(require_POST(self.deactivate_view)), name="criterion-deactivate"),
            path("<int:pk>/try/", wrapped(require_POST(self.try_view)), name="criterion-try"),
        ]
        return [*own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The version's own page."""
        row = self.get_object(request, object_id)
        if row is None:
            gone: HttpResponse = super().change_view(request, object_id, form_url, extra_context)
            return gone  # says so, and goes to the index
        return self._page(request, row)

    def activate_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Put the version in force."""
        row = access.fetch(CriterionVersion.objects.all(), request.user, Action.ACTIVATE, pk, path=OF_PROJECT)
        with _refusals(request):
            activate(row, by=person(request))
            messages.success(request, gettext("%(version)s is in force now.") % {"version": row})
        return _back_to(row)

    def deactivate_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Take the criterion out of force."""
        row = access.fetch(CriterionVersion.objects.all(), request.user, Action.ACTIVATE, pk, path=OF_PROJECT)
        with _refusals(request):
            deactivate(row.criterion, by=person(request))
            messages.success(request, gettext("%(name)s is out of force. Its scores stay.") % {"name": row.criterion})
        return _back_to(row)

    def try_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The prompt for an answer, or a judge's word on a few; neither keeps a score."""
        row = access.fetch(CriterionVersion.objects.all(), request.user, Action.EVALUATE, pk, path=OF_PROJECT)
        answers, judge = _chosen(row, request.POST)
        if answers is None:
            messages.error(request, gettext("Choose an answer set."))
            return _back_to(row)
        if request.POST.get("do") == "prompt":
            found = sample_answers(row, answers, 1)
            rubric = draft_rubric(row, judge.language)
            shown = preview_of(found[0], preview(rubric, found[0], judge)) if found else None
            return self._page(request, row, preview=shown)
        with _refusals(request):
            return self._page(request, row, trial=try_out(row, judge, sample_answers(row, answers), by=person(request)))
        return _back_to(row)

    def _page(self, request: HttpRequest, row: CriterionVersion, **tried: Any) -> HttpResponse:
        """``tried``: the ``preview`` or the ``trial``."""
        project = row.criterion.project_id
        page = CriterionPage(
            row,
            state_of(row.pk, standing(row.criterion), row.events.exists()),
            list(row.criterion.versions.order_by("-version")),
            _choices(row, request.POST),
            leads=access.may(request.user, project, Action.ACTIVATE),
            may_draft=access.may(request.user, project, Action.EVALUATE),
            **tried,
        )
        context = {**self.admin_site.each_context(request), "page": page, "opts": self.opts, "title": str(row)}
        return render(request, "admin/criterion.html", context)


@contextmanager
def _refusals(request: HttpRequest) -> Iterator[None]:
    """Says why something was refused."""
    try:
        yield
    except Refused as refused:
        messages.error(request, explain_refusal(refused))


def _chosen(row: CriterionVersion, asked: Any) -> tuple[AnswerSet | None, JudgeVersion]:
    """The answer set and the judge that are asked for; the offline baseline where no judge is."""
    project = row.criterion.project
    answers = AnswerSet.objects.filter(project=project, pk=whole_number(asked.get("answers", ""), 18) or 0).first()
    judges = JudgeVersion.objects.filter(project=project).select_related("endpoint")
    judge = judges.filter(pk=whole_number(asked.get("judge", ""), 18) or 0).first()
    return answers, judge or baseline_judge(project, "en")


def _choices(row: CriterionVersion, asked: Any) -> Choices:
    project = row.criterion.project_id
    sets = AnswerSet.objects.filter(project=project).select_related("question_set", "system_version__system")
    judges = JudgeVersion.objects.filter(project=project).select_related("endpoint")
    return Choices(
        list(sets.order_by("-pk")[:MOST_OFFERED]),
        list(judges.order_by("-pk")[:MOST_OFFERED]),
        whole_number(asked.get("answers", ""), 18) or 0,
        whole_number(asked.get("judge", ""), 18) or 0,
    )


def _back_to(row: CriterionVersion) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:evaluation_criterionversion_change", args=[row.pk]))
