// Ways to reach the server: connection strings, wrong keys, versions, the secondary, headers.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import {
  TableClient,
  TableServiceClient,
  all,
  connectionString,
  credential,
  endpoint,
  newTable,
  odata,
  options,
  refusal,
} from "./sdk.mjs";

const ADA = { partitionKey: "se", rowKey: "ada" };

check("connects by a connection string", async () => {
  const { tableName } = await newTable();

  const table = TableClient.fromConnectionString(connectionString, tableName, options);
  const service = TableServiceClient.fromConnectionString(connectionString, options);

  await table.createEntity(ADA);
  await table.submitTransaction([["upsert", ADA]]);
  assert.equal((await table.getEntity("se", "ada")).rowKey, "ada");
  assert.equal(
    (await all(service.listTables({ queryOptions: { filter: odata`TableName eq ${tableName}` } }))).length,
    1,
  );
});

check("knows the connection string of development storage", async () => {
  const service = TableServiceClient.fromConnectionString("UseDevelopmentStorage=true");

  assert.equal(service.url, "http://127.0.0.1:10002/devstoreaccount1");
});

check("connects with default retries", async () => {
  const { tableName } = await newTable();

  const table = new TableClient(endpoint, tableName, credential, { allowInsecureConnection: true });

  await table.createEntity(ADA);
  assert.equal((await refusal(table.createEntity(ADA))).statusCode, 409);
});

check("merges at a host the SDK takes for another service", async () => {
  // at `localhost` the SDK speaks its other dialect: POST with X-HTTP-Method instead of PATCH
  const { tableName } = await newTable();
  const table = new TableClient(endpoint.replace("127.0.0.1", "localhost"), tableName, credential, options);

  await table.upsertEntity({ ...ADA, age: 36 }, "Merge");
  await table.updateEntity({ ...ADA, city: "London" }, "Merge");
  await table.submitTransaction([["update", { ...ADA, title: "Countess" }, "Merge"]]);

  const { age, city, title } = await table.getEntity("se", "ada");
  assert.deepEqual({ age, city, title }, { age: 36, city: "London", title: "Countess" });
});

check("echoes versions", async () => {
  const { tableName } = await newTable();
  for (const version of ["2019-02-02", "2019-07-07", "2020-12-06"]) {
    const table = new TableClient(endpoint, tableName, credential, { ...options, version });
    assert.equal((await table.upsertEntity(ADA)).version, version);
    assert.equal((await table.getEntity("se", "ada")).rowKey, "ada");
  }
});

check("reads from the secondary", async () => {
  const table = await newTable();
  await table.createEntity(ADA);

  const secondary = new TableClient(`${endpoint}-secondary`, table.tableName, credential, options);

  assert.equal((await secondary.getEntity("se", "ada")).rowKey, "ada");
  assert.equal((await all(secondary.listEntities())).length, 1);
  const error = await refusal(secondary.deleteEntity("se", "ada"));
  assert.equal(error.statusCode, 403);
  assert.equal(error.details.odataError.code, "InsufficientAccountPermissions");
  assert.equal((await all(table.listEntities())).length, 1);
});
