"""URLs of an account: settings, keys, members and service properties."""

from django.urls import path

from console.accounts.views import keys, members, overview, service, settings

app_name = "accounts"
urlpatterns = [
    path("a/new/", settings.new, name="new"),
    path("a/<account>/created/", settings.created, name="created"),
    path("a/<account>/overview/", overview.show, name="overview"),
    path("a/<account>/settings/", settings.settings, name="settings"),
    path("a/<account>/export/", settings.export, name="export"),
    path("a/<account>/delete/", settings.delete, name="delete"),
    path("a/<account>/keys/", keys.index, name="keys"),
    path("a/<account>/keys/connection/", keys.reveal_connection, name="connection"),
    path("a/<account>/keys/connection/copy/", keys.copy_connection, name="connection_copy"),
    path("a/<account>/keys/<int:which>/reveal/", keys.reveal, name="key_reveal"),
    path("a/<account>/keys/<int:which>/copy/", keys.copy, name="key_copy"),
    path("a/<account>/keys/<int:which>/rotate/", keys.rotate, name="key_rotate"),
    path("a/<account>/keys/<int:which>/end/", keys.end, name="key_end"),
    path("a/<account>/service/", service.show, name="service"),
    path("a/<account>/service/save/", service.save, name="service_save"),
    path("a/<account>/members/", members.index, name="members"),
    path("a/<account>/members/add/", members.add, name="members_add"),
    path("a/<account>/members/invite/", members.invite, name="members_invite"),
    path("a/<account>/members/<int:member>/", members.change, name="member"),
    path("a/<account>/members/<int:member>/remove/", members.remove, name="member_remove"),
    path("invitations/<int:invitation>/withdraw/", members.withdraw, name="invitation_withdraw"),
]
