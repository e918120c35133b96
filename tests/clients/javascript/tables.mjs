// Tables: created, listed and deleted.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import {
  RestError,
  all,
  newName,
  newTable,
  odata,
  refusal,
  refusals,
  responseTo,
  service,
  tableNamed,
} from "./sdk.mjs";

const ADA = { partitionKey: "se", rowKey: "ada" };

const names = async (filter) =>
  (await all(service.listTables({ queryOptions: { filter } }))).map((item) => item.name);

async function createFive() {
  const prefix = newName();
  const five = ["a", "b", "c", "d", "e"].map((letter) => prefix + letter);
  for (const name of five.toReversed()) await service.createTable(name);
  return { five, filter: `TableName ge '${prefix}' and TableName lt '${prefix}z'` };
}

check("creates, lists and deletes a table", async () => {
  const name = newName();

  const created = await responseTo((options) => service.createTable(name, options));
  assert.equal(created.status, 201);
  assert.deepEqual(await names(odata`TableName eq ${name}`), [name]);

  const deleted = await responseTo((options) => service.deleteTable(name, options));
  assert.equal(deleted.status, 204);
  assert.deepEqual(await names(odata`TableName eq ${name}`), []);
});

check("creates and deletes a table by its client", async () => {
  const table = tableNamed(newName());

  await table.createTable();
  assert.deepEqual(await names(odata`TableName eq ${table.tableName}`), [table.tableName]);

  await table.deleteTable();
  assert.deepEqual(await names(odata`TableName eq ${table.tableName}`), []);
});

check("creates a table that exists silently", async () => {
  const table = await newTable();
  await table.createEntity(ADA);

  const again = await responseTo((options) => table.createTable(options));
  await service.createTable(table.tableName);

  assert.equal(again.status, 409);
  assert.equal(again.parsedBody.odataError.code, "TableAlreadyExists");
  assert.equal((await table.getEntity("se", "ada")).rowKey, "ada");
});

check("deletes a missing table silently", async () => {
  await service.deleteTable(newName());
  await tableNamed(newName()).deleteTable();
});

check("refuses impossible names of tables", async () => {
  for (const name of ["my_table", "1table", "a-b", "táble"]) {
    const error = await refusal(service.createTable(name));
    assert.ok(error instanceof RestError, name);
    assert.equal(error.statusCode, 400);
    assert.equal(error.details.odataError.code, "InvalidResourceName");
  }
  for (const name of ["aa", "a".repeat(64)]) {
    const error = await refusal(service.createTable(name));
    assert.equal(error.statusCode, 400);
    assert.equal(error.details.odataError.code, "OutOfRangeInput");
  }
});

check("misses a table for every operation on entities", async () => {
  const table = tableNamed(newName());
  const operations = [
    table.createEntity(ADA),
    table.getEntity("se", "ada"),
    table.updateEntity(ADA, "Merge"),
    table.updateEntity(ADA, "Replace"),
    table.upsertEntity(ADA, "Merge"),
    table.upsertEntity(ADA, "Replace"),
    table.deleteEntity("se", "ada"),
    all(table.listEntities()),
  ];
  for (const error of await refusals(operations)) {
    assert.equal(error.statusCode, 404);
    assert.equal(error.details.odataError.code, "TableNotFound");
  }
});

check("lists all tables", async () => {
  const table = await newTable();

  const found = (await all(service.listTables())).map((item) => item.name);

  assert.ok(found.includes(table.tableName));
  assert.equal(new Set(found).size, found.length);
});

check("lists tables in pages", async () => {
  const { five, filter } = await createFive();

  const pages = await all(service.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 2 }));

  assert.deepEqual(
    pages.map((page) => page.map((item) => item.name)),
    [five.slice(0, 2), five.slice(2, 4), five.slice(4)],
  );
  assert.deepEqual(
    pages.map((page) => Boolean(page.continuationToken)),
    [true, true, false],
  );
});

check("continues a list of tables", async () => {
  const { five, filter } = await createFive();
  const list = () => service.listTables({ queryOptions: { filter } });
  const { value: first } = await list().byPage({ maxPageSize: 2 }).next();

  const rest = await all(list().byPage({ maxPageSize: 2, continuationToken: first.continuationToken }));

  assert.deepEqual(
    rest.flat().map((item) => item.name),
    five.slice(2),
  );
});

check("repeats the last page of tables by its token", async () => {
  await createFive();
  const pages = await all(service.listTables().byPage({ maxPageSize: 3 }));
  const { continuationToken } = pages.at(-2);

  const { value: again } = await service.listTables().byPage({ maxPageSize: 3, continuationToken }).next();

  assert.deepEqual(again, pages.at(-1));
});
