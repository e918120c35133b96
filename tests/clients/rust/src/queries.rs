use azure_data_tables::prelude::*;
use serde_json::json;

use crate::support::*;

const GUID: &str = "cf8ef051-1b7d-4e93-a1e5-a3944d7e441c";

/// A table with two entities, one of low and one of high values.
fn zoo() -> TableClient {
    let table = new_table();
    let other = GUID.replace('c', "d");
    for (row, text, flag, count, ratio, big, moment, id, data) in [
        (
            "low",
            "o'low",
            false,
            -3,
            0.5,
            "-5000000000",
            "2020-01-01T12:00:00Z",
            GUID,
            "AAE=",
        ),
        (
            "high",
            "high",
            true,
            3,
            1.5,
            "5000000000",
            "2021-01-01T12:00:00Z",
            &other,
            "AAI=",
        ),
    ] {
        insert(
            &table,
            &person(
                row,
                json!({
                    "Text": text, "Flag": flag, "Count": count, "Ratio": ratio,
                    "Big": big, "Big@odata.type": "Edm.Int64",
                    "Moment": moment, "Moment@odata.type": "Edm.DateTime",
                    "Id": id, "Id@odata.type": "Edm.Guid",
                    "Data": data, "Data@odata.type": "Edm.Binary",
                }),
            ),
        );
    }
    table
}

/// A table with entities of one partition.
fn table_of(count: usize) -> TableClient {
    let table = new_table();
    let numbers: Vec<_> = (0..count).collect();
    for chunk in numbers.chunks(100) {
        let batch = chunk
            .iter()
            .fold(table.partition_key_client("se").transaction(), |batch, number| {
                let values = json!({ "Number": number, "Even": number % 2 == 0 });
                batch.insert(person(&format!("{number:04}"), values)).unwrap()
            });
        wait(batch.into_future()).unwrap();
    }
    table
}

fn sizes(query: azure_data_tables::operations::QueryEntityBuilder) -> Vec<usize> {
    pages(query).unwrap().iter().map(Vec::len).collect()
}

pub fn run() {
    check("filters by values of every type", || {
        let table = zoo();
        for filter in [
            "Text eq 'o''low'",
            "Text gt 'n'",
            "Flag eq false",
            "Count eq -3",
            "Count lt 0",
            "Ratio eq 0.5",
            "Ratio lt 1",
            "Big eq -5000000000L",
            "Big lt 0L",
            "Moment eq datetime'2020-01-01T12:00:00Z'",
            "Moment lt datetime'2020-06-01T00:00:00Z'",
            "Id eq guid'cf8ef051-1b7d-4e93-a1e5-a3944d7e441c'",
            "Data eq X'0001'",
            "Data lt binary'0002'",
        ] {
            assert_eq!(rows(table.query().filter(filter)), "low", "{filter}");
        }
    });
    check("filters by logic and by keys", || {
        let table = zoo();
        for (filter, expected) in [
            ("not (Flag eq true)", "low"),
            ("Flag eq true or Count lt 0", "high low"),
            ("Flag eq true and Count lt 0", ""),
            ("PartitionKey eq 'se' and RowKey ge 'l'", "low"),
            ("RowKey ne 'low' and Text ge 'h'", "high"),
            ("Timestamp ge datetime'2020-01-01T00:00:00Z'", "high low"),
            ("Missing eq 'x'", ""),
        ] {
            assert_eq!(rows(table.query().filter(filter)), expected, "{filter}");
        }
    });
    check("refuses a filter that is none", || {
        refused(pages(new_table().query().filter("Count eq")), 400, "InvalidInput");
    });
    check("selects properties", || {
        let found = pages(zoo().query().select("RowKey,Count").filter("RowKey eq 'low'"))
            .unwrap()
            .concat();
        assert_eq!(
            (&found[0]["Count"], &found[0]["RowKey"]),
            (&json!(-3), &json!("low"))
        );
        assert!(found[0].get("Text").is_none() && found[0].get("PartitionKey").is_none());
    });
    check("follows pages to the end", || {
        let table = table_of(7);
        for (top, expected) in [
            (1, vec![1; 7]),
            (2, vec![2, 2, 2, 1]),
            (3, vec![3, 3, 1]),
            (7, vec![7]),
            (8, vec![7]),
        ] {
            assert_eq!(sizes(table.query().top(top)), expected);
            assert_eq!(rows(table.query().top(top)), "0000 0001 0002 0003 0004 0005 0006");
        }
    });
    check("continues with a filter and a selection", || {
        let query = table_of(7).query().top(2).filter("Even eq true").select("RowKey");
        assert_eq!(sizes(query.clone()), [2, 2]);
        assert_eq!(rows(query), "0000 0002 0004 0006");
    });
    check("follows more than a thousand entities", || {
        assert_eq!(sizes(table_of(1050).query()), [1000, 50]);
    });
    check("continues among odd keys", || {
        let table = new_table();
        let keys = ["", "'", "+ %", "a b", "é", "😀"];
        for partition_key in keys {
            for row_key in keys {
                insert(
                    &table,
                    &json!({ "PartitionKey": partition_key, "RowKey": row_key }),
                );
            }
        }
        assert_eq!(sizes(table.query().top(5)), [5, 5, 5, 5, 5, 5, 5, 1]);
        assert_eq!(rows(table.query().top(5)), vec![keys.join(" "); 6].join(" "));
    });
}
