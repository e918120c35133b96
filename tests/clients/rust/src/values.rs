use serde_json::{json, Map, Value};

use crate::support::*;

/// Checks that an insert, a merge and a replacement store values and their types, and that they are read as expected.
fn kept(values: Value, expected: Value) {
    let table = new_table();
    insert(&table, &person("inserted", values.clone()));
    wait(
        at(&table, "se", "merged")
            .insert_or_merge(&values)
            .unwrap()
            .into_future(),
    )
    .unwrap();
    wait(
        at(&table, "se", "replaced")
            .insert_or_replace(&values)
            .unwrap()
            .into_future(),
    )
    .unwrap();
    for row_key in ["inserted", "merged", "replaced"] {
        let read = get(&table, "se", row_key);
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&read[name], value, "{name} of {row_key}");
        }
    }
}

fn same(values: Value) {
    kept(values.clone(), values);
}

/// Values of one type with their annotations.
fn typed(edm_type: &str, values: &[&str]) -> Value {
    let mut properties = Map::new();
    for (number, value) in values.iter().enumerate() {
        properties.insert(format!("P{number}"), json!(value));
        properties.insert(format!("P{number}@odata.type"), json!(edm_type));
    }
    Value::Object(properties)
}

pub fn run() {
    check("keeps text of every kind and length", || {
        same(json!({
            "Empty": "",
            "Quoted": r#"it's "quoted" \ %2F"#,
            "Controls": "\0\t\r\n\u{7f}",
            "Unicode": "é 你好 😀 \u{202e}\u{2028}",
            "Blanks": "  ",
            "Date": "2020-01-01T00:00:00Z",
            "Long": "é".repeat(32768),
        }));
    });
    check("keeps integers of 32 bits up to their bounds", || {
        same(json!({ "Min": i32::MIN, "Zero": 0, "Max": i32::MAX }));
    });
    check("keeps integers of 64 bits up to their bounds", || {
        same(typed(
            "Edm.Int64",
            &["-9223372036854775808", "0", "9223372036854775807"],
        ));
    });
    check("keeps Doubles", || {
        same(json!({ "Half": 0.5, "Whole": 1.0, "Tiny": 5e-324, "Huge": f64::MAX, "Tenth": 0.1 }));
    });
    check("keeps the sign of zero", || {
        let table = new_table();
        insert(&table, &person("ada", json!({ "Zero": -0.0 })));
        let zero = get(&table, "se", "ada")["Zero"].as_f64().unwrap();
        assert!(zero == 0.0 && zero.is_sign_negative());
    });
    check("keeps NaN and the infinities", || {
        same(typed("Edm.Double", &["NaN", "Infinity", "-Infinity"]));
    });
    check("keeps Booleans", || same(json!({ "Yes": true, "No": false })));
    check("keeps a Guid", || {
        same(typed("Edm.Guid", &["cf8ef051-1b7d-4e93-a1e5-a3944d7e441c"]));
    });
    check("keeps bytes", || {
        let long = "AAEC".repeat(21845); // 65,535 bytes
        same(typed("Edm.Binary", &["", "AP8=", &long]));
    });
    check("keeps times to 100 nanoseconds", || {
        same(typed(
            "Edm.DateTime",
            &[
                "1601-01-01T00:00:00Z",
                "1970-01-01T00:00:00Z",
                "2025-03-19T23:01:55.1234567Z",
                "9999-12-31T23:59:59.9999999Z",
            ],
        ));
        kept(
            typed(
                "Edm.DateTime",
                &["2014-05-07T08:20:53.000Z", "2014-05-07T10:20:53.2+02:00"],
            ),
            json!({ "P0": "2014-05-07T08:20:53Z", "P1": "2014-05-07T08:20:53.2Z" }),
        );
    });
    check("refuses values that have no place in their type", || {
        let table = new_table();
        for (edm_type, text) in [
            ("Edm.Int64", "9223372036854775808"),
            ("Edm.Guid", "nonsense"),
            ("Edm.DateTime", "2020-13-01T00:00:00Z"),
            ("Edm.Binary", "*"),
        ] {
            refused(
                try_insert(&table, &person("ada", typed(edm_type, &[text]))),
                400,
                "InvalidInput",
            );
        }
    });
    check("refuses a text that is too long", || {
        let long = json!({ "X": "x".repeat(32769) });
        refused(
            try_insert(&new_table(), &person("ada", long)),
            400,
            "PropertyValueTooLarge",
        );
    });
}
