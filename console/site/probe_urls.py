"""URLs of the probes; they are resolved without the console's, so that a health check loads no page."""

from django.urls import path

from console.site import probes

urlpatterns = [
    path("ui/healthz", probes.alive),
    path("ui/readyz", probes.ready),
    path("ui/metrics", probes.metrics),
]
handler500 = "console.site.errors.failed"
