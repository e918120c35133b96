// An account from its creation to its deletion, by a client whose types are generated from the OpenAPI document.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const { TABLERO_URL, TABLERO_TOKEN } = process.env;
const api = createClient<paths>({
  baseUrl: TABLERO_URL,
  headers: { Authorization: `Bearer ${TABLERO_TOKEN}` },
});

/** What an operation answers; whatever is no success ends the journey. */
async function done<T, E extends { title: string }>(
  asked: Promise<{ data?: T; error?: E; response: Response }>,
): Promise<T> {
  const { data, error, response } = await asked;
  if (error !== undefined || !response.ok) {
    throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`);
  }
  return data as T;
}

function check(is: boolean, what: string): void {
  if (!is) throw new Error(what);
}

const name = "generated";
const account = { account: name };
const table = { account: name, table: "orders" };

const created = await done(api.POST("/ui/api/v1/accounts", { body: { name, ttl: "1h", labels: { of: "tests" } } }));
check(created.connection_string.includes(`AccountName=${name};`), "the connection string is of another account");
const settings = await done(
  api.PATCH("/ui/api/v1/accounts/{account}", { params: { path: account }, body: { label: "Generated", history_days: 3 } }),
);
check(settings.history_days === 3, "the setting is not stored");

await done(
  api.POST("/ui/api/v1/accounts/{account}/tables", { params: { path: account }, body: { name: "orders", tags: ["core"] } }),
);
const policies = await done(
  api.PUT("/ui/api/v1/accounts/{account}/tables/{table}/policies", {
    params: { path: table },
    body: { items: [{ id: "reports", access_policy: { expiry: "2100-01-01T00:00:00Z", permission: "r" } }] },
  }),
);
check(policies.items[0]?.access_policy?.permission === "r", "the policy is not stored");

const member = await done(
  api.PUT("/ui/api/v1/accounts/{account}/members/{user}", {
    params: { path: { account: name, user: "colleague" } },
    body: { role: "editor" },
  }),
);
check(member.role === "editor", "the member has another role");

const sas = await done(
  api.POST("/ui/api/v1/accounts/{account}/sas", {
    params: { path: account, header: { "Idempotency-Key": "journey" } },
    body: { label: "reports", table: "orders", policy: "reports" },
  }),
);
const asked = await fetch(sas.url, { headers: { Accept: "application/json;odata=nometadata" } });
check(asked.status === 200, `the token is answered ${asked.status}`);
await done(
  api.POST("/ui/api/v1/accounts/{account}/sas/{fingerprint}/block", {
    params: { path: { account: name, fingerprint: sas.fingerprint } },
  }),
);
check((await fetch(sas.url)).status === 403, "the token is not blocked");

const snapshot = await done(
  api.POST("/ui/api/v1/accounts/{account}/snapshots", { params: { path: account }, body: { name: "before" } }),
);
check(snapshot.name === "before", "the snapshot has another name");

// the same again, declared: nothing differs from what the account is
const manifest = await done(api.GET("/ui/api/v1/manifest", { params: { query: { account: [name] } } }));
check(manifest.accounts[name]?.tables?.orders?.policies?.reports?.permission === "r", "the manifest lacks the policy");
const plan = await done(api.POST("/ui/api/v1/manifest/plan", { body: manifest }));
check(plan.changes.length === 0, `what is shown differs: ${JSON.stringify(plan.changes)}`);

// errors are problem details, with types of their own
const refused = await api.GET("/ui/api/v1/accounts/{account}", { params: { path: { account: "nothing" } } });
check(refused.error?.status === 404 && refused.error.type.endsWith("#problem-not-found"), "the problem has no type");

await done(
  api.DELETE("/ui/api/v1/accounts/{account}", { params: { path: account, query: { with_tables: true } } }),
);
const left = await done(api.GET("/ui/api/v1/accounts", { params: { query: { name } } }));
check(left.items.length === 0, "the account is still there");
console.log("done");
