"""Logging in and out, and the language of the pages."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from evaluation.models import User
from evaluation.web.forms.log_in import LogInForm

YEAR = 365 * 24 * 3600


class SignIn(LoginView):
    """Our own log-in page; whoever is logged in goes on to where they wanted."""

    template_name = "evaluation/login.html"
    authentication_form = LogInForm
    redirect_authenticated_user = True

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The page again; 429 while too many attempts have failed."""
        response = super().form_invalid(form)
        if isinstance(form, LogInForm) and form.throttled:
            response.status_code = 429
        return response


class SignOut(LogoutView):
    """Ends the session; POST only, so that no link of another site can do it."""


@require_POST
def choose_language(request: HttpRequest) -> HttpResponse:
    """Remember the language in a cookie and, for a known person, with the person; then back to the page."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        target = reverse("home")
    response = HttpResponseRedirect(target)
    language = request.POST.get("language", "")
    if language in dict(settings.LANGUAGES):
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=YEAR,
            samesite="Lax",
            secure=request.is_secure(),
            httponly=True,
        )
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=language)
    return response
