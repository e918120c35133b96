"""Every address of the console, with the roles and methods that may request it, and the answers.

`editor:404`: from the role of an editor on, users get 404; members below it get 403, strangers 404, and no user is
sent to sign in. `user:405` is refused before the role is checked. 302 for a page with secrets asks for a proof.
"""

EVERYBODY = (None, "sam", "victor", "eve", "max", "alice", "ada")
BELOW = {
    "anybody": [],
    "user": [302],
    "member": [302, 404],
    "editor": [302, 404, 403],
    "manager": [302, 404, 403, 403],
    "owner": [302, 404, 403, 403, 403],
    "admin": [302, 403, 403, 403, 403, 403],
}
TABLE = """
# name                        arguments           GET          POST
home:index                    -                   user:200     -
tables:index                  acme                member:200   -
tables:sizes                  acme                member:200   member:405
tables:new                    acme                manager:200  manager:422
tables:sample                 acme                manager:405  manager:302
tables:delete                 acme                manager:405  manager:302
tables:tag                    acme                manager:405  manager:302
tables:untag                  acme                manager:405  manager:302
tables:export                 acme                member:405   member:200
tables:restore                acme                manager:405  manager:302
tables:settings               acme/people         member:200   member:405
tables:schema                 acme/people         member:200   member:405
activity:table                acme/people         member:200   member:405
metrics:table                 acme/people         member:200   user:405
metrics:account               acme                member:200   member:405
design:table                  acme/people         member:200   user:405
design:account                acme                member:200   user:405
tables:index_state            acme/people         member:200   member:405
tables:add_index              acme/people         manager:405  manager:302
tables:drop_index             acme/people         manager:405  manager:302
cluster:show                  acme/people         member:200   member:405
cluster:start                 acme/people         owner:405    owner:302
cluster:dismiss               acme/people         owner:405    owner:302
tables:notes                  acme/people         manager:405  manager:302
tables:rename                 acme/people         manager:405  manager:302
tables:copy                   acme/people         manager:405  manager:302
policies:show                 acme/people         member:200   member:405
policies:save                 acme/people         manager:405  manager:422
snapshots:index               acme                member:200   user:405
snapshots:new                 acme                manager:200  manager:422
snapshots:schedule            acme                user:405     manager:422
snapshots:change              acme/base           manager:404  manager:404
snapshots:delete              acme/base           user:405     manager:404
snapshots:restore             acme/base           user:405     manager:302
snapshots:new_branch          acme                owner:200    owner:302
snapshots:sample              acme                owner:404    user:405
snapshots:reset               acme                user:405     manager:302
accounts:overview             acme                member:200   member:405
accounts:service              acme                member:200   member:405
accounts:service_save         acme                manager:405  manager:422
accounts:key_reveal           acme/1              manager:405  manager:302
accounts:key_copy             acme/1              manager:405  manager:302
accounts:connection           acme                manager:405  manager:302
accounts:connection_copy      acme                manager:405  manager:302
accounts:keys                 acme                manager:200  -
accounts:key_end              acme/1              owner:405    owner:302
accounts:key_rotate           acme/1              owner:302    owner:302
accounts:settings             acme                owner:200    owner:422
accounts:export               acme                manager:405  manager:302
accounts:delete               acme                owner:200    owner:302
sas:index                     acme                manager:200  user:405
sas:new                       acme                manager:200  manager:422
sas:preview                   acme                user:405     manager:200
sas:range                     acme/people         user:405     manager:302
sas:export                    acme                manager:404  user:405
sas:show                      acme/ffff           manager:404  user:405
sas:describe                  acme/ffff           user:405     manager:404
sas:block                     acme/ffff           user:405     manager:404
accounts:created              acme                owner:302    -
accounts:new                  -                   admin:200    admin:422
links:new                     -                   user:200     user:422
links:follow                  222222222222        user:404     user:405
comments:table                acme/people         member:200   user:405
comments:entity               acme/people         user:404     user:405
comments:add                  acme/people         user:405     member:303
comments:earlier              acme/people/0      user:404     user:405
comments:people               acme                member:200   user:405
comments:thread               acme/0              user:404     user:405
comments:reply                acme/0              user:405     user:404
comments:resolve              acme/0              user:405     user:404
comments:edit                 acme/0              user:405     user:404
comments:delete               acme/0              user:405     user:404
presence:move                 acme/people         user:405     member:204
history:changed               acme/people         user:404     user:405
home:star                     acme/people         member:405   member:302
sas:inspector                 -                   user:200     user:422
help:about                    -                   user:200     -
help:index                    -                   user:200     -
help:document                 access              user:200     -
help:shortcuts                -                   user:200     -
help:limits                   -                   user:200     -
replicas:index                -                   admin:200    user:405
backups:index                 -                   admin:200    user:405
transfer:start                 acme/people         editor:200   editor:422
transfer:start_new             acme                manager:200  manager:422
copies:start                  acme                manager:200  manager:422
copies:file                   acme                manager:200  manager:422
copies:upload                 acme/0/1            manager:404  manager:404
transfer:upload                acme/0              editor:404   editor:404
transfer:map                   acme/0              editor:404   editor:404
transfer:check                 acme/0              editor:404   user:405
transfer:repair                acme/0              user:405     editor:404
transfer:discard               acme/0              user:405     editor:404
transfer:run                   acme/0              editor:404   editor:404
jobs:index                    -                   user:200     user:405
jobs:tray                     -                   user:200     user:405
jobs:clear_tray               -                   user:405     user:302
jobs:show                     0                   user:404     user:405
jobs:cancel                   0                   user:405     user:404
jobs:pause                    0                   user:405     user:404
jobs:resume                   0                   user:405     user:404
jobs:file                     0/0                 user:404     user:405
notices:index                 -                   user:200     user:405
notices:bell                  -                   user:200     user:405
notices:seen                  -                   user:405     user:302
notices:mute                  0                   user:405     user:404
notices:account               acme                member:200   member:405
notices:personal              -                   user:200     user:405
notices:address               -                   user:405     anybody:302
notices:address_confirm       -                   user:405     user:422
notices:address_remove        -                   user:405     user:302
notices:unmute                0                   user:405     user:404
notices:settings              acme                manager:200  manager:302
notices:webhook_new           acme                manager:302  manager:302
notices:webhook               acme/0              manager:404  manager:404
notices:webhook_test          acme/0              user:405     manager:404
notices:webhook_secret        acme/0              user:405     manager:302
notices:webhook_delete        acme/0              user:405     manager:404
notices:server_settings       -                   admin:200    admin:302
notices:server_webhook_new    -                   admin:302    admin:302
notices:server_webhook        0                   admin:404    admin:404
notices:server_webhook_test   0                   user:405     admin:404
notices:server_webhook_secret 0                   user:405     admin:302
notices:server_webhook_delete 0                   user:405     admin:404
activity:server_index         -                   admin:200    user:405
activity:server_entry         0                   admin:404    -
activity:server_export        -                   admin:404    -
activity:index                acme                member:200   user:405
activity:entry                acme/0              user:404     -
activity:export               acme                user:404     -
activity:changes              acme                user:404     member:405
activity:histogram            acme                member:200   member:405
activity:revert               acme                manager:302  manager:302
rehearsal:index               acme                member:200   user:405
rehearsal:start               acme                user:405     manager:422
rehearsal:allow               acme                user:405     owner:302
rehearsal:new_set             acme                manager:200  manager:422
rehearsal:set                 acme/bad-day        member:200   member:200
rehearsal:delete_set          acme/bad-day        user:405     manager:302
rehearsal:show                acme/0              user:404     user:405
rehearsal:stop                acme/0              user:405     manager:404
rehearsal:requests            acme/0              user:404     user:405
requests:index                acme                member:200   user:405
requests:show                 acme/00000000-0000-0000-0000-000000000000  user:404  user:405
requests:export               acme                user:404     -
requests:entity               acme/00000000-0000-0000-0000-000000000000  user:404  user:404
activity:undo                 0                   user:405     user:404
entities:index                acme/people         member:200   -
home:search                   -                   user:200     -
home:palette                  -                   user:200     -
people:profile                -                   user:200     user:422
people:time_zone              -                   user:405     user:302
people:password               -                   user:200     user:422
accounts:members              acme                member:200   user:405
accounts:members_add          acme                user:405     owner:422
accounts:members_invite       acme                user:405     owner:422
accounts:member               acme/0              user:405     owner:404
accounts:member_remove        acme/0              user:405     owner:404
people:users                  -                   admin:200    user:405
people:users_invite           -                   user:405     admin:422
people:user                   0                   admin:404    user:405
people:user_change            0                   user:405     admin:302
people:join                   -                   anybody:200  anybody:200
accounts:invitation_withdraw  0                   user:405     user:404
account_reauthenticate        -                   user:200     user:422
mfa_reauthenticate            -                   user:200     user:422
mfa_reauthenticate_webauthn   -                   user:200     user:422
people:api_tokens             -                   user:200     user:405
people:api_token_new          -                   anybody:302  anybody:302
people:api_token_revoke       0                   user:404     user:404
people:user_token_revoke      0/0                 admin:404    admin:404
help:api                      -                   user:200     -
people:security               -                   user:200     -
people:sessions               -                   user:200     -
people:sessions_end           -                   user:405     anybody:302
people:session_end            0                   user:405     anybody:302
mfa_add_webauthn              -                   anybody:302  anybody:302
mfa_edit_webauthn             0                   anybody:302  anybody:302
mfa_remove_webauthn           0                   anybody:302  anybody:302
mfa_activate_totp             -                   anybody:302  anybody:302
mfa_deactivate_totp           -                   anybody:302  anybody:302
mfa_view_recovery_codes       -                   anybody:302  anybody:302
mfa_generate_recovery_codes   -                   anybody:302  anybody:302
entities:cell                 acme/people         editor:404   editor:404
entities:cells                acme/people         user:405     editor:400
entities:check_cell           acme/people         user:405     editor:404
entities:delete               acme/people         user:405     editor:302
bulk_edit:show                acme/people         editor:200   editor:303
entities:paste                acme/people         editor:302   editor:422
entities:show                 acme/people         user:404     editor:404
entities:key                  acme/people         editor:404   editor:404
entities:row                  acme/people         -            editor:404
entities:new                  acme/people         editor:200   editor:404
entities:staged               acme/people         user:405     editor:400
entities:value                acme/people         user:404     -
compare:index                 acme                member:200   member:405
compare:side                  acme                member:404   member:405
compare:patch                 acme                member:404   member:405
compare:apply                 acme                member:405   member:303
history:entity                acme/people         user:404     editor:404
history:past                  acme/people         member:302   -
history:histogram             acme/people         member:200   -
entities:count                acme/people         member:302   -
entities:why_empty            acme/people         member:200   -
queries:known                 acme/people         member:200   user:405
queries:values                acme/people         member:200   user:405
queries:facets                acme/people         member:200   -
queries:code                  acme/people         member:200   manager:302
queries:check                 acme/people         user:405     member:302
queries:rows                  acme/people         user:405     member:200
queries:cell                  acme/people         user:405     user:404
grid:columns                  acme/people         member:200   member:302
grid:export                   acme/people         member:200   member:200
grid:copy                     acme/people         user:405     member:200
grid:compare                  acme/people         user:404     member:303
grid:layouts                  acme/people         user:405     member:302
grid:layout_delete            acme/people/0       user:405     member:302
queries:index                 acme                member:200   user:405
queries:menu                  acme/people         member:200   user:405
queries:forget                acme                user:405     member:303
queries:new                   acme/people         member:200   member:422
queries:run                   acme/people/none    user:404     user:405
queries:versions              acme/people/none    user:404     user:405
queries:edit                  acme/people/none    user:404     user:404
queries:update                acme/people/none    user:405     user:404
queries:delete                acme/people/none    user:405     user:404
site:appearance               -                   anybody:405  anybody:302
people:setup                  -                   anybody:404  anybody:404
account_login                 -                   visitor:200  visitor:422
mfa_authenticate              -                   anybody:302  anybody:302
mfa_login_webauthn            -                   anybody:302  anybody:302
openid_connect_login          nowhere             anybody:405  anybody:404
openid_connect_callback       nowhere             anybody:404  -
people:connect                nowhere             user:405     anybody:302
people:disconnect             0                   user:405     anybody:302
account_inactive              -                   anybody:403  -
people:signed_in              -                   user:200     -
account_logout                -                   user:200     anybody:302
"""
ROWS = [line.split() for line in TABLE.splitlines() if line and line[0] != "#"]
# name → arguments of its address
ARGUMENTS = {name: [] if arguments == "-" else arguments.split("/") for name, arguments, _, _ in ROWS}


