"""URLs of the site."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from evaluation.extensions import features
from evaluation.rest.errors import unknown_address

# Not in `AppConfig.ready`, so that commands do not import the admin pages.
admin.autodiscover()


def url_routes() -> list[URLPattern | URLResolver]:
    """Return the URLs of the core and of the installed features."""
    return [
        path("admin/", admin.site.urls),
        path("api/v1/", include("evaluation.api_urls")),
        path("api/v1/", include("review.api_urls")),
        *(path("api/v1/", include(feature.api_urls)) for feature in features() if feature.api_urls),
        path("evaluation/", include("evaluation.runs.generation_api")),
        path("api/<path:subpath>", unknown_address),
        path("", include("evaluation.urls")),
        path("", include("review.urls")),
        *(path("", include(feature.urls)) for feature in features() if feature.urls),
    ]


urlpatterns = url_routes()
