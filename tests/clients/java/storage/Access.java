package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.microsoft.azure.storage.CloudStorageAccount;
import com.microsoft.azure.storage.SharedAccessAccountPolicy;
import com.microsoft.azure.storage.SharedAccessProtocols;
import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.SharedAccessTablePolicy;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TablePermissions;
import java.net.URI;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

final class Access {
    private static final Instant NOW = Instant.now().truncatedTo(ChronoUnit.SECONDS);

    private static Date hours(int count) {
        return Date.from(NOW.plus(count, ChronoUnit.HOURS));
    }

    private static SharedAccessTablePolicy policy(String letters, Date start, Date expiry) {
        SharedAccessTablePolicy policy = new SharedAccessTablePolicy();
        policy.setPermissionsFromString(letters);
        policy.setSharedAccessStartTime(start);
        policy.setSharedAccessExpiryTime(expiry);
        return policy;
    }

    /** The table by a token for a range of keys: start and end partition and row. */
    private static CloudTable limited(CloudTable table, SharedAccessTablePolicy policy, String id, String... range) throws Exception {
        String[] ends = range.length == 0 ? new String[4] : range;
        return byToken(table.getName(), table.generateSharedAccessSignature(policy, id, ends[0], ends[1], ends[2], ends[3]));
    }

    private static String accountToken(String types, String letters) throws Exception {
        SharedAccessAccountPolicy policy = new SharedAccessAccountPolicy();
        policy.setServiceFromString("t");
        policy.setResourceTypeFromString(types);
        policy.setPermissionsFromString(letters);
        policy.setSharedAccessExpiryTime(hours(1));
        policy.setProtocols(SharedAccessProtocols.HTTPS_HTTP);
        URI endpoint = URI.create(ENDPOINT);
        return new CloudStorageAccount(credentials(KEY), endpoint, endpoint, endpoint).generateSharedAccessSignature(policy);
    }

    private static void setPolicies(CloudTable table, Map<String, SharedAccessTablePolicy> policies) throws StorageException {
        TablePermissions permissions = new TablePermissions();
        permissions.setSharedAccessPolicies(new HashMap<>(policies));
        table.uploadPermissions(permissions);
    }

    /** Adds the name of an operation if it is allowed. */
    private static void attempt(List<String> allowed, String name, Body body) throws Exception {
        try {
            body.run();
            allowed.add(name);
        } catch (StorageException error) {
            refused(403, "AuthorizationPermissionMismatch", () -> {
                throw error;
            });
        }
    }

    private static String keys(CloudTable table) throws StorageException {
        return list(table, query(null)).stream().map(it -> it.getPartitionKey() + it.getRowKey()).collect(Collectors.joining(" "));
    }

