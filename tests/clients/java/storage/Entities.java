package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableResult;
import java.util.Date;
import java.util.List;
import java.util.Map;

final class Entities {
    static final String OTHER_ETAG = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\"";

    static void run() {
        check("inserts with an echo", () -> {
            CloudTable table = newTable();
            TableResult answer = table.execute(TableOperation.insert(person("ada", LONDON), true));
            equal(answer.getHttpStatusCode(), 201);
            DynamicTableEntity echo = answer.getResultAsType();
            equal(content(echo), "Age=36 City=London");
            equal(echo.getPartitionKey() + " " + echo.getRowKey(), "se ada");
            equal(echo.getEtag(), retrieve(table, "se", "ada").getEtag());
            isTrue(Math.abs(new Date().getTime() - echo.getTimestamp().getTime()) < 3600_000, echo.getTimestamp());
        });
        check("inserts without an echo", () -> {
            CloudTable table = newTable();
            TableResult answer = insert(table, person("ada", LONDON));
            equal(answer.getHttpStatusCode(), 204);
            equal(answer.getEtag(), retrieve(table, "se", "ada").getEtag());
            equal(content(table, "ada"), "Age=36 City=London");
        });
        check("merges and replaces by ETag", () -> {
            CloudTable table = newTable();
            String first = insert(table, person("ada", LONDON)).getEtag();
            DynamicTableEntity older = withETag(person("ada", Map.of("Age", 37)), first);
            String merged = table.execute(TableOperation.merge(older)).getEtag();
            equal(content(table, "ada"), "Age=37 City=London");
            DynamicTableEntity other = withETag(person("ada", Map.of("Title", "Countess")), merged);
            String replaced = table.execute(TableOperation.replace(other)).getEtag();
            equal(content(table, "ada"), "Title=Countess");
            equal(retrieve(table, "se", "ada").getEtag(), replaced);
        });
        check("updates whatever the version is", () -> {
            CloudTable table = newTable();
            insert(table, person("ada", LONDON));
            table.execute(TableOperation.merge(withETag(person("ada", Map.of("Age", 1)), "*")));
            table.execute(TableOperation.replace(withETag(person("ada", Map.of("Age", 2)), "*")));
            equal(content(table, "ada"), "Age=2");
        });
        check("refuses to change another version", () -> {
            CloudTable table = newTable();
            String stale = insert(table, person("ada", LONDON)).getEtag();
            table.execute(TableOperation.merge(withETag(person("ada", Map.of("Age", 40)), "*")));
            for (String etag : new String[] {stale, OTHER_ETAG}) {
                for (TableOperation operation : new TableOperation[] {
                    TableOperation.merge(withETag(person("ada"), etag)),
                    TableOperation.replace(withETag(person("ada"), etag)),
                    TableOperation.delete(withETag(person("ada"), etag)),
                }) {
                    refused(412, "UpdateConditionNotSatisfied", () -> table.execute(operation));
                }
            }
            equal(content(table, "ada"), "Age=40 City=London");
        });
        check("upserts entities that exist and that do not", () -> {
            CloudTable table = newTable();
            for (Map<String, ?> values : List.of(LONDON, Map.of("Age", 37))) {
                table.execute(TableOperation.insertOrMerge(person("m", values)));
                table.execute(TableOperation.insertOrReplace(person("r", values)));
            }
            equal(content(table, "m"), "Age=37 City=London");
            equal(content(table, "r"), "Age=37");
        });
        check("deletes an entity by ETag", () -> {
            CloudTable table = newTable();
            String etag = insert(table, person("ada")).getEtag();
            equal(table.execute(TableOperation.delete(withETag(person("ada"), etag))).getHttpStatusCode(), 204);
            TableResult missing = retrieve(table, "se", "ada");
            equal(missing.getHttpStatusCode(), 404);
            equal(missing.getResult(), null);
        });
        check("refuses an entity that exists", () -> {
            CloudTable table = newTable();
            insert(table, person("ada", LONDON));
            refused(409, "EntityAlreadyExists", () -> insert(table, person("ada")));
            equal(content(table, "ada"), "Age=36 City=London");
        });
        check("refuses entities that are missing", () -> {
            CloudTable table = newTable();
            for (TableOperation operation : new TableOperation[] {
                TableOperation.merge(withETag(person("ada"), "*")),
                TableOperation.replace(withETag(person("ada"), "*")),
                TableOperation.delete(withETag(person("ada"), "*")),
            }) {
                refused(404, "ResourceNotFound", () -> table.execute(operation));
            }
        });
        check("refuses entities of a missing table", () -> {
            CloudTable table = SERVICE.getTableReference(newName());
            refused(404, "TableNotFound", () -> insert(table, person("ada")));
            refused(404, "TableNotFound", () -> rows(table, null));
        });
        check("serves keys with special characters", () -> {
            CloudTable table = newTable();
            for (String characters : ODD_KEYS) {
                String partitionKey = "foo" + characters;
                String rowKey = characters + "bar";
                insert(table, entity(partitionKey, rowKey, Map.of()));
                Map<String, String> values = Map.of("Value", characters);
                table.execute(TableOperation.insertOrMerge(entity(partitionKey, rowKey, values)));
                table.execute(TableOperation.replace(withETag(entity(partitionKey, rowKey, values), "*")));
                DynamicTableEntity read = get(table, partitionKey, rowKey);
                equal(List.of(read.getPartitionKey(), read.getRowKey(), content(read)),
                    List.of(partitionKey, rowKey, "Value=" + characters));
                String quoted = characters.replace("'", "''");
                String filter = String.format("PartitionKey eq 'foo%s' and RowKey eq '%sbar'", quoted, quoted);
                equal(rows(table, filter + " and Value eq '" + quoted + "'"), rowKey);
                table.execute(TableOperation.delete(read));
            }
            equal(rows(table, null), "");
        });
        checkStorage("serves empty keys", "keys cannot be empty in Azure Cosmos DB", () -> {
            CloudTable table = newTable();
            insert(table, entity("", "", LONDON));
            table.execute(TableOperation.insertOrMerge(entity("", "", Map.of("Age", 37))));
            equal(content(get(table, "", "")), "Age=37 City=London");
            table.execute(TableOperation.delete(get(table, "", "")));
        });
        check("refuses keys with forbidden characters", () -> {
            CloudTable table = newTable();
            for (String character : new String[] {"/", "\\", "#", "?"}) {
                refused(400, byKind("OutOfRangeInput", "InvalidInput"), () -> insert(table, person("a" + character)));
            }
        });
        check("refuses what no entity can be", () -> {
            CloudTable table = newTable();
            refused(400, "PropertyNameInvalid", () -> insert(table, person("ada", Map.of("a-b", 1))));
            refused(400, byKind("KeyValueTooLarge", "InvalidInput"), () -> insert(table, person("x".repeat(2000))));
        });
    }
}
