package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasProtocol;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

final class Access {
    private static final OffsetDateTime NOW = OffsetDateTime.now(ZoneOffset.UTC).truncatedTo(ChronoUnit.SECONDS);
    private static final OffsetDateTime SOON = NOW.plusHours(1);

    private static TableSasSignatureValues values(String letters) {
        return new TableSasSignatureValues(SOON, TableSasPermission.parse(letters)).setProtocol(TableSasProtocol.HTTPS_HTTP);
    }

    private static TableClient limited(TableClient table, TableSasSignatureValues values) {
        return byToken(table.getTableName(), table.generateSas(values));
    }

    private static String accountToken(String types, String letters) {
        return SERVICE.generateAccountSas(new TableAccountSasSignatureValues(SOON, TableAccountSasPermission.parse(letters),
            TableAccountSasService.parse("t"), TableAccountSasResourceType.parse(types)).setProtocol(TableSasProtocol.HTTPS_HTTP));
    }

    /** The name of an operation if it is allowed. */
    private static void attempt(List<String> allowed, String name, Body body) throws Exception {
        try {
            body.run();
            allowed.add(name);
        } catch (HttpResponseException error) {
            refused(403, "AuthorizationPermissionMismatch", () -> {
                throw error;
            });
        }
    }

    static void run() {
        check("allows what the letters of a token for a table say", () -> {
            TableClient table = newTable();
            for (Map.Entry<String, String> one : Map.of("r", "read", "a", "add", "u", "update", "d", "delete",
                "raud", "read add update delete").entrySet()) {
                table.upsertEntity(person("ada"));
                TableClient limited = limited(table, values(one.getKey()));
                List<String> allowed = new ArrayList<>();
                attempt(allowed, "read", () -> limited.getEntity("se", "ada"));
                attempt(allowed, "add", () -> insert(limited, person(newName())));
                attempt(allowed, "update", () -> update(limited, person("ada"), TableEntityUpdateMode.REPLACE, false));
                attempt(allowed, "delete", () -> limited.deleteEntity("se", "ada"));
                equal(String.join(" ", allowed), one.getValue());
            }
        });
        check("submits a batch by a token", () -> {
            TableClient table = newTable();
            TableClient limited = limited(table, values("rau"));
            Batches.submit(limited, List.of(Batches.action(TableTransactionActionType.UPSERT_REPLACE, person("a", LONDON))));
            equal(get(limited, "se", "a"), LONDON);
        });
        check("refuses tokens that are over, not yet valid or forged", () -> {
            TableClient table = newTable();
            TableSasPermission read = TableSasPermission.parse("r");
            for (TableSasSignatureValues values : List.of(
                new TableSasSignatureValues(NOW.minusHours(1), read).setProtocol(TableSasProtocol.HTTPS_HTTP),
                new TableSasSignatureValues(SOON.plusHours(1), read).setStartTime(SOON).setProtocol(TableSasProtocol.HTTPS_HTTP))) {
                refused(403, "AuthenticationFailed", () -> list(limited(table, values), null));
            }
            String forged = table.generateSas(values("r")).replace("sp=r", "sp=raud");
            refused(403, "AuthenticationFailed", () -> list(byToken(table.getTableName(), forged), null));
        });
        check("refuses a token that asks for https", () -> {
            TableClient table = newTable();
            TableSasSignatureValues values = values("r").setProtocol(TableSasProtocol.HTTPS_ONLY);
            refused(403, "AuthorizationProtocolMismatch", () -> list(limited(table, values), null));
        });
        checkStorage("keeps to the key range of a token", "Azure Cosmos DB refuses tokens with a range", () -> {
            TableClient table = newTable();
            for (String partitionKey : "a b c".split(" ")) {
                for (String rowKey : "1 2".split(" ")) {
                    insert(table, entity(partitionKey, rowKey, Map.of()));
                }
            }
            // the client takes both keys of an end of a range or none
            TableClient tail = limited(table, values("r").setStartPartitionKey("b").setStartRowKey("2"));
            TableClient head = limited(table, values("r").setEndPartitionKey("b").setEndRowKey("1"));
            TableClient both = limited(table, values("rau").setStartPartitionKey("a").setStartRowKey("2")
                .setEndPartitionKey("b").setEndRowKey("1"));
            equal(keys(tail), "b2 c1 c2");
            equal(keys(head), "a1 a2 b1");
            equal(keys(both), "a2 b1");
            refused(404, "ResourceNotFound", () -> both.getEntity("a", "1"));
            refused(403, "AuthorizationFailure", () -> both.upsertEntity(entity("a", "1", Map.of())));
            both.upsertEntity(entity("a", "3", Map.of()));
        });
        checkStorage("keeps stored access policies", "Azure Cosmos DB has no access policies", () -> {
            TableClient table = newTable();
            table.setAccessPolicies(List.of(
                new TableSignedIdentifier("all").setAccessPolicy(
                    new TableAccessPolicy().setStartsOn(NOW).setExpiresOn(SOON).setPermissions("raud")),
                new TableSignedIdentifier("é<&>").setAccessPolicy(
                    new TableAccessPolicy().setStartsOn(NOW).setExpiresOn(SOON).setPermissions("r"))));
            List<TableSignedIdentifier> found = table.getAccessPolicies().getIdentifiers();
            equal(found.stream().map(it -> it.getId() + " " + it.getAccessPolicy().getPermissions()).toList(),
                List.of("all raud", "é<&> r"));
            equal(found.get(0).getAccessPolicy().getStartsOn().toInstant(), NOW.toInstant());
            equal(found.get(0).getAccessPolicy().getExpiresOn().toInstant(), SOON.toInstant());
            table.setAccessPolicies(List.of());
            equal(table.getAccessPolicies().getIdentifiers(), null);
        });
        checkStorage("heeds the policy that a token names", "Azure Cosmos DB has no access policies", () -> {
            TableClient table = newTable();
            insert(table, person("ada", LONDON));
            TableClient limited = limited(table, new TableSasSignatureValues("reader").setProtocol(TableSasProtocol.HTTPS_HTTP));
            refused(403, "AuthenticationFailed", () -> limited.getEntity("se", "ada"));
            table.setAccessPolicies(List.of(new TableSignedIdentifier("reader").setAccessPolicy(
                new TableAccessPolicy().setStartsOn(NOW).setExpiresOn(SOON).setPermissions("r"))));
            equal(get(limited, "se", "ada"), LONDON);
            refused(403, "AuthorizationPermissionMismatch", () -> limited.deleteEntity("se", "ada"));
            table.setAccessPolicies(List.of());
            refused(403, "AuthenticationFailed", () -> limited.getEntity("se", "ada"));
        });
        check("allows what a token for the account says", () -> {
            TableClient table = newTable();
            String name = table.getTableName();
            insert(table, person("ada", LONDON));
            equal(get(byToken(name, accountToken("o", "r")), "se", "ada"), LONDON);
            refused(403, "AuthorizationPermissionMismatch", () ->
                byToken(name, accountToken("o", "r")).deleteEntity("se", "ada"));
            refused(403, "AuthorizationResourceTypeMismatch", () ->
                byToken(name, accountToken("sc", "rwdlau")).getEntity("se", "ada"));
            String created = newName();
            byToken(created, accountToken("c", "w")).createTable();
            refused(403, "AuthorizationPermissionMismatch", () -> byToken(created, accountToken("c", "w")).deleteTable());
            byToken(created, accountToken("c", "d")).deleteTable();
        });
        check("refuses a wrong key", () -> refused(403, "AuthenticationFailed", () ->
            new TableServiceClientBuilder().endpoint(ENDPOINT).credential(new AzureNamedKeyCredential(ACCOUNT, "d3Jvbmc="))
                .retryOptions(ONCE).buildClient().createTable(newName())));
    }

    private static String keys(TableClient table) {
        return list(table, null).stream().map(it -> it.getPartitionKey() + it.getRowKey()).collect(Collectors.joining(" "));
    }
}