    static void run() {
        check("allows what the letters of a token for a table say", () -> {
            CloudTable table = newTable();
            for (Map.Entry<String, String> one : Map.of("r", "read", "a", "add", "u", "update", "d", "delete",
                "raud", "read add update delete").entrySet()) {
                table.execute(TableOperation.insertOrMerge(person("ada")));
                CloudTable limited = limited(table, policy(one.getKey(), null, hours(1)), null);
                List<String> allowed = new ArrayList<>();
                attempt(allowed, "read", () -> rows(limited, null));
                attempt(allowed, "add", () -> insert(limited, person(newName())));
                attempt(allowed, "update", () -> limited.execute(TableOperation.replace(withETag(person("ada"), "*"))));
                attempt(allowed, "delete", () -> limited.execute(TableOperation.delete(withETag(person("ada"), "*"))));
                equal(String.join(" ", allowed), one.getValue());
            }
        });
        check("submits a batch by a token", () -> {
            CloudTable limited = limited(newTable(), policy("rau", hours(-1), hours(1)), null);
            Batches.submit(limited, batch -> batch.insertOrReplace(person("a", LONDON)));
            equal(content(limited, "a"), "Age=36 City=London");
        });
        check("refuses tokens that are over, not yet valid or forged", () -> {
            CloudTable table = newTable();
            refused(403, "AuthenticationFailed", () -> rows(limited(table, policy("r", null, hours(-1)), null), null));
            refused(403, "AuthenticationFailed", () -> rows(limited(table, policy("r", hours(1), hours(2)), null), null));
            String token = table.generateSharedAccessSignature(policy("r", null, hours(1)), null, null, null, null, null);
            CloudTable forged = byToken(table.getName(), token.replace("sp=r", "sp=raud"));
            refused(403, "AuthenticationFailed", () -> rows(forged, null));
        });
        checkStorage("keeps to the key range of a token", "Azure Cosmos DB refuses tokens with a range", () -> {
            CloudTable table = newTable();
            for (String partitionKey : "a b c".split(" ")) {
                for (String rowKey : "1 2".split(" ")) {
                    insert(table, entity(partitionKey, rowKey, Map.of()));
                }
            }
            SharedAccessTablePolicy policy = policy("rau", null, hours(1));
            equal(keys(limited(table, policy, null, "b", null, null, null)), "b1 b2 c1 c2");
            equal(keys(limited(table, policy, null, null, null, "b", null)), "a1 a2 b1 b2");
            equal(keys(limited(table, policy, null, "a", "2", null, null)), "a2 b1 b2 c1 c2");
            CloudTable limited = limited(table, policy, null, "a", "2", "b", "1");
            equal(keys(limited), "a2 b1");
            equal(retrieve(limited, "a", "1").getHttpStatusCode(), 404);
            refused(403, "AuthorizationFailure", () -> limited.execute(TableOperation.insertOrMerge(entity("a", "1", Map.of()))));
            limited.execute(TableOperation.insertOrMerge(entity("a", "3", Map.of())));
        });
        checkStorage("keeps stored access policies", "Azure Cosmos DB has no access policies", () -> {
            CloudTable table = newTable();
            setPolicies(table, Map.of("all", policy("raud", hours(-1), hours(1)), "é<&>", policy("r", hours(-1), hours(1))));
            Map<String, SharedAccessTablePolicy> found = table.downloadPermissions().getSharedAccessPolicies();
            equal(found.size(), 2);
            equal(found.get("all").permissionsToString() + found.get("é<&>").permissionsToString(), "raudr");
            equal(found.get("all").getSharedAccessStartTime(), hours(-1));
            equal(found.get("all").getSharedAccessExpiryTime(), hours(1));
            setPolicies(table, Map.of());
            equal(table.downloadPermissions().getSharedAccessPolicies().size(), 0);
        });
        checkStorage("heeds the policy that a token names", "Azure Cosmos DB has no access policies", () -> {
            CloudTable table = newTable();
            insert(table, person("ada", LONDON));
            CloudTable limited = limited(table, null, "reader");
            refused(403, "AuthenticationFailed", () -> rows(limited, null));
            setPolicies(table, Map.of("reader", policy("r", hours(-1), hours(1))));
            equal(content(limited, "ada"), "Age=36 City=London");
            refused(403, "AuthorizationPermissionMismatch", () -> insert(limited, person("eva")));
            setPolicies(table, Map.of());
            refused(403, "AuthenticationFailed", () -> rows(limited, null));
        });
        check("allows what a token for the account says", () -> {
            CloudTable table = newTable();
            String name = table.getName();
            insert(table, person("ada", LONDON));
            equal(content(byToken(name, accountToken("o", "r")), "ada"), "Age=36 City=London");
            refused(403, "AuthorizationPermissionMismatch", () ->
                insert(byToken(name, accountToken("o", "r")), person("eva")));
            refused(403, "AuthorizationResourceTypeMismatch", () -> rows(byToken(name, accountToken("sc", "rwdlau")), null));
            String created = newName();
            byToken(created, accountToken("c", "w")).create();
            refused(403, "AuthorizationPermissionMismatch", () -> byToken(created, accountToken("c", "w")).delete());
            byToken(created, accountToken("c", "d")).delete();
        });
        check("refuses a wrong key", () -> {
            CloudTable table = service(credentials("d3Jvbmc=")).getTableReference(newName());
            refused(403, "AuthenticationFailed", () -> rows(table, null));
        });
    }
}
