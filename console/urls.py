"""What Django serves: everything under /ui/, which can never be an account."""

from django.conf import settings
from django.urls import include, path

from console import health, metrics
from console.views import (
    accounts,
    appearance,
    entities,
    invitations,
    kit,
    members,
    setup,
    users,
)

urlpatterns = [
    path("", accounts.root),
    path("ui", accounts.root),
    path("ui/", accounts.home, name="home"),
    path("ui/setup/", setup.first_admin, name="setup"),
    path("ui/", include("console.sign_in_urls")),
    path("ui/appearance/", appearance.change, name="appearance"),
    path("ui/a/<account>/", accounts.show, name="account"),
    path("ui/a/<account>/t/<table>/", entities.show, name="entities"),
    path("ui/a/<account>/members/", members.index, name="members"),
    path("ui/a/<account>/members/add/", members.add, name="members_add"),
    path("ui/a/<account>/members/invite/", members.invite, name="members_invite"),
    path("ui/a/<account>/members/<int:member>/", members.change, name="member"),
    path("ui/a/<account>/members/<int:member>/remove/", members.remove, name="member_remove"),
    path("ui/u/", users.index, name="users"),
    path("ui/u/invite/", users.invite, name="users_invite"),
    path("ui/u/<int:user>/", users.show, name="user"),
    path("ui/u/<int:user>/change/", users.change, name="user_change"),
    path("ui/join/", invitations.join, name="join"),
    path("ui/invitations/<int:invitation>/withdraw/", members.withdraw, name="invitation_withdraw"),
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
