"""All addresses of the site."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from evaluation.api.errors import unknown
from evaluation.work.plugins import extras

admin.autodiscover()  # here and not when apps get ready, so that commands load no page of it


def addresses() -> list[URLPattern | URLResolver]:
    """Those of both halves and of the extras that this installation has."""
    return [
        path("admin/", admin.site.urls),
        path("api/v1/", include("evaluation.api.urls")),
        path("api/v1/", include("review.api.urls")),
        *(path("api/v1/", include(extra.api_urls)) for extra in extras() if extra.api_urls),
        path("evaluation/", include("evaluation.api.source_002")),
        path("api/<path:rest>", unknown),
        path("", include("evaluation.urls")),
        path("", include("review.urls")),
        *(path("", include(extra.urls)) for extra in extras() if extra.urls),
    ]


urlpatterns = addresses()
