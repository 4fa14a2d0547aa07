"""People, roles, tokens, projects and the audit log: for administrators alone.

An administrator of a project who is not the site's (a superuser) manages people of that project and can neither make
anybody a superuser nor touch one: that would be a way to every other project.
"""

from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from evaluation.accounts import access, audit
from evaluation.accounts.logging_in import LONGEST_TOKEN, new_token, password_link
from evaluation.accounts.role_admin import ReadOnlyAdmin, RoleAdmin
from evaluation.core.roles import Action
from evaluation.extensions import second_factor
from evaluation.judges.shipping import BASELINE, judge_names, profile_names
from evaluation.messages.sentences import explain_reason
from evaluation.models import ApiToken, AuditEvent, Project, RoleGrant, User


class AdministratorsOnly(RoleAdmin):
    """A table for administrators."""

    view = add = change = Action.ADMINISTER


@admin.register(User)
class PersonAdmin(AdministratorsOnly):
    """People. Groups and single permissions do not exist here: rights come from roles. Passwords neither: each person
    chooses the own one, by a link that an administrator hands on."""

    path = ""
    list_display = ("username", "first_name", "last_name", "email", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("username", "first_name", "last_name", "email")
    ordering = ("username",)
    change_form_template = "admin/person.html"
    fieldsets = (
        (None, {"fields": ("username",)}),
        (_("Person"), {"fields": ("first_name", "last_name", "email", "language", "time_zone")}),
        (_("Standing"), {"fields": ("is_active", "is_service", "is_superuser", "last_login", "date_joined")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """For the administrator of a project: the people of its projects, and who has no role yet."""
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        mine = access.projects_with(request.user, Action.ADMINISTER).values("pk")
        return rows.filter(Q(grants__project__in=mine) | Q(grants__isnull=True), is_superuser=False).distinct()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Only a superuser makes superusers."""
        fixed = ("last_login", "date_joined")
        return fixed if request.user.is_superuser else (*fixed, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody below a superuser changes a person who has a part in other projects: the password is one for all."""
        if not super().has_change_permission(request, obj):
            return False
        if obj is None or request.user.is_superuser:
            return True
        mine = access.projects_with(request.user, Action.ADMINISTER).values("pk")
        elsewhere = RoleGrant.objects.filter(user_id=obj.pk).exclude(project__in=mine).exists()
        return not (elsewhere or obj.is_superuser)  # type: ignore[attr-defined]

    def get_urls(self) -> list[URLPattern]:
        """The making of a link and the reset of the second factor beside Django's own addresses."""
        views = {"link": self.link_view, "second-factor": self.reset_view}
        own = [
            path(f"<int:pk>/{name}/", self.admin_site.admin_view(require_POST(view)), name=f"person-{name}")
            for name, view in views.items()
        ]
        return [*own, *super().get_urls()]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """A new person has no password until they choose one."""
        if not change:
            obj.set_unusable_password()
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """The invitation of a new person; a service user needs none."""
        if obj.is_service:
            return super().response_add(request, obj, post_url_continue)
        return self._link(request, obj)

    def link_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """A link by which the person chooses a new password."""
        return self._link(request, self._changeable(request, pk))

    def reset_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Take the second factor of somebody away who lost it."""
        person, factor = self._changeable(request, pk), second_factor()
        if factor is None or not factor.has(person):
            raise Http404
        factor.reset(person, access.person(request))
        messages.success(request, gettext("The second factor is reset."))
        return redirect("admin:evaluation_user_change", person.pk)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **told: Any
    ) -> HttpResponse:
        """With the button of the reset where the person has a second factor."""
        factor, person = second_factor(), told.get("obj")
        context["second_factor"] = bool(factor and person and factor.has(person))
        return super().render_change_form(request, context, *args, **told)

    def _changeable(self, request: HttpRequest, pk: int) -> User:
        person: User = get_object_or_404(self.get_queryset(request), pk=pk)
        if person.is_service or not person.is_active or not self.has_change_permission(request, person):
            raise PermissionDenied
        return person

    def _link(self, request: HttpRequest, person: User) -> HttpResponse:
        self.note(request, "password.link_made", person)
        address = request.build_absolute_uri(password_link(person))
        context = {"person": person, "link": address, "hours": settings.PASSWORD_RESET_TIMEOUT // 3600}
        return render(request, "admin/link_shown_once.html", self.admin_site.each_context(request) | context)


@admin.register(RoleGrant)
class RoleGrantAdmin(AdministratorsOnly):
    """Roles of people in projects. A role is taken away by removing the grant."""

    list_display = ("user", "project", "role", "created_at")
    list_filter = ("role", "project")
    search_fields = ("user__username",)
    autocomplete_fields = ("user",)
    list_select_related = ("user", "project")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Taking a role away is the one deletion of the back office."""
        return self._may(request, Action.ADMINISTER, obj)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """A grant is given or taken away, not changed."""
        return False

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Take the role away, and say so in the audit log."""
        self.note(request, "role.taken", obj, user=obj.user_id, role=obj.role)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """The same for several."""
        for grant in queryset:
            self.delete_model(request, grant)


class TokenForm(forms.ModelForm):
    """A new token: whose, where, what for, until when."""

    class Meta:
        model = ApiToken
        fields = ("name", "user", "project", "scope", "expires_at")
        help_texts: ClassVar = {"user": _("Yourself or a service user: nobody works in another person's name.")}

    def clean_expires_at(self) -> Any:
        """In the future, and at most a year away."""
        ends = self.cleaned_data["expires_at"]
        if not timezone.now() < ends <= timezone.now() + LONGEST_TOKEN:
            raise forms.ValidationError(_("A token ends within a year from now."))
        return ends


@admin.register(ApiToken)
class ApiTokenAdmin(AdministratorsOnly):
    """REST tokens. Afterwards only their end can be set: "revoked" stops one at once."""

    list_display = ("name", "user", "project", "scope", "expires_at", "revoked_at", "created_at")
    list_filter = ("scope", "project")
    list_select_related = ("user", "project")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form of a new token, or its end alone."""
        return super().get_form(request, obj, change, **({"fields": ("revoked_at",)} if obj else {"form": TokenForm}))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What is shown: never the hash."""
        return ("name", "user", "project", "scope", "expires_at", *(("revoked_at",) if obj else ()))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Everything but the end."""
        return ("name", "user", "project", "scope", "expires_at") if obj else ()

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        """A token is for who makes it, or for a service user of the projects one administers."""
        if db_field.name == "user":
            mine = access.projects_with(request.user, Action.ADMINISTER).values("pk")
            services = Q(is_service=True, grants__project__in=mine)
            kwargs["queryset"] = User.objects.filter(Q(pk=request.user.pk) | services, is_active=True).distinct()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Ninety days, reading only, for oneself."""
        return {"user": request.user.pk, "scope": "read", "expires_at": timezone.now() + timedelta(days=90)}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """A new token gets its text, which is kept nowhere."""
        if not change:
            obj.shown_once, obj.sha256 = new_token()
            obj.made_by = request.user
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """The page that shows the token, this once."""
        context = {**self.admin_site.each_context(request), "token": obj, "text": obj.shown_once}
        return render(request, "admin/token_shown_once.html", context)


@admin.register(Project)
class ProjectAdmin(AdministratorsOnly):
    """Projects; only a superuser opens one."""

    path = "pk"
    list_display = ("name", "default_judge", "default_profile", "created_at")

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Choose the default judge and profile among those of the project."""
        if db_field.name not in {"default_judge", "default_profile"}:
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        match = request.resolver_match
        found = Project.objects.filter(pk=match.kwargs.get("object_id") or 0).first() if match else None
        if db_field.name == "default_profile":
            names = profile_names(found)
        else:
            names = [*judge_names(found), BASELINE] if found else []
        return forms.ChoiceField(
            label=db_field.verbose_name,
            help_text=db_field.help_text,
            required=False,
            choices=[("", "–"), *((name, name) for name in names)],
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers only: a new project belongs to nobody's project."""
        return bool(request.user.is_superuser)


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """The audit log of the whole site: for superusers, and administrators of any project."""

    path = ""
    view = Action.ADMINISTER
    list_display = ("created_at", "actor", "verb", "object_type", "object_id")
    list_filter = ("verb", "object_type")
    search_fields = ("object_id",)
    list_select_related = ("actor",)
    ordering = ("-id",)
    change_list_template = "admin/audit_log.html"

    def get_urls(self) -> list[URLPattern]:
        """The check of the log beside Django's own addresses."""
        own = path("verify/", self.admin_site.admin_view(require_POST(self.verify_view)), name="audit-verify")
        return [own, *super().get_urls()]

    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """What ``verify_audit`` finds, and the head to keep elsewhere."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = [(explain_reason(one.code), one.about) for one in audit.flaws()]
        page = {"title": gettext("Audit log"), "flaws": found, "head": audit.head(), "waiting": audit.unsealed_rows()}
        return render(request, "admin/audit_verified.html", self.admin_site.each_context(request) | page)
