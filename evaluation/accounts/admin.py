"""Back office for people, roles, tokens, projects and the audit log; for administrators only.

An administrator of a project who is not a superuser manages the people of that project, but cannot create or change a
superuser: that would open every other project."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.accounts import access, audit
from evaluation.accounts.login import LOGGED_IN, MAX_TOKEN_LIFETIME, PASSWORD_ACCEPTED, new_token
from evaluation.accounts.password_links import NOTICE, links_by_others, make_link, report_new_address
from evaluation.accounts.role_admin import ReadOnlyAdmin, RoleAdmin
from evaluation.core.roles import Action, Role
from evaluation.extensions import second_factor
from evaluation.judges.shipped import BASELINE, judge_names, profile_names
from evaluation.messages.explanations import explain_reason
from evaluation.models import ApiToken, AuditEvent, FailedLogin, Project, RoleGrant, User
from evaluation.models.accounts import ROLE_CHOICES

ROLE_RIGHTS = {
    Role.VIEWER: _("sees runs, answers and reports"),
    Role.REVIEWER: _("rates answers without seeing scores first"),
    Role.EVALUATOR: _("imports questions and answers, starts runs"),
    Role.LEAD: _("also opens review queues, settles disputes, overrides scores and calibrates judges"),
    Role.ADMIN: _("also manages people, roles, tokens and judge endpoints"),
}


class AdministratorsOnly(RoleAdmin):
    """A table for administrators."""

    view_action = add_action = change_action = Action.ADMINISTER


@admin.register(User)
class PersonAdmin(AdministratorsOnly):
    """People. Rights come from roles, so there are no groups or single permissions.

    There is no password form: each person chooses a password by a link that an administrator passes on."""

    path = ""
    list_display = ("username", "first_name", "last_name", "email", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("username", "first_name", "last_name", "email")
    ordering = ("username",)
    change_form_template = "admin/person.html"
    fieldsets = (
        (None, {"fields": ("username",)}),
        (_("Person"), {"fields": ("first_name", "last_name", "email", "language", "time_zone")}),
        (_("Status"), {"fields": ("is_active", "is_service", "is_superuser", "last_login", "date_joined")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Show a project's administrator the people of its projects and those without a role."""
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        own_projects = access.projects_with(request.user, Action.ADMINISTER).values("pk")
        return rows.filter(Q(grants__project__in=own_projects) | Q(grants__isnull=True), is_superuser=False).distinct()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Let only superusers create superusers."""
        fixed = ("last_login", "date_joined")
        return fixed if request.user.is_superuser else (*fixed, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let only superusers change people who belong to other projects too, because the account is shared."""
        if not super().has_change_permission(request, obj):
            return False
        if obj is None or request.user.is_superuser:
            return True
        own_projects = access.projects_with(request.user, Action.ADMINISTER).values("pk")
        has_other_projects = RoleGrant.objects.filter(user_id=obj.pk).exclude(project__in=own_projects).exists()
        return not (has_other_projects or obj.is_superuser)  # type: ignore[attr-defined]

    def get_urls(self) -> list[URLPattern]:
        """Add the password link and the reset of the second factor."""
        views = {"link": self.link_view, "second-factor": self.reset_view}
        urls = [
            path(f"<int:pk>/{name}/", self.admin_site.admin_view(access.acts_only(view)), name=f"person-{name}")
            for name, view in views.items()
        ]
        return [*urls, *super().get_urls()]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Create people without a password; they choose one themselves. Tell the old address of a new one."""
        if not change:
            obj.set_unusable_password()
        super().save_model(request, obj, form, change)
        if change and "email" in form.changed_data and obj != request.user:
            report_new_address(obj, form.initial["email"], access.signed_in_user(request))

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Show the invitation link of a new person; a service user needs none."""
        if obj.is_service:
            return super().response_add(request, obj, post_url_continue)
        return self._render_link(request, obj)

    def link_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show a link for choosing a new password."""
        return self._render_link(request, self._get_changeable(request, pk))

    def reset_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Reset the second factor of a person who lost it."""
        person, factor = self._get_changeable(request, pk), second_factor()
        if factor is None or not factor.has(person):
            raise Http404
        factor.reset(person, access.signed_in_user(request))
        messages.success(request, gettext("Second factor reset."))
        return redirect("admin:evaluation_user_change", person.pk)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the reset button if the person has a second factor."""
        factor, person = second_factor(), kwargs.get("obj")
        context["second_factor"] = bool(factor and person and factor.has(person))
        return super().render_change_form(request, context, *args, **kwargs)

    def _get_changeable(self, request: HttpRequest, pk: int) -> User:
        person: User = get_object_or_404(self.get_queryset(request), pk=pk)
        if person.is_service or not person.is_active or not self.has_change_permission(request, person):
            raise PermissionDenied
        return person

    def _render_link(self, request: HttpRequest, person: User) -> HttpResponse:
        link = make_link(person, access.signed_in_user(request))
        url, hours = request.build_absolute_uri(link.path), settings.PASSWORD_RESET_TIMEOUT // 3600
        context = {"person": person, "link": url, "hours": hours, "is_mailed": link.is_mailed}
        return render(request, "admin/link_shown_once.html", self.admin_site.each_context(request) | context)


@admin.register(RoleGrant)
class RoleGrantAdmin(AdministratorsOnly):
    """Roles of people in projects. Deleting a grant revokes the role."""

    list_display = ("user", "project", "role", "created_at")
    list_filter = ("role", "project")
    search_fields = ("user__username",)
    autocomplete_fields = ("user",)
    list_select_related = ("user", "project")
    radio_fields: ClassVar = {"role": admin.VERTICAL}

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Explain each role beside its name."""
        field = super().formfield_for_choice_field(db_field, request, **kwargs)
        if field and db_field.name == "role":
            field.choices = [
                (role, format_lazy("{role}: {rights}", role=title, rights=ROLE_RIGHTS[Role(role)]))
                for role, title in ROLE_CHOICES
            ]
        return field

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Allow revoking a role, the only deletion in the back office."""
        return self._may(request, Action.ADMINISTER, obj)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Forbid changes: a role is granted or revoked."""
        return False

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Revoke the role and record it in the audit log."""
        self.record_event(request, "role.taken", obj, user=obj.user_id, role=obj.role)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Revoke each role, with its own entry in the audit log."""
        for grant in queryset:
            self.delete_model(request, grant)


