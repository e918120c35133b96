"""Sample programs with ``%s`` where the connection string goes, and no other percent sign."""

from typing import Final

COMPOSE: Final = """\
services:
  app:
    environment:
      TABLES_CONNECTION_STRING: "%s"
"""

PYTHON: Final = """\
# pip install azure-data-tables
from azure.data.tables import TableServiceClient

service = TableServiceClient.from_connection_string(
    "%s"
)
table = service.create_table_if_not_exists("hello")
table.upsert_entity({"PartitionKey": "se", "RowKey": "ada", "Name": "Ada Lovelace"})
for entity in table.query_entities("PartitionKey eq 'se'"):
    print(entity["RowKey"], entity["Name"])
"""

JAVASCRIPT: Final = """\
// npm install @azure/data-tables
import { TableClient } from "@azure/data-tables";

const connectionString =
  "%s";
const table = TableClient.fromConnectionString(connectionString, "hello", {
  allowInsecureConnection: connectionString.includes("Protocol=http;"),
});
await table.createTable();
await table.upsertEntity({ partitionKey: "se", rowKey: "ada", Name: "Ada Lovelace" });
for await (const entity of table.listEntities({ queryOptions: { filter: "PartitionKey eq 'se'" } })) {
  console.log(entity.rowKey, entity.Name);
}
"""

CSHARP: Final = """\
// dotnet add package Azure.Data.Tables
using Azure.Data.Tables;

var service = new TableServiceClient(
    "%s");
var table = service.GetTableClient("hello");
await table.CreateIfNotExistsAsync();
await table.UpsertEntityAsync(new TableEntity("se", "ada") { ["Name"] = "Ada Lovelace" });
await foreach (var entity in table.QueryAsync<TableEntity>(entity => entity.PartitionKey == "se"))
{
    Console.WriteLine($"{entity.RowKey} {entity["Name"]}");
}
"""

GO: Final = """\
// go get github.com/Azure/azure-sdk-for-go/sdk/data/aztables
package main

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func main() {
	ctx := context.Background()
	service, err := aztables.NewServiceClientFromConnectionString(
		"%s", nil)
	if err != nil {
		panic(err)
	}
	table := service.NewClient("hello")
	table.CreateTable(ctx, nil) // an error when it is there already
	entity := []byte(`{"PartitionKey": "se", "RowKey": "ada", "Name": "Ada Lovelace"}`)
	if _, err := table.UpsertEntity(ctx, entity, nil); err != nil {
		panic(err)
	}
	filter := "PartitionKey eq 'se'"
	for pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			panic(err)
		}
		for _, entity := range page.Entities {
			fmt.Println(string(entity))
		}
	}
}
"""
