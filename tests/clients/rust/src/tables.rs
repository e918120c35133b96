use azure_core::Result;
use azure_data_tables::operations::ListTablesBuilder;
use futures::StreamExt;

use crate::support::*;

fn pages_of_tables(query: ListTablesBuilder) -> Result<Vec<Vec<String>>> {
    wait(async {
        let mut stream = query.into_stream();
        let mut found = Vec::new();
        while let Some(page) = stream.next().await {
            found.push(page?.tables.into_iter().map(|table| table.name).collect());
        }
        Ok(found)
    })
}

pub fn run() {
    check("creates, lists and deletes a table", || {
        let name = new_name();
        let named = || service().list().filter(format!("TableName eq '{name}'"));
        let table = service().table_client(&name);
        assert_eq!(wait(table.create().into_future()).unwrap().table.name, name);
        assert_eq!(pages_of_tables(named()).unwrap().concat(), [name.clone()]);
        wait(table.delete().into_future()).unwrap();
        assert!(pages_of_tables(named()).unwrap().concat().is_empty());
    });
    check("tells the metadata of a table", || {
        let name = new_name();
        let table = wait(service().table_client(&name).create().into_future())
            .unwrap()
            .table;
        assert_eq!(
            table.id,
            format!("{}/Tables('{name}')", setting("TABLE_ENDPOINT"))
        );
        assert_eq!(table.edit_link, format!("Tables('{name}')"));
        assert_eq!(table.table_type, format!("{}.Tables", setting("TABLE_ACCOUNT")));
    });
    check("lists tables in pages", || {
        let prefix = new_name();
        let names: Vec<_> = ["a", "b", "c", "d", "e"]
            .map(|letter| format!("{prefix}{letter}"))
            .into();
        for name in names.iter().rev() {
            wait(service().table_client(name).create().into_future()).unwrap();
        }
        let filter = format!("TableName ge '{prefix}a' and TableName le '{prefix}z'");
        let pages = pages_of_tables(service().list().filter(filter).top(2)).unwrap();
        assert_eq!(pages, [&names[..2], &names[2..4], &names[4..]]);
    });
    check("refuses a table that exists", || {
        let table = new_table();
        refused(wait(table.create().into_future()), 409, "TableAlreadyExists");
    });
    check("refuses to delete a missing table", || {
        let table = service().table_client(new_name());
        refused(wait(table.delete().into_future()), 404, "ResourceNotFound");
    });
    check("refuses a table whose name is none", || {
        refused(
            wait(service().table_client("1a").create().into_future()),
            400,
            "InvalidResourceName",
        );
        let long = "a".repeat(64);
        refused(
            wait(service().table_client(long).create().into_future()),
            400,
            "OutOfRangeInput",
        );
    });
    check("reads from the secondary", || {
        let table = new_table();
        insert(&table, &person("ada", serde_json::json!({ "Age": 36 })));
        let endpoint = format!("{}-secondary", setting("TABLE_ENDPOINT"));
        let second = service_at(endpoint, account_key()).table_client(table.table_name());
        assert_eq!(rows(second.query()), "ada");
        let deleted = wait(at(&second, "se", "ada").delete().into_future());
        refused(deleted, 403, "InsufficientAccountPermissions");
    });
}
