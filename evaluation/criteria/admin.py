"""Admin of custom criteria. An evaluator drafts, a lead activates. Versions are immutable; an edit creates the next
one."""

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

from evaluation.accounts import access
from evaluation.accounts.access import acts_only, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.criteria.forms import CriterionForm, form_values
from evaluation.criteria.pages import STATES, CriterionPage, TrialChoices, build_preview, version_state
from evaluation.criteria.services import (
    activate,
    deactivate,
    draft_rubric,
    draft_version,
    newest_event,
    newest_events,
    preview_call,
    sample_answers,
    try_out,
)
from evaluation.judges.admin import VersionAdmin
from evaluation.judges.shipped import baseline_judge
from evaluation.messages.explanations import explain_refusal
from evaluation.models import AnswerSet, CriterionEvent, CriterionVersion, JudgeVersion

# Newest answer sets and judges to choose from.
MAX_OFFERED = 20
PROJECT_PATH = "criterion__project_id"


@admin.register(CriterionVersion)
class CriterionVersionAdmin(VersionAdmin):
    path = PROJECT_PATH
    form = CriterionForm
    sections = (
        (None, {"fields": ("project", "name", ("title_ko", "title_en"), ("form", "direction"))}),
        (_("Judge input"), {"fields": (("sees", "needs"),)}),
        (_("Scope"), {"fields": ("categories", "offline"), "classes": ("collapse",)}),
    )
    list_display = ("version_name", "state", "project", "created_at", "created_by")
    list_filter = ("criterion__project",)
    list_select_related = ("criterion__project", "created_by")
    search_fields = ("criterion__name",)
    ordering = ("criterion__name", "-version")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Open the texts in the reader's language; collapse the other language, which is optional."""
        main_section, *other_sections = super().get_fieldsets(request, obj)
        if obj:
            return (main_section, *other_sections)
        texts: list[tuple[Any, dict[str, Any]]] = [
            (title, {"fields": [f"{name}_{code}" for name in ("question", "instruction")]})
            for code, title in (("ko", _("In Korean")), ("en", _("In English")))
        ]
        if not (get_language() or "en").startswith("ko"):
            texts.reverse()
        reader_section, (title, folded_section) = texts
        folded_section |= {
            "classes": ("collapse",),
            "description": _("One language is enough. Readers and judges of this one then get the other."),
        }
        return (
            main_section,
            reader_section,
            (_("Levels"), {"fields": ["levels"]}),
            (title, folded_section),
            *other_sections,
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Versions of the user's projects, annotated with their newest event."""
        newest = newest_events().filter(criterion=OuterRef("criterion"))
        rows: QuerySet[Any] = super().get_queryset(request)
        annotated: QuerySet[Any] = rows.annotate(
            newest_version=Subquery(newest.values("version")[:1]),
            newest_verb=Subquery(newest.values("verb")[:1]),
            ever=Exists(CriterionEvent.objects.filter(version=OuterRef("pk"))),
        )
        return annotated

    @admin.display(description=_("criterion"), ordering=F("criterion__name"))
    def version_name(self, row: CriterionVersion) -> str:
        return str(row)

    @admin.display(description=_("state"))
    def state(self, row: Any) -> str:
        if row.newest_version == row.pk:
            return str(STATES["active" if row.newest_verb == CriterionEvent.Verb.ACTIVATED else "deactivated"])
        return str(STATES["earlier" if row.ever else "draft"])

    @admin.display(description=_("project"))
    def project(self, row: CriterionVersion) -> str:
        return str(row.criterion.project)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Preselect the project if there is only one."""
        form = super().get_form(request, obj, change, **kwargs)
        if field := form.base_fields.get("project"):
            field.initial = field.queryset.first() if field.queryset.count() == 1 else None
        return form

    def build_version(self, request: HttpRequest, form: Any) -> CriterionVersion:
        return draft_version(form.cleaned_data["project"], form.spec, by=signed_in_user(request))

    def initial_values(self, row: CriterionVersion) -> dict[str, Any]:
        return {"project": row.criterion.project_id, **form_values(row.read())}

    def get_urls(self) -> list[URLPattern]:
        wrapped = self.admin_site.admin_view
        action_paths = [
            path("<int:pk>/activate/", wrapped(acts_only(self.activate_view)), name="criterion-activate"),
            path("<int:pk>/deactivate/", wrapped(acts_only(self.deactivate_view)), name="criterion-deactivate"),
            path("<int:pk>/try/", wrapped(acts_only(self.try_view)), name="criterion-try"),
        ]
        return [*action_paths, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None:
            response: HttpResponse = super().change_view(request, object_id, form_url, extra_context)
            # Django's response explains the error and redirects to the index.
            return response
        return self._page(request, row)

    def activate_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        row = access.fetch(CriterionVersion.objects.all(), request.user, Action.ACTIVATE, pk, path=PROJECT_PATH)
        with _refusals(request):
            activate(row, by=signed_in_user(request))
            messages.success(request, gettext("%(version)s is now in force.") % {"version": row})
        return _redirect_to(row)

    def deactivate_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        row = access.fetch(CriterionVersion.objects.all(), request.user, Action.ACTIVATE, pk, path=PROJECT_PATH)
        with _refusals(request):
            deactivate(row.criterion, by=signed_in_user(request))
            messages.success(
                request, gettext("%(name)s was deactivated. Its scores are kept.") % {"name": row.criterion}
            )
        return _redirect_to(row)

    def try_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the prompt for an answer, or judge a few answers; no score is stored."""
        row = access.fetch(CriterionVersion.objects.all(), request.user, Action.EVALUATE, pk, path=PROJECT_PATH)
        answers, judge = _chosen(row, request.POST)
        if answers is None:
            messages.error(request, gettext("Choose an answer set."))
            return _redirect_to(row)
        if request.POST.get("do") == "prompt":
            sample = sample_answers(row, answers, 1)
            rubric = draft_rubric(row, judge.language)
            page_preview = build_preview(sample[0], preview_call(rubric, sample[0], judge)) if sample else None
            return self._page(request, row, preview=page_preview)
        with _refusals(request):
            return self._page(
                request, row, trial=try_out(row, judge, sample_answers(row, answers), by=signed_in_user(request))
            )
        return _redirect_to(row)

    def _page(self, request: HttpRequest, row: CriterionVersion, **extra: Any) -> HttpResponse:
        """Render the page; ``extra`` is ``preview`` or ``trial``."""
        project = row.criterion.project_id
        page = CriterionPage(
            row,
            version_state(row.pk, newest_event(row.criterion), row.events.exists()),
            list(row.criterion.versions.order_by("-version")),
            _choices(row, request.POST),
            may_activate=access.may(request.user, project, Action.ACTIVATE),
            may_draft=access.may(request.user, project, Action.EVALUATE),
            **extra,
        )
        context = {**self.admin_site.each_context(request), "page": page, "opts": self.opts, "title": str(row)}
        return render(request, "admin/criterion.html", context)


@contextmanager
def _refusals(request: HttpRequest) -> Iterator[None]:
    """Show refusals as error messages."""
    try:
        yield
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))


def _chosen(row: CriterionVersion, data: Any) -> tuple[AnswerSet | None, JudgeVersion]:
    """Chosen answer set and judge; the offline baseline by default."""
    project = row.criterion.project
    answers = AnswerSet.objects.filter(project=project, pk=parse_int(data.get("answers", ""), 18) or 0).first()
    judges = JudgeVersion.objects.filter(project=project).select_related("endpoint")
    judge = judges.filter(pk=parse_int(data.get("judge", ""), 18) or 0).first()
    return answers, judge or baseline_judge(project, "en")


def _choices(row: CriterionVersion, data: Any) -> TrialChoices:
    project = row.criterion.project_id
    sets = AnswerSet.objects.filter(project=project).select_related("question_set", "system_version__system")
    judges = JudgeVersion.objects.filter(project=project).select_related("endpoint")
    return TrialChoices(
        list(sets.order_by("-pk")[:MAX_OFFERED]),
        list(judges.order_by("-pk")[:MAX_OFFERED]),
        parse_int(data.get("answers", ""), 18) or 0,
        parse_int(data.get("judge", ""), 18) or 0,
    )


def _redirect_to(row: CriterionVersion) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:evaluation_criterionversion_change", args=[row.pk]))
