// An account of the kind cosmos, which the SDK takes for Azure Cosmos DB because of its host.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import { all, AzureNamedKeyCredential, key, newName, options, refusals, TableClient, TableServiceClient } from "./sdk.mjs";

const endpoint = process.env.COSMOS_ENDPOINT;
const credential = new AzureNamedKeyCredential(endpoint.split("/").pop(), key);
const KEYS = { partitionKey: "se", rowKey: "ada" };
const ADA = { ...KEYS, age: 36, since: new Date("1852-11-27T00:00:00.000Z") };

async function newTable() {
  const table = new TableClient(endpoint, newName(), credential, options);
  await table.createTable();
  return table;
}

check("cosmos: lists and deletes tables", async () => {
  const { tableName } = await newTable();
  const service = new TableServiceClient(endpoint, credential, options);
  const named = { queryOptions: { filter: `TableName eq '${tableName}'` } };

  assert.deepEqual(
    (await all(service.listTables(named))).map(({ name }) => name),
    [tableName],
  );
  await service.deleteTable(tableName);
  assert.deepEqual(await all(service.listTables(named)), []);
});

check("cosmos: inserts, merges, replaces and deletes an entity", async () => {
  const table = await newTable();
  const { etag } = await table.createEntity(ADA);

  await table.updateEntity({ ...KEYS, city: "London" }, "Merge", { etag });
  const { age, city, since } = await table.getEntity("se", "ada");
  assert.deepEqual([age, city, since.getTime()], [36, "London", ADA.since.getTime()]);
  const [changed, empty] = await refusals([
    table.updateEntity(ADA, "Replace", { etag }),
    table.createEntity({ partitionKey: "", rowKey: "r" }),
  ]);
  assert.equal(changed.statusCode, 412);
  assert.equal(empty.details.odataError.code, "PropertiesNeedValue");
  await table.upsertEntity({ ...KEYS, age: 37 }, "Replace");
  await table.deleteEntity("se", "ada");
  const [gone] = await refusals([table.getEntity("se", "ada")]);
  assert.equal(gone.statusCode, 404);
});

check("cosmos: pages through entities", async () => {
  const table = await newTable();
  for (const rowKey of ["1", "2", "3"]) await table.createEntity({ partitionKey: "p", rowKey });

  const pages = await all(table.listEntities().byPage({ maxPageSize: 2 }));

  assert.deepEqual(
    pages.map((page) => page.map(({ rowKey }) => rowKey)),
    [["1", "2"], ["3"]],
  );
});

check("cosmos: submits a transaction, all or nothing", async () => {
  const table = await newTable();
  const eva = { partitionKey: "se", rowKey: "eva" };

  const { status, subResponses } = await table.submitTransaction([
    ["create", ADA],
    ["upsert", eva, "Merge"],
  ]);
  const [refused] = await refusals([
    table.submitTransaction([
      ["delete", eva],
      ["create", ADA],
    ]),
  ]);

  assert.deepEqual([status, subResponses.length], [202, 2]);
  assert.equal(refused.statusCode, 409);
  assert.equal((await all(table.listEntities())).length, 2);
});
