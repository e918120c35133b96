// Tables: created, listed and deleted.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import { all, newName, newTable, responseTo, service, tableNamed } from "./sdk.mjs";

const ADA = { partitionKey: "se", rowKey: "ada" };

const names = async (filter) =>
  (await all(service.listTables({ queryOptions: { filter } }))).map((item) => item.name);

async function createFive() {
  const prefix = newName();
  const five = ["a", "b", "c", "d", "e"].map((letter) => prefix + letter);
  for (const name of five.toReversed()) await service.createTable(name);
  return { five, filter: `TableName ge '${prefix}' and TableName lt '${prefix}z'` };
}

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
