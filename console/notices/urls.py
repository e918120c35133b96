"""URLs of notices: the pages of users, and the settings of an account and of the server."""

from django.urls import path

from console.notices.views import listing, personal, settings, webhooks

app_name = "notices"
urlpatterns = [
    path("notices/", listing.index, name="index"),
    path("notices/bell/", listing.show_bell, name="bell"),
    path("notices/seen/", listing.mark_seen, name="seen"),
    path("notices/<int:number>/mute/", listing.mute, name="mute"),
    path("notices/settings/", settings.edit, name="server_settings"),
    path("notices/webhooks/new/", webhooks.new, name="server_webhook_new"),
    path("notices/webhooks/<int:webhook>/", webhooks.show, name="server_webhook"),
    path("notices/webhooks/<int:webhook>/test/", webhooks.test, name="server_webhook_test"),
    path("notices/webhooks/<int:webhook>/secret/", webhooks.renew_secret, name="server_webhook_secret"),
    path("notices/webhooks/<int:webhook>/delete/", webhooks.delete, name="server_webhook_delete"),
    path("me/notices/", personal.edit, name="personal"),
    path("me/notices/address/", personal.set_address, name="address"),
    path("me/notices/address/confirm/", personal.confirm_address, name="address_confirm"),
    path("me/notices/address/remove/", personal.remove_address, name="address_remove"),
    path("me/notices/mutes/<int:number>/remove/", personal.unmute, name="unmute"),
    path("a/<account>/notices/", listing.for_account, name="account"),
    path("a/<account>/notices/settings/", settings.edit, name="settings"),
    path("a/<account>/notices/webhooks/new/", webhooks.new, name="webhook_new"),
    path("a/<account>/notices/webhooks/<int:webhook>/", webhooks.show, name="webhook"),
    path("a/<account>/notices/webhooks/<int:webhook>/test/", webhooks.test, name="webhook_test"),
    path("a/<account>/notices/webhooks/<int:webhook>/secret/", webhooks.renew_secret, name="webhook_secret"),
    path("a/<account>/notices/webhooks/<int:webhook>/delete/", webhooks.delete, name="webhook_delete"),
]
