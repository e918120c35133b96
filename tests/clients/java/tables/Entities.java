package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;

final class Entities {
    static void run() {
        check("inserts an entity and reads what describes it", () -> {
            TableClient table = newTable();
            String etag = insert(table, person("ada", LONDON));
            TableEntity read = table.getEntity("se", "ada");
            equal(content(read), LONDON);
            equal(read.getETag(), etag);
            equal(read.getPartitionKey() + " " + read.getRowKey(), "se ada");
            Duration age = Duration.between(read.getTimestamp(), OffsetDateTime.now());
            isTrue(age.abs().toHours() < 1, age);
        });
        check("reads selected properties", () -> {
            TableClient table = newTable();
            insert(table, person("ada", LONDON));
            List<String> select = List.of("City", "PartitionKey", "RowKey");
            equal(content(table.getEntityWithResponse("se", "ada", select, null, null).getValue()), Map.of("City", "London"));
        });
        check("merges and replaces by ETag", () -> {
            TableClient table = newTable();
            insert(table, person("ada", LONDON));
            TableEntity read = table.getEntity("se", "ada").addProperty("Age", 37);
            String merged = update(table, read, TableEntityUpdateMode.MERGE, true);
            equal(get(table, "se", "ada"), Map.of("Age", 37, "City", "London"));
            TableEntity again = table.getEntity("se", "ada");
            equal(again.getETag(), merged);
            again.getProperties().remove("City");
            String replaced = update(table, again, TableEntityUpdateMode.REPLACE, true);
            equal(get(table, "se", "ada"), Map.of("Age", 37));
            equal(table.getEntity("se", "ada").getETag(), replaced);
        });
        check("updates whatever the version is", () -> {
            TableClient table = newTable();
            insert(table, person("ada", LONDON));
            for (TableEntityUpdateMode mode : TableEntityUpdateMode.values()) {
                update(table, person("ada", Map.of("Mode", mode.name())), mode, false);
                equal(get(table, "se", "ada").get("Mode"), mode.name());
            }
        });
        check("refuses to change another version", () -> {
            TableClient table = newTable();
            insert(table, person("ada", LONDON));
            TableEntity stale = table.getEntity("se", "ada");
            update(table, person("ada", Map.of("Age", 40)), TableEntityUpdateMode.MERGE, false);
            for (TableEntityUpdateMode mode : TableEntityUpdateMode.values()) {
                refused(412, "UpdateConditionNotSatisfied", () -> update(table, stale, mode, true));
            }
            refused(412, "UpdateConditionNotSatisfied", () -> table.deleteEntityWithResponse(stale, true, null, null));
            equal(get(table, "se", "ada"), Map.of("Age", 40, "City", "London"));
        });
        check("upserts entities that exist and that do not", () -> {
            TableClient table = newTable();
            for (TableEntityUpdateMode mode : TableEntityUpdateMode.values()) {
                String first = upsert(table, person(mode.name(), LONDON), mode);
                String second = upsert(table, person(mode.name(), Map.of("Age", 37)), mode);
                isTrue(second != null && !second.equals(first), first, second);
            }
            equal(get(table, "se", "MERGE"), Map.of("Age", 37, "City", "London"));
            equal(get(table, "se", "REPLACE"), Map.of("Age", 37));
        });
        check("deletes an entity by ETag", () -> {
            TableClient table = newTable();
            insert(table, person("ada"));
            equal(table.deleteEntityWithResponse(table.getEntity("se", "ada"), true, null, null).getStatusCode(), 204);
            refused(404, "ResourceNotFound", () -> table.getEntity("se", "ada"));
        });
        check("refuses an entity that exists", () -> {
            TableClient table = newTable();
            insert(table, person("ada", LONDON));
            refused(409, "EntityAlreadyExists", () -> insert(table, person("ada")));
            equal(get(table, "se", "ada"), LONDON);
        });
        check("refuses entities that are missing", () -> {
            TableClient table = newTable();
            for (TableEntityUpdateMode mode : TableEntityUpdateMode.values()) {
                refused(404, "ResourceNotFound", () -> update(table, person("ada"), mode, false));
            }
            refused(404, "ResourceNotFound", () -> table.getEntity("se", "ada"));
            // the client takes it for deleted
            equal(table.deleteEntityWithResponse(person("ada"), false, null, null).getStatusCode(), 404);
        });
        check("refuses entities of a missing table", () -> {
            TableClient table = SERVICE.getTableClient(newName());
            refused(404, "TableNotFound", () -> insert(table, person("ada")));
            refused(404, "TableNotFound", () -> list(table, null));
        });
        check("serves keys with special characters", () -> {
            TableClient table = newTable();
            for (String characters : ODD_KEYS) {
                String partitionKey = "foo" + characters;
                String rowKey = characters + "bar";
                insert(table, entity(partitionKey, rowKey, Map.of()));
                for (TableEntityUpdateMode mode : TableEntityUpdateMode.values()) {
                    update(table, entity(partitionKey, rowKey, Map.of("Value", characters)), mode, false);
                    upsert(table, entity(partitionKey, rowKey, Map.of("Value", characters)), mode);
                }
                TableEntity read = table.getEntity(partitionKey, rowKey);
                equal(List.of(read.getPartitionKey(), read.getRowKey(), read.getProperty("Value")),
                    List.of(partitionKey, rowKey, characters));
                String quoted = characters.replace("'", "''");
                String filter = String.format("PartitionKey eq 'foo%s' and RowKey eq '%sbar'", quoted, quoted);
                equal(rows(table, filter + " and Value eq '" + quoted + "'"), rowKey);
                table.deleteEntityWithResponse(read, true, null, null);
            }
            equal(rows(table, null), "");
        });
        checkStorage("serves empty keys", "keys cannot be empty in Azure Cosmos DB", () -> {
            TableClient table = newTable();
            insert(table, entity("", "", LONDON));
            ListEntitiesOptions options = new ListEntitiesOptions().setFilter("PartitionKey eq '' and RowKey eq ''");
            equal(content(list(table, options).get(0)), LONDON);
            table.upsertEntity(entity("", "", Map.of("Age", 37)));
            equal(get(table, "", "").get("Age"), 37);
            table.deleteEntity("", "");
        });
        check("refuses keys with forbidden characters", () -> {
            TableClient table = newTable();
            for (String character : new String[] {"/", "\\", "#", "?"}) {
                refused(400, byKind("OutOfRangeInput", "InvalidInput"), () -> insert(table, person("a" + character)));
            }
        });
        check("refuses what no entity can be", () -> {
            TableClient table = newTable();
            refused(400, "PropertyNameInvalid", () -> insert(table, person("ada", Map.of("a-b", 1))));
            refused(400, byKind("KeyValueTooLarge", "InvalidInput"), () -> insert(table, person("x".repeat(2000))));
        });
    }
}
