"""URLs under /ui/, which cannot be an account name."""

from django.conf import settings
from django.urls import include, path

from console.help.views import kit
from console.home.views import home
from storage.core import registry

urlpatterns = [
    path("", home.root),
    path("ui", home.root),
    path("ui/", include("console.people.allauth_urls")),
    *(
        path("ui/", include(module))
        for module in ("console.site.urls", "console.grid.urls", *registry.urls())
    ),
    path("ui/api/v1/", include("storage.rest.urls")),
    path("ui/api/v1/", include("console.api.urls")),
    path("", include("console.site.probe_urls")),
]
if settings.DEVELOPMENT:
    urlpatterns.append(path("ui/kit/", kit.show))

handler400 = "console.site.errors.bad_request"
handler403 = "console.site.errors.forbidden"
handler404 = "console.site.errors.not_found"
handler429 = "console.site.errors.too_many"
handler500 = "console.site.errors.failed"
