// Stored access policies, properties of the service and its statistics.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import {
  TableClient,
  TableServiceClient,
  codeOf,
  credential,
  endpoint,
  hostEndpoint,
  newName,
  newTable,
  options,
  refusal,
  service,
} from "./sdk.mjs";

const START = new Date("2021-06-08T02:10:09Z");
const EXPIRY = new Date("2999-12-31T23:59:59Z");

check("keeps policies as they were set", async () => {
  const table = await newTable();
  const policies = [
    { id: "all", accessPolicy: { start: START, expiry: EXPIRY, permission: "raud" } },
    { id: "start", accessPolicy: { start: START } },
    { id: "expiry", accessPolicy: { expiry: EXPIRY } },
    { id: "é<&>\"'😀", accessPolicy: { permission: "dr" } },
    // the SDK makes an empty policy of none
    { id: "x".repeat(64), accessPolicy: {} },
  ];

  await table.setAccessPolicy(policies);

  assert.deepEqual(found(await table.getAccessPolicy()), policies);
});

check("keeps policies of a table at the name of a host", async () => {
  const table = new TableClient(hostEndpoint, newName(), credential, options);
  await table.createTable();

  await table.setAccessPolicy([{ id: "a", accessPolicy: { permission: "r" } }]);

  assert.deepEqual(found(await table.getAccessPolicy()), [{ id: "a", accessPolicy: { permission: "r" } }]);
});

check("keeps the properties of the service as they were set", async () => {
  const before = await service.getProperties();
  const week = { enabled: true, days: 7 };
  const properties = {
    logging: { version: "1.0", read: true, write: true, delete: false, retentionPolicy: week },
    hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: week },
    minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
    cors: [
      {
        allowedOrigins: "https://a.example,https://b.example",
        allowedMethods: "GET,MERGE",
        allowedHeaders: "x-ms-*",
        exposedHeaders: "x-ms-*,etag",
        maxAgeInSeconds: 60,
      },
      {
        allowedOrigins: "*",
        allowedMethods: "GET",
        allowedHeaders: "",
        exposedHeaders: "",
        maxAgeInSeconds: 0,
      },
    ],
  };
  try {
    await service.setProperties(properties);

    const { logging, hourMetrics, minuteMetrics, cors } = await service.getProperties();
    assert.deepEqual(defined({ logging, hourMetrics, minuteMetrics, cors }), properties);
  } finally {
    await restore(before);
  }
});

check("has statistics at the secondary only", async () => {
  // which the SDK finds by the name of the host
  const named = new TableServiceClient(hostEndpoint, credential, options);
  const { geoReplication } = await named.getStatistics();
  assert.equal(geoReplication.status, "live");
  assert.ok(Math.abs(Date.now() - geoReplication.lastSyncTime) < 3600_000);

  const error = await refusal(new TableServiceClient(endpoint, credential, options).getStatistics());
  assert.equal(codeOf(error), "InvalidQueryParameterValue");
});

/** Policies without the headers that came with them. */
const found = (policies) => [...policies].map(defined);

/** Without members that are undefined, which the SDK adds. */
function defined(value) {
  if (Array.isArray(value)) return value.map(defined);
  if (value?.constructor !== Object) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, defined(member)]));
}

async function restore({ logging, hourMetrics, minuteMetrics, cors }) {
  await service.setProperties({ logging, hourMetrics, minuteMetrics, cors: cors ?? [] });
}
