use azure_core::Etag;
use azure_data_tables::prelude::*;
use serde_json::{json, Value};

use crate::support::*;

pub const OTHER_ETAG: &str = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\"";
pub const ODD_KEYS: [&str; 24] = [
    "\"", "{}", "[]", "()", ":", "@", "&", "=", "+", ",", "$", "<>", ";", "~", "^", "!", "%", "*", "%2F",
    "a b", "|", "é", "你好", "😀",
];

pub fn london() -> Value {
    json!({ "Age": 36, "City": "London" })
}

fn update(entity: &EntityClient, values: &Value, condition: IfMatchCondition) -> azure_core::Result<Etag> {
    Ok(wait(entity.update(values, condition)?.into_future())?.etag)
}

fn merge(entity: &EntityClient, values: &Value, condition: IfMatchCondition) -> azure_core::Result<Etag> {
    Ok(wait(entity.merge(values, condition)?.into_future())?.etag)
}

fn delete(entity: &EntityClient, etag: Etag) -> azure_core::Result<()> {
    wait(
        entity
            .delete()
            .if_match(IfMatchCondition::Etag(etag))
            .into_future(),
    )
    .map(|_| ())
}

pub fn run() {
    check("inserts with an echo", || {
        let table = new_table();
        let builder = table.insert::<_, Value>(person("ada", london())).unwrap();
        let answer = wait(builder.return_entity(true).into_future()).unwrap();
        let echo = answer.entity_with_metadata.unwrap();
        assert_eq!(content(echo.entity.clone()), london());
        assert_eq!(
            (&echo.entity["PartitionKey"], &echo.entity["RowKey"]),
            (&json!("se"), &json!("ada"))
        );
        assert_eq!(echo.metadata.etag, answer.etag.to_string());
        assert!(echo.metadata.id.ends_with("(PartitionKey='se',RowKey='ada')"));
        assert_eq!(answer.location.unwrap().as_str(), echo.metadata.id);
    });
    check("inserts without an echo", || {
        let table = new_table();
        let builder = table.insert::<_, Value>(person("ada", london())).unwrap();
        let answer = wait(builder.into_future()).unwrap();
        assert!(answer.entity_with_metadata.is_none());
        assert_eq!(try_get(&table, "se", "ada").unwrap().1, answer.etag);
    });
    check("reads an entity with its metadata", || {
        let table = new_table();
        let etag = insert(
            &table,
            &person("ada", json!({ "Big": "5", "Big@odata.type": "Edm.Int64" })),
        );
        let (entity, read) = try_get(&table, "se", "ada").unwrap();
        assert_eq!(
            (read, &entity["odata.etag"]),
            (etag.clone(), &json!(etag.to_string()))
        );
        assert_eq!(
            entity["odata.type"],
            json!(format!("{}.{}", setting("TABLE_ACCOUNT"), table.table_name()))
        );
        assert_eq!(entity["Timestamp@odata.type"], json!("Edm.DateTime"));
        assert_eq!(entity["Big@odata.type"], json!("Edm.Int64"));
    });
    check("reads selected properties", || {
        let table = new_table();
        insert(&table, &person("ada", london()));
        let response = wait(
            at(&table, "se", "ada")
                .get::<Value>()
                .select("City,Missing")
                .into_future(),
        )
        .unwrap();
        assert_eq!(
            content(response.entity),
            json!({ "City": "London", "Missing": null })
        );
    });
    check("merges and replaces by ETag", || {
        let table = new_table();
        let ada = at(&table, "se", "ada");
        let first = insert(&table, &person("ada", london()));
        let merged = merge(&ada, &json!({ "Age": 37 }), first.into()).unwrap();
        assert_eq!(get(&table, "se", "ada"), json!({ "Age": 37, "City": "London" }));
        let replaced = update(&ada, &json!({ "Title": "Countess" }), merged.into()).unwrap();
        assert_eq!(get(&table, "se", "ada"), json!({ "Title": "Countess" }));
        assert_eq!(try_get(&table, "se", "ada").unwrap().1, replaced);
    });
    check("updates whatever the version is", || {
        let table = new_table();
        let ada = at(&table, "se", "ada");
        insert(&table, &person("ada", london()));
        merge(&ada, &json!({ "Age": 1 }), IfMatchCondition::Any).unwrap();
        update(&ada, &json!({ "Age": 2 }), IfMatchCondition::Any).unwrap();
        assert_eq!(get(&table, "se", "ada"), json!({ "Age": 2 }));
    });
    check("refuses to change another version", || {
        let table = new_table();
        let ada = at(&table, "se", "ada");
        let stale = insert(&table, &person("ada", london()));
        merge(&ada, &json!({ "Age": 40 }), IfMatchCondition::Any).unwrap();
        for etag in [stale, Etag::from(OTHER_ETAG)] {
            refused(
                merge(&ada, &json!({}), etag.clone().into()),
                412,
                "UpdateConditionNotSatisfied",
            );
            refused(
                update(&ada, &json!({}), etag.clone().into()),
                412,
                "UpdateConditionNotSatisfied",
            );
            refused(delete(&ada, etag), 412, "UpdateConditionNotSatisfied");
        }
        assert_eq!(get(&table, "se", "ada"), json!({ "Age": 40, "City": "London" }));
    });
    check("upserts entities that exist and that do not", || {
        let table = new_table();
        for values in [london(), json!({ "Age": 37 })] {
            wait(
                at(&table, "se", "m")
                    .insert_or_merge(&values)
                    .unwrap()
                    .into_future(),
            )
            .unwrap();
            wait(
                at(&table, "se", "r")
                    .insert_or_replace(&values)
                    .unwrap()
                    .into_future(),
            )
            .unwrap();
        }
        assert_eq!(get(&table, "se", "m"), json!({ "Age": 37, "City": "London" }));
        assert_eq!(get(&table, "se", "r"), json!({ "Age": 37 }));
    });
    check("deletes an entity by ETag", || {
        let table = new_table();
        let etag = insert(&table, &person("ada", json!({})));
        delete(&at(&table, "se", "ada"), etag).unwrap();
        refused(try_get(&table, "se", "ada"), 404, "ResourceNotFound");
    });
    check("refuses an entity that exists", || {
        let table = new_table();
        insert(&table, &person("ada", london()));
        refused(
            try_insert(&table, &person("ada", json!({}))),
            409,
            "EntityAlreadyExists",
        );
        assert_eq!(get(&table, "se", "ada"), london());
    });
    check("refuses entities that are missing", || {
        let table = new_table();
        let ada = at(&table, "se", "ada");
        refused(
            merge(&ada, &json!({}), IfMatchCondition::Any),
            404,
            "ResourceNotFound",
        );
        refused(
            update(&ada, &json!({}), IfMatchCondition::Any),
            404,
            "ResourceNotFound",
        );
        refused(wait(ada.delete().into_future()), 404, "ResourceNotFound");
        refused(try_get(&table, "se", "ada"), 404, "ResourceNotFound");
    });
    check("refuses entities of a missing table", || {
        let table = service().table_client(new_name());
        refused(
            try_insert(&table, &person("ada", json!({}))),
            404,
            "TableNotFound",
        );
        refused(pages(table.query()), 404, "TableNotFound");
    });
    check("serves keys with special characters", || {
        let table = new_table();
        for characters in ODD_KEYS {
            let (partition_key, row_key) = (format!("foo{characters}"), format!("{characters}bar"));
            let values = json!({ "PartitionKey": partition_key, "RowKey": row_key, "Value": characters });
            let entity = at(&table, &partition_key, &row_key);
            let first = insert(&table, &values);
            let merged = merge(&entity, &values, first.into()).unwrap();
            let replaced = update(&entity, &values, merged.into()).unwrap();
            let (read, etag) = try_get(&table, &partition_key, &row_key).unwrap();
            assert_eq!(
                (&read["PartitionKey"], &read["RowKey"]),
                (&values["PartitionKey"], &values["RowKey"])
            );
            assert_eq!((&read["Value"], &etag), (&values["Value"], &replaced));
            let filter = format!("PartitionKey eq '{partition_key}' and Value eq '{characters}'");
            assert_eq!(rows(table.query().filter(filter)), row_key);
            delete(&entity, replaced).unwrap();
        }
        assert_eq!(rows(table.query()), "");
    });
    check("serves keys with quotation marks", || {
        let table = new_table();
        insert(&table, &json!({ "PartitionKey": "it's", "RowKey": "'" }));
        let entity = at(&table, "it''s", "''"); // the client does not double them
        update(&entity, &json!({ "Value": "o'" }), IfMatchCondition::Any).unwrap();
        assert_eq!(get(&table, "it''s", "''"), json!({ "Value": "o'" }));
        assert_eq!(
            rows(table.query().filter("RowKey eq '''' and Value eq 'o'''")),
            "'"
        );
        wait(entity.delete().into_future()).unwrap();
    });
    check("serves empty keys", || {
        let table = new_table();
        insert(&table, &json!({ "PartitionKey": "", "RowKey": "" }));
        merge(&at(&table, "", ""), &london(), IfMatchCondition::Any).unwrap();
        assert_eq!(get(&table, "", ""), london());
        wait(at(&table, "", "").delete().into_future()).unwrap();
    });
    check("refuses keys with forbidden characters", || {
        let table = new_table();
        for character in ["/", "\\", "#", "?"] {
            refused(
                try_insert(&table, &person(character, json!({}))),
                400,
                "OutOfRangeInput",
            );
        }
    });
    check("refuses what no entity can be", || {
        let table = new_table();
        refused(
            try_insert(&table, &person("ada", json!({ "a-b": 1 }))),
            400,
            "PropertyNameInvalid",
        );
        refused(
            try_insert(&table, &person(&"x".repeat(2000), json!({}))),
            400,
            "KeyValueTooLarge",
        );
    });
}
