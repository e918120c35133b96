"""Whatever the console does, scripts can do: each of its actions has an operation of the API, or a reason for none."""

from storage.rest import documentation
from tests.console.addresses import ANSWERS

# action of the console → operations of the management API that do the same
OPERATIONS = """
tables:new                    create_table
tables:delete                 delete_table
tables:restore                restore_table
tables:tag                    update_table
tables:untag                  update_table
tables:notes                  update_table
tables:rename                 rename_table
tables:copy                   copy_table
tables:export                 export_account
tables:add_index              create_index
tables:drop_index             delete_index
cluster:start                 distribute_table undistribute_table
policies:save                 set_policies
snapshots:new                 take_snapshot
snapshots:schedule            set_snapshot_schedule delete_snapshot_schedule
snapshots:change              update_snapshot
snapshots:delete              delete_snapshot
snapshots:restore             restore_snapshot
snapshots:new_branch          create_branch
snapshots:reset               reset_account
accounts:new                  create_account
accounts:settings             update_account freeze_account thaw_account
accounts:delete               delete_account
accounts:export               export_account
accounts:service_save         set_service_properties
accounts:key_reveal           list_keys
accounts:key_copy             list_keys
accounts:key_rotate           rotate_key
accounts:key_end              end_key_grace
accounts:connection           get_connection_string
accounts:connection_copy      get_connection_string
queries:code                  get_connection_string
accounts:members_add          set_member
accounts:member               set_member
accounts:member_remove        remove_member
accounts:members_invite       invite
accounts:invitation_withdraw  withdraw_invitation withdraw_invitation_of_server
people:users_invite           invite_of_server
people:user_change            update_user sign_out_user reset_factors
people:user_token_revoke      revoke_user_token
sas:new                       issue_sas
sas:range                     issue_sas
sas:preview                   issue_sas
sas:describe                  update_sas
sas:block                     block_sas unblock_sas
comments:add                  create_comment
comments:reply                reply_to_comments
comments:resolve              resolve_comments
comments:edit                 edit_comment
comments:delete               delete_comment
transfer:start                 import_table
transfer:start_new             import_table
transfer:upload                import_table
transfer:map                   import_table
transfer:repair                import_table
transfer:discard               import_table
transfer:run                   import_table
copies:start                  copy_from_service copy_to_service
copies:file                   copy_from_file
copies:upload                 copy_from_file
rehearsal:start               start_rehearsal
rehearsal:stop                stop_rehearsal
rehearsal:allow               update_account
rehearsal:new_set             set_rehearsal_set
rehearsal:set                 set_rehearsal_set
rehearsal:delete_set          delete_rehearsal_set
jobs:cancel                   cancel_job
jobs:pause                    pause_job
jobs:resume                   resume_job
notices:seen                  mark_notices_seen
notices:mute                  mute_notices
notices:unmute                unmute_notices
notices:settings              set_notice_rule
notices:webhook_new           create_webhook
notices:webhook               change_webhook
notices:webhook_test          test_webhook
notices:webhook_secret        renew_webhook_secret
notices:webhook_delete        delete_webhook
notices:server_settings       set_notice_rule_of_server
notices:server_webhook_new    create_webhook_of_server
notices:server_webhook        change_webhook_of_server
notices:server_webhook_test   test_webhook_of_server
notices:server_webhook_secret renew_webhook_secret_of_server
notices:server_webhook_delete delete_webhook_of_server
activity:revert               undo_changes
activity:undo                 undo_changes
history:entity                undo_changes
compare:apply                 apply_differences
bulk_edit:show                bulk_edit
grid:export                   export_table
grid:copy                     export_table
queries:new                   create_query
queries:edit                  update_query
queries:update                update_query
queries:delete                delete_query
"""
REASONS = {
    "entities are written through the Table service": """
        entities:cell entities:cells entities:delete entities:key entities:new entities:paste entities:row
        entities:show entities:staged
    """,
    "a part of a page: it stores nothing": """
        entities:check_cell grid:compare queries:cell queries:check queries:rows requests:entity sas:inspector
    """,
    "how one person sees the console": """
        grid:columns grid:layout_delete grid:layouts presence:move links:new home:star jobs:clear_tray
        people:profile people:time_zone queries:forget site:appearance cluster:dismiss
    """,
    "a person proves who they are, which no token can": """
        account_login account_logout account_reauthenticate mfa_activate_totp mfa_add_webauthn mfa_authenticate
        mfa_deactivate_totp mfa_edit_webauthn mfa_generate_recovery_codes mfa_login_webauthn mfa_reauthenticate
        mfa_reauthenticate_webauthn mfa_remove_webauthn mfa_view_recovery_codes openid_connect_login people:connect
        people:disconnect people:join people:password people:session_end people:sessions_end people:setup
        notices:address notices:address_confirm notices:address_remove
    """,
    "a token makes no tokens: one that has leaked would outlive its revocation": """
        people:api_token_new people:api_token_revoke
    """,
    "data to look around with": "tables:sample",
}
MAPPED = {name: operations for name, *operations in map(str.split, filter(None, OPERATIONS.splitlines()))}
WITHOUT = {name for names in REASONS.values() for name in names.split()}


def test_each_action_has_an_operation_or_a_reason():
    # 405 says that there is no such action
    actions = {
        name for name, methods in ANSWERS.items() if any(code != 405 for code in _final(methods.get("POST")))
    }
    assert actions == MAPPED.keys() | WITHOUT
    assert not MAPPED.keys() & WITHOUT


def _final(answers):
    return () if answers is None else (answers["ada"],)


def test_the_operations_are_documented():
    paths = documentation.document()["paths"]
    there = {operation["operationId"] for methods in paths.values() for operation in methods.values()}
    assert {it for operations in MAPPED.values() for it in operations} - there == set()