class TokenForm(forms.ModelForm):
    """A new token: owner, project, scope and expiry."""

    class Meta:
        model = ApiToken
        fields = ("name", "user", "project", "scope", "expires_at")
        help_texts: ClassVar = {
            "user": _("Choose yourself or a service user. Nobody can work in another person's name.")
        }

    def clean_expires_at(self) -> Any:
        """Require a date in the future, at most a year away."""
        expires_at = self.cleaned_data["expires_at"]
        if not timezone.now() < expires_at <= timezone.now() + MAX_TOKEN_LIFETIME:
            raise forms.ValidationError(_("Tokens must expire within one year."))
        return expires_at


@admin.register(ApiToken)
class ApiTokenAdmin(AdministratorsOnly):
    """REST tokens. After creation only ``revoked_at`` can be set, which ends a token at once."""

    list_display = ("name", "user", "project", "scope", "expires_at", "revoked_at", "created_at")
    list_filter = ("scope", "project")
    list_select_related = ("user", "project")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return the form of a new token, or only the revocation of an existing one."""
        return super().get_form(request, obj, change, **({"fields": ("revoked_at",)} if obj else {"form": TokenForm}))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return the displayed fields; never the hash."""
        return ("name", "user", "project", "scope", "expires_at", *(("revoked_at",) if obj else ()))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return all fields but the revocation."""
        return ("name", "user", "project", "scope", "expires_at") if obj else ()

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        """Limit owners to the administrator and to service users of the projects they administer."""
        if db_field.name == "user":
            own_projects = access.projects_with(request.user, Action.ADMINISTER).values("pk")
            services = Q(is_service=True, grants__project__in=own_projects)
            kwargs["queryset"] = User.objects.filter(Q(pk=request.user.pk) | services, is_active=True).distinct()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Suggest a read-only token of ninety days for the administrator."""
        return {"user": request.user.pk, "scope": "read", "expires_at": timezone.now() + timedelta(days=90)}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Generate the text of a new token, which is not stored."""
        if not change:
            obj.shown_once, obj.sha256 = new_token()
            obj.made_by = request.user
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Show the token's text once."""
        context = {**self.admin_site.each_context(request), "token": obj, "text": obj.shown_once}
        return render(request, "admin/token_shown_once.html", context)


