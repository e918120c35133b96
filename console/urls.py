"""What Django serves: everything under /ui/, which can never be an account."""

from django.conf import settings
from django.urls import include, path

from console import health, metrics
from console.views import (
    about,
    account_settings,
    api_docs,
    appearance,
    entities,
    home,
    inspect,
    invitations,
    keys,
    kit,
    members,
    policies,
    search,
    service,
    setup,
    tables,
    users,
)

urlpatterns = [
    path("", home.root),
    path("ui", home.root),
    path("ui/", home.home, name="home"),
    path("ui/search/", search.index, name="search"),
    path("ui/palette/", search.palette, name="palette"),
    path("ui/setup/", setup.first_admin, name="setup"),
    path("ui/", include("console.people.urls")),
    path("ui/inspect/", inspect.index, name="inspect"),
    path("ui/appearance/", appearance.change, name="appearance"),
    path("ui/about/", about.about, name="about"),
    path("ui/help/shortcuts/", about.shortcuts, name="shortcuts"),
    path("ui/help/limits/", about.limits, name="limits"),
    path("ui/a/new/", account_settings.new, name="account_new"),
    path("ui/a/<account>/created/", account_settings.created, name="account_created"),
    path("ui/a/<account>/settings/", account_settings.settings, name="account_settings"),
    path("ui/a/<account>/delete/", account_settings.delete, name="account_delete"),
    path("ui/a/<account>/keys/", keys.index, name="keys"),
    path("ui/a/<account>/keys/connection/", keys.reveal_connection, name="connection"),
    path("ui/a/<account>/keys/connection/copy/", keys.copy_connection, name="connection_copy"),
    path("ui/a/<account>/keys/<int:which>/reveal/", keys.reveal, name="key_reveal"),
    path("ui/a/<account>/keys/<int:which>/copy/", keys.copy, name="key_copy"),
    path("ui/a/<account>/keys/<int:which>/rotate/", keys.rotate, name="key_rotate"),
    path("ui/a/<account>/keys/<int:which>/end/", keys.end, name="key_end"),
    path("ui/a/<account>/t/<table>/star/", home.star, name="star"),
    path("ui/a/<account>/", tables.index, name="account"),
    path("ui/a/<account>/tables/sizes/", tables.sizes, name="table_sizes"),
    path("ui/a/<account>/tables/new/", tables.new, name="table_new"),
    path("ui/a/<account>/tables/sample/", tables.sample, name="tables_sample"),
    path("ui/a/<account>/tables/delete/", tables.delete, name="tables_delete"),
    path("ui/a/<account>/tables/tags/", tables.tag, name="tables_tag"),
    path("ui/a/<account>/tables/restore/", tables.restore, name="table_restore"),
    path("ui/a/<account>/service/", service.show, name="service"),
    path("ui/a/<account>/service/save/", service.save, name="service_save"),
    path("ui/a/<account>/t/<table>/settings/", tables.settings, name="table_settings"),
    path("ui/a/<account>/t/<table>/settings/notes/", tables.note, name="table_notes"),
    path("ui/a/<account>/t/<table>/acl/", policies.show, name="policies"),
    path("ui/a/<account>/t/<table>/acl/save/", policies.save, name="policies_save"),
    path("ui/a/<account>/t/<table>/", entities.show, name="entities"),
    path("ui/a/<account>/t/<table>/", include("console.entities.urls")),
    path("ui/a/<account>/", include("console.signatures.urls")),
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
    path("ui/a/<account>/", include("console.queries.urls")),
    path("ui/", include("console.activity.urls")),
    path("ui/api/docs/", api_docs.show, name="api_docs"),
    path("ui/api/v1/", include("storage.api.urls")),
    path("ui/healthz", health.alive),
    path("ui/readyz", health.ready),
    path("ui/metrics", metrics.metrics),
]
if settings.DEVELOPMENT:
    urlpatterns.append(path("ui/dev/kit/", kit.show))

handler400 = "console.views.errors.bad_request"
handler403 = "console.views.errors.forbidden"
handler404 = "console.views.errors.not_found"
handler429 = "console.views.errors.too_many"
handler500 = "console.views.errors.failed"
