"""Stored access policies: kept as they were set, and heeded by the tokens that name them from the next request on."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.data.tables import TableAccessPolicy

from .access import ADA, HOUR, keys, now, person, refusal_of
from .conftest import OPTIONS, new_name

START, EXPIRY = datetime(2021, 6, 8, 2, 10, 9, tzinfo=UTC), datetime(2999, 12, 31, 23, 59, 59, tzinfo=UTC)


class TestSettings:
    def test_are_none_at_first(self, people):
        assert people.get_table_access_policy() == {}

    def test_come_back(self, people):
        assert people.set_table_access_policy({"all": access(START, EXPIRY, "raud")}) is None

        found = people.get_table_access_policy()
        assert found.keys() == {"all"}
        assert (found["all"].start, found["all"].expiry, found["all"].permission) == (START, EXPIRY, "raud")

    def test_come_back_without_a_policy(self, people):
        people.set_table_access_policy({"nothing": None, "no term": access()})

        assert people.get_table_access_policy() == {"nothing": None, "no term": None}

    @pytest.mark.parametrize(
        ("start", "expiry", "permission"),
        [(START, None, None), (None, EXPIRY, None), (None, None, "r"), (START, EXPIRY, None)],
    )
    def test_come_back_with_a_part_of_a_policy(self, people, start, expiry, permission):
        people.set_table_access_policy({"part": access(start, expiry, permission)})

        (found,) = people.get_table_access_policy().values()
        assert (found.start, found.expiry, found.permission) == (start, expiry, permission)

    def test_come_back_as_texts_were_set(self, people):
        people.set_table_access_policy({"a": access("2021-06-08T02:10:09Z", "2021-07-01", "dua")})

        found = people.get_table_access_policy()["a"]
        assert (found.start, found.expiry) == (START, datetime(2021, 7, 1, tzinfo=UTC))
        assert found.permission == "dua"

    def test_come_back_with_names_of_all_scripts(self, people):
        names = ["MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=", "é<&>\"'😀", "x" * 64, "a b", "1"]

        people.set_table_access_policy({name: access(permission="r") for name in names})

        assert list(people.get_table_access_policy()) == names

    def test_take_the_place_of_those_before(self, people):
        people.set_table_access_policy({"a": access(permission="r"), "b": None})
        people.set_table_access_policy({"b": access(permission="a")})

        assert people.get_table_access_policy().keys() == {"b"}
        assert people.get_table_access_policy()["b"].permission == "a"

    def test_are_removed(self, people):
        people.set_table_access_policy({"a": None})
        people.set_table_access_policy({})

        assert people.get_table_access_policy() == {}

    def test_are_read_from_the_secondary(self, library, server, people, credential):
        people.set_table_access_policy({"a": access(permission="r")})
        secondary = library.open_table(
            None,
            server.endpoint,
            people.table_name,
            credential=credential,
            location_mode="secondary",
            **OPTIONS,
        )

        assert secondary.get_table_access_policy()["a"].permission == "r"
        assert refusal_of(secondary.set_table_access_policy, {}) == (403, "InsufficientAccountPermissions")

    def test_are_five_at_most(self, people):
        five = {f"{number}": access(permission="r") for number in range(5)}
        people.set_table_access_policy(five)

        with pytest.raises(ValueError, match="Too many access policies provided"):
            people.set_table_access_policy({**five, "5": None})

        assert people.get_table_access_policy().keys() == five.keys()

    @pytest.mark.parametrize(
        ("name", "policy", "code"),
        [
            ("a", {"permission": "x"}, "InvalidXmlNodeValue"),
            ("a", {"permission": "rw"}, "InvalidXmlNodeValue"),
            ("a", {"start": "yesterday"}, "InvalidXmlNodeValue"),
            ("a", {"expiry": "2021-13-01"}, "InvalidXmlNodeValue"),
            ("x" * 65, {}, None),
            ("", {}, None),
        ],
        ids=str,
    )
    def test_are_checked(self, people, name, policy, code):
        refusal = refusal_of(people.set_table_access_policy, {name: access(**policy)})

        assert refusal[0] == 400
        assert code in (None, refusal[1])
        assert people.get_table_access_policy() == {}

    def test_need_a_table(self, service):
        missing = service.get_table_client(new_name())

        assert refusal_of(missing.get_table_access_policy) == (404, "ResourceNotFound")
        assert refusal_of(missing.set_table_access_policy, {"a": None}) == (404, "ResourceNotFound")


def access(start=None, expiry=None, permission=None):
    return TableAccessPolicy(start=start, expiry=expiry, permission=permission)


class TestTokens:
    @pytest.fixture
    def set_policies(self, stored):
        return lambda **policies: stored.set_table_access_policy(policies)

    @pytest.fixture
    def by_policy(self, opened):
        """The table by a token that leaves all to the policy "reader"."""
        return lambda **options: opened(policy_id="reader", **{"expiry": None, **options})

    @staticmethod
    def policy(permission="r", expiry=HOUR, **options):
        return TableAccessPolicy(permission=permission, expiry=expiry and now() + expiry, **options)

    def test_say_all_for_a_token(self, set_policies, by_policy):
        set_policies(reader=self.policy(start=now() - HOUR))

        table = by_policy()

        assert table.get_entity("se", "ada") == ADA
        assert refusal_of(table.delete_entity, "se", "ada") == (403, "AuthorizationPermissionMismatch")

    def test_say_a_part(self, set_policies, by_policy):
        set_policies(reader=self.policy(expiry=None))
        assert by_policy(expiry=now() + HOUR).get_entity("se", "ada") == ADA

        set_policies(reader=self.policy(permission=None))
        assert by_policy(permission="r").get_entity("se", "ada") == ADA

        set_policies(reader=None)
        assert by_policy(permission="r", expiry=now() + HOUR).get_entity("se", "ada") == ADA

    @pytest.mark.parametrize(
        "again", [{"permission": "r"}, {"expiry": datetime(2999, 1, 1, tzinfo=UTC)}], ids=["sp", "se"]
    )
    def test_are_not_said_again_by_a_token(self, set_policies, by_policy, again):
        set_policies(reader=self.policy())

        assert refusal_of(by_policy(**again).get_entity, "se", "ada") == (403, "AuthenticationFailed")

    @pytest.mark.parametrize("part", ["permission", "expiry"])
    def test_leave_nothing_open(self, set_policies, by_policy, part):
        set_policies(reader=self.policy(**{part: None}))

        assert refusal_of(by_policy().get_entity, "se", "ada") == (403, "AuthenticationFailed")

    @pytest.mark.parametrize(
        "times", [{"expiry": -timedelta(seconds=1)}, {"start": datetime(2999, 1, 1, tzinfo=UTC)}], ids=str
    )
    def test_have_their_time(self, set_policies, by_policy, times):
        set_policies(reader=self.policy(**times))

        assert refusal_of(by_policy().get_entity, "se", "ada") == (403, "AuthenticationFailed")

    @pytest.mark.parametrize("name", ["Reader", "reade", "reader "])
    def test_are_known_by_their_exact_names(self, set_policies, by_policy, name):
        set_policies(**{name: self.policy()})

        assert refusal_of(by_policy().get_entity, "se", "ada") == (403, "AuthenticationFailed")

    def test_can_be_revoked_at_once(self, set_policies, by_policy):
        set_policies(reader=self.policy())
        table = by_policy()
        assert table.get_entity("se", "ada") == ADA

        set_policies()

        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthenticationFailed")

    def test_can_be_changed_at_once(self, set_policies, by_policy):
        set_policies(reader=self.policy())
        table = by_policy()
        assert refusal_of(table.update_entity, ADA) == (403, "AuthorizationPermissionMismatch")

        set_policies(reader=self.policy(permission="ru"))
        assert table.update_entity(ADA)

        set_policies(reader=self.policy(permission="u"))
        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthorizationPermissionMismatch")

    def test_end_with_their_table(self, stored, set_policies, by_policy):
        set_policies(reader=self.policy())
        stored.delete_table()
        stored.create_table()

        assert refusal_of(by_policy().get_entity, "se", "ada") == (403, "AuthenticationFailed")

    def test_go_with_key_ranges(self, stored, set_policies, by_policy):
        stored.create_entity(person("bob"))
        set_policies(reader=self.policy())
        table = by_policy(start_pk="se", start_rk="b")

        assert keys(table.list_entities()) == [("se", "bob")]
        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthorizationFailure")
