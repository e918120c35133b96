// The SDK, from the folder it is installed in, and clients of the server under test.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import dns from "node:dns";
import { createRequire } from "node:module";

const { SDK_FOLDER, TABLE_ENDPOINT, SECURE_ENDPOINT, HOST_ENDPOINT, TABLE_ACCOUNT, TABLE_KEY, REHEARSAL } =
  process.env;

// modules are looked for beside the importing file only, and the SDK is elsewhere
const require = createRequire(`${SDK_FOLDER}/package.json`);

export const {
  AzureNamedKeyCredential,
  AzureSASCredential,
  RestError,
  TableClient,
  TableServiceClient,
  TableTransaction,
  generateAccountSas,
  generateTableSas,
  odata,
} = require("@azure/data-tables");

/** The SDK of before, and the one before that, which speaks Atom. */
export const legacy = require("azure-storage");
export const oldest = require("azure");

// names below localhost are this machine's, but not every machine knows that
const lookup = dns.lookup;
dns.lookup = (host, ...rest) => lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, ...rest);

export const endpoint = TABLE_ENDPOINT;
/** The same account over TLS, by its path and by the name of its host. */
export const secureEndpoint = SECURE_ENDPOINT;
export const hostEndpoint = HOST_ENDPOINT;
export const account = TABLE_ACCOUNT;
export const key = TABLE_KEY;
export const credential = new AzureNamedKeyCredential(account, key);
export const connectionString = `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};TableEndpoint=${endpoint};`;

// a retry would hide a failure of the server, unless failures are rehearsed
export const options = { allowInsecureConnection: true, ...(REHEARSAL ? {} : { retryOptions: { maxRetries: 0 } }) };

export const service = new TableServiceClient(endpoint, credential, options);

export const newName = () => `People${randomUUID().replaceAll("-", "")}`;

export const tableNamed = (name) => new TableClient(endpoint, name, credential, options);

/** A client of a new, empty table. */
export async function newTable() {
  const table = tableNamed(newName());
  await table.createTable();
  return table;
}

/** All items of an asynchronous iterator. */
export async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

/** What refused operations throw, in their order. */
export async function refusals(promises) {
  return (await Promise.allSettled(promises)).map(({ status, reason }) => {
    assert.equal(status, "rejected", "an operation was not refused");
    return reason;
  });
}

/** What a refused operation throws. */
export const refusal = async (promise) => (await refusals([promise]))[0];

/** The service's code of an error, which XML errors have in a header only. */
export const codeOf = (error) => error.response.headers.get("x-ms-error-code") ?? error.code;

/** An old client whose methods give promises, but for those in `local`, which answer at once. */
export function promising(client, ...local) {
  return new Proxy(client, {
    get(target, name) {
      const member = target[name];
      if (typeof member !== "function") return member;
      if (local.includes(name)) return member.bind(target);
      return (...values) =>
        new Promise((resolve, reject) =>
          member.call(target, ...values, (error, result) => (error ? reject(error) : resolve(result))),
        );
    },
  });
}

/** Status and code of what an old client throws. */
export async function oldRefusal(promise) {
  try {
    await promise;
  } catch ({ statusCode, code }) {
    return [statusCode, code];
  }
  throw new Error("was not refused");
}

/** The raw response to an operation whose last argument is its options. */
export async function responseTo(operation) {
  let response;
  await operation({ onResponse: (raw) => (response = raw) });
  return response;
}
