"""Stored access policies: kept as they were set, and heeded by the tokens that name them from the next request on."""

from datetime import UTC, datetime

from azure.data.tables import TableAccessPolicy

from .access import ADA, HOUR, now, refusal_of

START, EXPIRY = datetime(2021, 6, 8, 2, 10, 9, tzinfo=UTC), datetime(2999, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_policies_come_back_and_take_the_place_of_those_before(people):
    for start, expiry, permission in (
        (START, EXPIRY, "raud"),
        (START, None, None),
        (None, EXPIRY, None),
        (None, None, "r"),
        (START, EXPIRY, None),
    ):
        assert people.set_table_access_policy({"all": access(start, expiry, permission)}) is None
        stored = people.get_table_access_policy()
        assert stored.keys() == {"all"}
        policy = stored["all"]
        assert (policy.start, policy.expiry, policy.permission) == (start, expiry, permission)
    people.set_table_access_policy({"a": access(permission="r"), "b": None})
    people.set_table_access_policy({"b": access(permission="a")})
    stored = people.get_table_access_policy()
    assert [(name, policy.permission) for name, policy in stored.items()] == [("b", "a")]


def access(start=None, expiry=None, permission=None):
    return TableAccessPolicy(start=start, expiry=expiry, permission=permission)


def test_a_policy_sets_all_terms_and_is_revoked_at_once(stored, opened):
    policy = access(now() - HOUR, now() + HOUR, "r")
    stored.set_table_access_policy({"reader": policy})
    table = opened(policy_id="reader", expiry=None)
    assert table.get_entity("se", "ada") == ADA
    assert refusal_of(table.delete_entity, "se", "ada") == (403, "AuthorizationPermissionMismatch")
    stored.set_table_access_policy({})
    assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthenticationFailed")
