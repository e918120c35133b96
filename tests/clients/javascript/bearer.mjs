// The SDK with access tokens over TLS; what it found is one line of JSON.

import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const { SDK_FOLDER, TABLE_ENDPOINT, CONTRIBUTOR, READER } = process.env;
const { TableServiceClient, TableClient } = createRequire(`${SDK_FOLDER}/package.json`)("@azure/data-tables");

const options = { retryOptions: { maxRetries: 0 } };
const name = `People${randomUUID().replaceAll("-", "")}`;

/** Gives its tokens in order, the last one for ever, and remembers what it was asked for. */
function credential(...tokens) {
  const asked = [];
  const getToken = async (scopes, { tenantId = null } = {}) => {
    asked.push([[scopes].flat(), tenantId]);
    return { token: tokens[Math.min(asked.length, tokens.length) - 1], expiresOnTimestamp: Date.now() + 600_000 };
  };
  return { getToken, asked };
}

async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

const refusal = (promise) => promise.then(() => "nothing", (error) => error);

const service = new TableServiceClient(TABLE_ENDPOINT, credential(CONTRIBUTOR), options);
await service.createTable(name);
const table = new TableClient(TABLE_ENDPOINT, name, credential(CONTRIBUTOR), options);
await table.createEntity({ partitionKey: "se", rowKey: "ada" });
const contributor = (await all(table.listEntities())).map(({ rowKey }) => rowKey);

const reader = new TableClient(TABLE_ENDPOINT, name, credential(READER), options);
await reader.getEntity("se", "ada");
const refused = await refusal(reader.deleteEntity("se", "ada"));

const second = credential("malformed", READER);
await new TableClient(TABLE_ENDPOINT, name, second, options).getEntity("se", "ada");
const third = await refusal(all(new TableServiceClient(TABLE_ENDPOINT, credential("malformed"), options).listTables()));

await service.deleteTable(name);
console.log(
  JSON.stringify({
    contributor,
    reader: refused.details?.odataError?.code ?? refused.code,
    asked: second.asked,
    "given up": third.statusCode,
  }),
);
