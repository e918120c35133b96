"""What Django serves: everything under /ui/, which can never be an account."""

from django.conf import settings
from django.urls import path

from console import health, metrics
from console.views import accounts, appearance, entities, kit, profile, sessions, setup

urlpatterns = [
    path("", accounts.root),
    path("ui", accounts.root),
    path("ui/", accounts.home, name="home"),
    path("ui/setup/", setup.first_admin, name="setup"),
    path("ui/login/", sessions.sign_in, name="account_login"),
    path("ui/logout/", sessions.sign_out, name="account_logout"),
    path("ui/me/", profile.edit, name="profile"),
    path("ui/me/password/", profile.change_password, name="password"),
    path("ui/appearance/", appearance.change, name="appearance"),
    path("ui/a/<account>/", accounts.show, name="account"),
    path("ui/a/<account>/t/<table>/", entities.show, name="entities"),
    path("ui/healthz", health.alive),
    path("ui/readyz", health.ready),
    path("ui/metrics", metrics.metrics),
]
if settings.DEVELOPMENT:
    urlpatterns.append(path("ui/dev/kit/", kit.show))

handler403 = "console.views.errors.forbidden"
handler404 = "console.views.errors.not_found"
handler429 = "console.views.errors.too_many"
handler500 = "console.views.errors.failed"