@admin.register(Project)
class ProjectAdmin(AdministratorsOnly):
    """Projects; only superusers create one."""

    path = "pk"
    list_display = ("name", "default_judge", "default_profile", "created_at")

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the project's judges and profiles as defaults."""
        if db_field.name not in {"default_judge", "default_profile"}:
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        match = request.resolver_match
        project = Project.objects.filter(pk=match.kwargs.get("object_id") or 0).first() if match else None
        if db_field.name == "default_profile":
            names = profile_names(project)
        else:
            names = [*judge_names(project), BASELINE] if project else []
        return forms.ChoiceField(
            label=db_field.verbose_name,
            help_text=db_field.help_text,
            required=False,
            choices=[("", "–"), *((name, name) for name in names)],
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow superusers only, because a new project has no members yet."""
        return bool(request.user.is_superuser)


class LoginFilter(admin.SimpleListFilter):
    """Hides log-ins, of which there are many, unless they are chosen."""

    title = _("logins")
    parameter_name = "logins"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Offer to show them."""
        return [("shown", _("Shown"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Call the default "Hidden" instead of "All"."""
        default, *others = super().choices(changelist)
        yield {**default, "display": _("Hidden")}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        """Leave log-ins out, unless the list shows one kind of event."""
        if self.value() == "shown" or "verb" in request.GET:
            return queryset
        return queryset.exclude(verb__in=[LOGGED_IN, PASSWORD_ACCEPTED])


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Audit log of the whole site, for superusers and administrators of any project."""

    path = ""
    view_action = Action.ADMINISTER
    list_display = ("created_at", "actor", "verb", "subject")
    list_filter = (LoginFilter, "verb", "object_type")
    search_fields = ("object_id",)
    list_select_related = ("actor",)
    ordering = ("-id",)
    change_list_template = "admin/audit_log.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the check of the log."""
        verify_url = path(
            "verify/", self.admin_site.admin_view(access.acts_only(self.verify_view)), name="audit-verify"
        )
        return [verify_url, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Name the objects of the events, and list the links for a new password that were made lately for people who
        had one."""
        events = list(links_by_others(timezone.now() - NOTICE))
        people = User.objects.in_bulk([int(event.object_id) for event in events])
        links = [(event, people[int(event.object_id)]) for event in events]
        response = super().changelist_view(request, {**(extra_context or {}), "links": links})
        if changelist := getattr(response, "context_data", {}).get("cl"):
            self._load_subjects(request, changelist.result_list)
        return response

    def _load_subjects(self, request: HttpRequest, events: Iterable[Any]) -> None:
        """Set the objects of the events that the person may see; one query for each type."""
        by_type: dict[str, list[Any]] = {}
        for event in events:
            by_type.setdefault(event.object_type, []).append(event)
        for object_type, typed_events in by_type.items():
            try:
                model = apps.get_model(object_type)
            # The app is no longer installed.
            except LookupError:
                continue
            rows = model._base_manager.none()
            if self.admin_site.is_registered(model):
                model_admin = self.admin_site.get_model_admin(model)
                rows = model_admin.get_queryset(request) if model_admin.has_view_permission(request) else rows
            elif request.user.is_superuser:
                rows = model._base_manager.all()
            objects = rows.in_bulk([event.object_id for event in typed_events])
            for event in typed_events:
                event.loaded_subject = objects.get(model._meta.pk.to_python(event.object_id))

    @admin.display(description=_("object"))
    def subject(self, event: Any) -> str:
        """Type and name of the object, with a link if the back office shows it."""
        subject = getattr(event, "loaded_subject", None)
        if subject is None:
            return f"{event.object_type} {event.object_id}"
        label = f"{subject._meta.verbose_name}: {subject}"
        if not self.admin_site.is_registered(type(subject)):
            return label
        view = f"admin:{subject._meta.app_label}_{subject._meta.model_name}_change"
        return format_html('<a href="{}">{}</a>', reverse(view, args=[subject.pk]), label)

    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """Show the problems that ``verify_audit`` reports, and the chain head to store elsewhere."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        flaws = [(explain_reason(flaw.code), flaw.subject) for flaw in audit.flaws()]
        context = {
            "title": gettext("Audit log"),
            "flaws": flaws,
            "head": audit.chain_head(),
            "waiting": audit.unsealed_rows(),
        }
        return render(request, "admin/audit_verified.html", self.admin_site.each_context(request) | context)


@admin.register(FailedLogin)
class FailedLoginAdmin(ReadOnlyAdmin):
    """Failed logins of the whole site, for superusers and administrators of any project."""

    path = ""
    view_action = Action.ADMINISTER
    list_display = ("created_at", "person", "by", "count", "cleared", "address")
    list_filter = ("cleared",)
    search_fields = ("person__username", "address")
    list_select_related = ("person",)
    ordering = ("-id",)
