use azure_data_tables::operations::TransactionBuilder;
use azure_data_tables::prelude::*;
use serde_json::json;

use crate::entities::{london, ODD_KEYS, OTHER_ETAG};
use crate::support::*;

/// A table with five entities that one batch wrote.
fn crowd() -> TableClient {
    let table = new_table();
    let mut batch = begin(&table);
    for row_key in ["a", "b", "c", "d", "e"] {
        batch = batch.insert(person(row_key, london())).unwrap();
    }
    assert_eq!(statuses(batch), [201; 5]);
    table
}

fn begin(table: &TableClient) -> TransactionBuilder {
    table.partition_key_client("se").transaction()
}

fn statuses(batch: TransactionBuilder) -> Vec<u16> {
    let response = wait(batch.into_future()).unwrap();
    response
        .operation_responses
        .iter()
        .map(|answer| answer.status_code as u16)
        .collect()
}

fn stored(table: &TableClient) -> String {
    let lines: Vec<_> = pages(table.query())
        .unwrap()
        .concat()
        .iter()
        .map(|entity| {
            let text = |name: &str| entity[name].as_str().unwrap_or("").to_owned();
            format!("{}:{},{}", text("RowKey"), entity["Age"], text("City"))
        })
        .collect();
    lines.join(" ")
}

/// Checks that a batch is refused for its third operation, and that nothing of it stays.
fn undone(status: u16, third: impl FnOnce(TransactionBuilder) -> azure_core::Result<TransactionBuilder>) {
    let table = crowd();
    let before = stored(&table);
    let batch = begin(&table)
        .insert_or_replace("b", json!({ "Age": 9 }))
        .unwrap()
        .delete("c", None)
        .unwrap();
    // the client reads no more of a refusal than its status
    assert_eq!(statuses(third(batch).unwrap()), [status]);
    assert_eq!(stored(&table), before);
}

pub fn run() {
    check("writes every kind of operation in a batch", || {
        let table = crowd();
        let changed = json!({ "Age": 2 });
        let batch = begin(&table)
            .insert(person("f", changed.clone()))
            .unwrap()
            .delete("a", None)
            .unwrap()
            .merge("b", &changed, Some(IfMatchCondition::Any))
            .unwrap()
            .update("c", &changed, Some(IfMatchCondition::Any))
            .unwrap()
            .insert_or_merge("d", &changed)
            .unwrap()
            .insert_or_replace("e", &changed)
            .unwrap()
            .insert_or_merge("g", &changed)
            .unwrap()
            .insert_or_replace("h", &changed)
            .unwrap();
        assert_eq!(statuses(batch), [201, 204, 204, 204, 204, 204, 204, 204]);
        assert_eq!(stored(&table), "b:2,London c:2, d:2,London e:2, f:2, g:2, h:2,");
    });
    check("tells the ETags and the places of a batch", || {
        let table = new_table();
        let batch = begin(&table)
            .insert(person("a", london()))
            .unwrap()
            .insert_or_merge("b", london())
            .unwrap();
        let answers = wait(batch.into_future()).unwrap().operation_responses;
        assert_eq!(answers[0].etag, Some(try_get(&table, "se", "a").unwrap().1));
        assert_eq!(answers[1].etag, Some(try_get(&table, "se", "b").unwrap().1));
        assert!(answers[0]
            .location
            .as_ref()
            .unwrap()
            .as_str()
            .ends_with("(PartitionKey='se',RowKey='a')"));
    });
    check("changes the versions that a batch names", || {
        let table = new_table();
        let (first, second) = (
            insert(&table, &person("a", json!({}))),
            insert(&table, &person("b", json!({}))),
        );
        let batch = begin(&table)
            .update("a", london(), Some(first.into()))
            .unwrap()
            .delete("b", Some(second.into()))
            .unwrap();
        assert_eq!(statuses(batch), [204, 204]);
        assert_eq!(stored(&table), "a:36,London");
    });
    check("undoes a batch with an entity that exists", || {
        undone(409, |batch| batch.insert(person("a", json!({}))));
    });
    check("undoes a batch with an entity that is missing", || {
        undone(404, |batch| batch.delete("nobody", None));
    });
    check("undoes a batch with another version", || {
        let other = IfMatchCondition::Etag(OTHER_ETAG.into());
        undone(412, |batch| batch.merge("a", json!({}), Some(other)));
    });
    check("undoes a batch with an entity that is none", || {
        undone(400, |batch| batch.insert_or_merge("d", json!({ "a-b": 1 })));
    });
    check("writes a hundred entities in a batch, and no more", || {
        let table = new_table();
        let all = |count: usize| {
            let rows = (0..count).map(|number| format!("{number:03}"));
            rows.fold(begin(&table), |batch, row| {
                batch.insert_or_replace(&row, json!({ "Row": row })).unwrap()
            })
        };
        assert_eq!(statuses(all(100)), [204; 100]);
        assert_eq!(pages(table.query()).unwrap().concat().len(), 100);
        assert_eq!(statuses(all(101)), [400]);
    });
    check("serves odd keys and values in a batch", || {
        let table = new_table();
        let batch = ODD_KEYS.iter().fold(begin(&table), |batch, odd| {
            batch
                .insert_or_replace(*odd, json!({ "Value": format!("--changeset_x\n\n\0{odd}") }))
                .unwrap()
        });
        assert_eq!(statuses(batch), [204; 24]);
        for odd in ODD_KEYS {
            assert_eq!(
                get(&table, "se", odd)["Value"],
                json!(format!("--changeset_x\n\n\0{odd}"))
            );
        }
    });
}
