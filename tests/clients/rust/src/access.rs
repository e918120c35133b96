use azure_core::auth::Secret;
use azure_core::hmac::hmac_sha256;
use azure_data_tables::prelude::*;
use azure_storage::clients::shared_access_signature;
use azure_storage::shared_access_signature::account_sas::{
    AccountSasPermissions, AccountSasResource, AccountSasResourceType,
};
use azure_storage::shared_access_signature::{SasProtocol, SasToken};
use azure_storage::StorageCredentials;
use serde_json::json;
use time::macros::format_description;
use time::{Duration, OffsetDateTime};

use crate::support::*;

fn permissions(letters: &str) -> AccountSasPermissions {
    let has = |letter: char| letters.contains(letter);
    AccountSasPermissions {
        read: has('r'),
        write: has('w'),
        delete: has('d'),
        list: has('l'),
        add: has('a'),
        update: has('u'),
        ..Default::default()
    }
}

fn by_token(token: &str) -> TableServiceClient {
    service_by(StorageCredentials::sas_token(token).unwrap())
}

/// A service that has a token of the account only.
fn by_account(
    kind: AccountSasResourceType,
    letters: &str,
    expiry: Duration,
    protocol: SasProtocol,
) -> TableServiceClient {
    let expiry = OffsetDateTime::now_utc() + expiry;
    let signature = wait(shared_access_signature(
        &account_key(),
        AccountSasResource::Table,
        kind,
        expiry,
        permissions(letters),
    ));
    by_token(&signature.unwrap().protocol(protocol).token().unwrap())
}

fn by_letters(kind: AccountSasResourceType, letters: &str) -> TableServiceClient {
    by_account(kind, letters, Duration::hours(1), SasProtocol::HttpHttps)
}

/// A token for a table, which the client can use but not make.
fn table_token(table: &str, letters: &str, range: [&str; 4]) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    let expiry = (OffsetDateTime::now_utc() + Duration::hours(1))
        .format(&format)
        .unwrap();
    let resource = format!("/table/{}/{}", setting("TABLE_ACCOUNT"), table.to_lowercase());
    let text = format!(
        "{letters}\n\n{expiry}\n{resource}\n\n\n\n2019-02-02\n{}",
        range.join("\n")
    );
    let signature = hmac_sha256(&text, &Secret::new(setting("TABLE_KEY"))).unwrap();
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs([
        ("sv", "2019-02-02"),
        ("tn", table),
        ("sp", letters),
        ("se", &expiry),
        ("sig", &signature),
    ]);
    for (name, value) in ["spk", "srk", "epk", "erk"].into_iter().zip(range) {
        if !value.is_empty() {
            query.append_pair(name, value);
        }
    }
    query.finish()
}

pub fn run() {
    check("allows what a token for the account says", || {
        let table = new_table();
        let name = table.table_name();
        insert(&table, &person("ada", json!({})));
        let reader = by_letters(AccountSasResourceType::Object, "r").table_client(name);
        assert_eq!(rows(reader.query()), "ada");
        refused(
            wait(at(&reader, "se", "ada").delete().into_future()),
            403,
            "AuthorizationPermissionMismatch",
        );
        refused(
            try_insert(&reader, &person("eva", json!({}))),
            403,
            "AuthorizationPermissionMismatch",
        );
        let writer = by_letters(AccountSasResourceType::Object, "au").table_client(name);
        insert(&writer, &person("eva", json!({})));
        wait(
            at(&writer, "se", "eva")
                .insert_or_merge(json!({}))
                .unwrap()
                .into_future(),
        )
        .unwrap();
    });
    check("keeps to the kinds of resources of a token", || {
        let created = new_name();
        let container =
            |letters| by_letters(AccountSasResourceType::Container, letters).table_client(&created);
        wait(container("w").create().into_future()).unwrap();
        refused(
            wait(container("w").delete().into_future()),
            403,
            "AuthorizationPermissionMismatch",
        );
        refused(
            pages(container("rwdlau").query()),
            403,
            "AuthorizationResourceTypeMismatch",
        );
        wait(container("d").delete().into_future()).unwrap();
    });
    check("refuses a token that is over", || {
        let late = by_account(
            AccountSasResourceType::Object,
            "r",
            -Duration::hours(1),
            SasProtocol::HttpHttps,
        );
        refused(
            pages(late.table_client(new_table().table_name()).query()),
            403,
            "AuthenticationFailed",
        );
    });
    check("refuses a token that asks for https", || {
        let secure = by_account(
            AccountSasResourceType::Object,
            "r",
            Duration::hours(1),
            SasProtocol::Https,
        );
        let table = secure.table_client(new_table().table_name());
        refused(pages(table.query()), 403, "AuthorizationProtocolMismatch");
    });
    check("opens a table by a token of its own", || {
        let table = new_table();
        let name = table.table_name();
        insert(&table, &person("ada", json!({})));
        let limited = by_token(&table_token(name, "ra", [""; 4])).table_client(name);
        assert_eq!(rows(limited.query()), "ada");
        insert(&limited, &person("eva", json!({})));
        refused(
            wait(at(&limited, "se", "ada").delete().into_future()),
            403,
            "AuthorizationPermissionMismatch",
        );
        let other = by_token(&table_token(name, "ra", [""; 4])).table_client(new_table().table_name());
        refused(pages(other.query()), 403, "AuthenticationFailed");
    });
    check("submits a batch by a token", || {
        let table = new_table();
        let name = table.table_name();
        let limited = by_token(&table_token(name, "rau", [""; 4])).table_client(name);
        let batch = limited.partition_key_client("se").transaction();
        wait(batch.insert_or_replace("ada", json!({})).unwrap().into_future()).unwrap();
        assert_eq!(rows(limited.query()), "ada");
    });
    check("keeps to the key range of a token", || {
        let table = new_table();
        let name = table.table_name();
        for partition_key in ["a", "b", "c"] {
            for row_key in ["1", "2"] {
                insert(
                    &table,
                    &json!({ "PartitionKey": partition_key, "RowKey": row_key }),
                );
            }
        }
        for (range, expected) in [
            (["b", "", "", ""], "1 2 1 2"),
            (["", "", "a", ""], "1 2"),
            (["a", "2", "b", "1"], "2 1"),
        ] {
            let limited = by_token(&table_token(name, "r", range)).table_client(name);
            assert_eq!(rows(limited.query()), expected, "{range:?}");
            assert_eq!(rows(limited.query().top(1)), expected, "{range:?}");
        }
        let limited = by_token(&table_token(name, "ra", ["b", "", "b", ""])).table_client(name);
        refused(try_get(&limited, "a", "1"), 404, "ResourceNotFound");
        let outside = json!({ "PartitionKey": "a", "RowKey": "3" });
        refused(try_insert(&limited, &outside), 403, "AuthorizationFailure");
    });
    check("refuses a wrong key", || {
        let wrong = StorageCredentials::access_key(setting("TABLE_ACCOUNT"), "d3Jvbmc=".to_owned());
        let table = service_by(wrong).table_client(new_table().table_name());
        refused(pages(table.query()), 403, "AuthenticationFailed");
    });
}
