"""Stored access policies: kept as they were set, and heeded by the tokens that name them from the next request on."""

from datetime import UTC, datetime

import pytest
from azure.data.tables import TableAccessPolicy

from .access import ADA, HOUR, now, refusal_of

START, EXPIRY = datetime(2021, 6, 8, 2, 10, 9, tzinfo=UTC), datetime(2999, 12, 31, 23, 59, 59, tzinfo=UTC)


class TestSettings:
    def test_come_back(self, people):
        assert people.set_table_access_policy({"all": access(START, EXPIRY, "raud")}) is None

        table_access_policy = people.get_table_access_policy()
        assert table_access_policy.keys() == {"all"}
        assert (
            table_access_policy["all"].start,
            table_access_policy["all"].expiry,
            table_access_policy["all"].permission,
        ) == (START, EXPIRY, "raud")

    @pytest.mark.parametrize(
        ("start", "expiry", "permission"),
        [(START, None, None), (None, EXPIRY, None), (None, None, "r"), (START, EXPIRY, None)],
    )
    def test_come_back_with_a_part_of_a_policy(self, people, start, expiry, permission):
        people.set_table_access_policy({"part": access(start, expiry, permission)})

        (found,) = people.get_table_access_policy().values()
        assert (found.start, found.expiry, found.permission) == (start, expiry, permission)

    def test_take_the_place_of_those_before(self, people):
        people.set_table_access_policy({"a": access(permission="r"), "b": None})
        people.set_table_access_policy({"b": access(permission="a")})

        assert people.get_table_access_policy().keys() == {"b"}
        assert people.get_table_access_policy()["b"].permission == "a"


def access(start=None, expiry=None, permission=None):
    return TableAccessPolicy(start=start, expiry=expiry, permission=permission)


class TestTokens:
    @pytest.fixture
    def set_policies(self, stored):
        return lambda **policies: stored.set_table_access_policy(policies)

    @pytest.fixture
    def by_policy(self, opened):
        """Return the table opened by a token that leaves all fields to the policy "reader"."""
        return lambda **options: opened(policy_id="reader", **{"expiry": None, **options})

    @staticmethod
    def policy(permission="r", expiry=HOUR, **options):
        return TableAccessPolicy(permission=permission, expiry=expiry and now() + expiry, **options)

    def test_say_all_for_a_token(self, set_policies, by_policy):
        set_policies(reader=self.policy(start=now() - HOUR))

        table = by_policy()

        assert table.get_entity("se", "ada") == ADA
        assert refusal_of(table.delete_entity, "se", "ada") == (403, "AuthorizationPermissionMismatch")

    def test_can_be_revoked_at_once(self, set_policies, by_policy):
        set_policies(reader=self.policy())
        table = by_policy()
        assert table.get_entity("se", "ada") == ADA

        set_policies()

        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthenticationFailed")