def _statuses(cell):
    role, _, status = cell.partition(":")
    if role == "visitor":  # signed-in users are redirected
        return dict.fromkeys(EVERYBODY, 302) | {None: int(status)}
    below = BELOW[role]
    return dict(zip(EVERYBODY, below + [int(status)] * (len(EVERYBODY) - len(below)), strict=True))


# name → method → who → status
ANSWERS = {
    name: {method: _statuses(cell) for method, cell in (("GET", get), ("POST", post)) if cell != "-"}
    for name, _, get, post in ROWS
}

# parts and data instead of pages, and pages that have a test of their own
NO_PAGES = {
    *("jobs:tray", "notices:bell", "comments:people"),
    *("home:palette", "queries:known", "queries:menu", "queries:values", "people:password"),
    *("cluster:show", "tables:index_state", "tables:sizes", "history:histogram", "activity:histogram"),
    *("people:signed_in", "people:join"),
    *("account_logout", "account_reauthenticate", "mfa_reauthenticate", "mfa_reauthenticate_webauthn"),
}
# also pages of a second factor, which no user has here
_NOT_HERE = {*NO_PAGES, "mfa_deactivate_totp", "mfa_view_recovery_codes"}
# pages of existing objects, perhaps after a proof
PAGES = [
    name
    for name, methods in ANSWERS.items()
    if methods.get("GET", {}).get("ada") in (200, 302)
    and name not in _NOT_HERE
    and "0" not in ARGUMENTS[name]
]
