"""What Django serves: everything under /ui/, which can never be an account."""

from django.urls import path

from console import health, metrics

urlpatterns = [
    path("ui/healthz", health.alive),
    path("ui/readyz", health.ready),
    path("ui/metrics", metrics.metrics),
]
