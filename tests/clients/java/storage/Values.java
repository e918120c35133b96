package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.EntityProperty;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TablePayloadFormat;
import com.microsoft.azure.storage.table.TableRequestOptions;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import java.time.Instant;
import java.util.Date;
import java.util.Map;
import java.util.UUID;

final class Values {
    /** Checks that an insert, a merge and a replacement store values and their types as they were sent. */
    private static void kept(Map<String, ?> values) throws Exception {
        CloudTable table = newTable();
        insert(table, person("inserted", values));
        table.execute(TableOperation.insertOrMerge(person("merged", values)));
        table.execute(TableOperation.insertOrReplace(person("replaced", values)));
        for (String rowKey : new String[] {"inserted", "merged", "replaced"}) {
            same(get(table, "se", rowKey), values);
        }
    }

    private static void same(DynamicTableEntity read, Map<String, ?> values) {
        equal(read.getProperties().keySet(), values.keySet());
        values.forEach((name, value) -> {
            EntityProperty actual = read.getProperties().get(name);
            EntityProperty expected = property(value);
            equal(actual.getEdmType(), expected.getEdmType());
            if (value instanceof byte[] bytes) {
                equal(actual.getValueAsByteArray(), bytes);
            } else if (value instanceof Date date) {
                equal(actual.getValueAsDate(), date);
            } else if (value instanceof Double number) {
                equal(actual.getValueAsDouble(), number);
            } else {
                equal(actual.getValueAsString(), expected.getValueAsString());
            }
        });
    }

    static void run() {
        check("keeps text of every kind and length", () -> kept(Map.of(
            "Empty", "",
            "Quoted", "it's \"quoted\" \\ %2F",
            "Controls", "\0\t\r\n\u007f",
            "Unicode", "é 你好 😀 \u202e\u2028",
            "Blanks", "  ",
            "Date", "2020-01-01T00:00:00Z",
            "Long", "é".repeat(32768))));
        check("keeps integers of 32 bits up to their bounds", () ->
            kept(Map.of("Min", Integer.MIN_VALUE, "Zero", 0, "Max", Integer.MAX_VALUE)));
        check("keeps integers of 64 bits up to their bounds", () ->
            kept(Map.of("Min", Long.MIN_VALUE, "Zero", 0L, "Max", Long.MAX_VALUE)));
        check("keeps Doubles", () ->
            kept(Map.of("Half", 0.5, "Whole", 1.0, "Tiny", Double.MIN_VALUE, "Huge", Double.MAX_VALUE, "Tenth", 0.1)));
        check("keeps the sign of zero", () -> kept(Map.of("Zero", -0.0)));
        check("keeps NaN and the infinities", () -> kept(Map.of(
            "Nan", Double.NaN, "More", Double.POSITIVE_INFINITY, "Less", Double.NEGATIVE_INFINITY)));
        check("keeps Booleans", () -> kept(Map.of("Yes", true, "No", false)));
        check("keeps a Guid", () -> kept(Map.of("Id", UUID.fromString(GUID))));
        check("keeps bytes", () -> {
            byte[] all = new byte[65536];
            for (int number = 0; number < all.length; number++) {
                all[number] = (byte) number;
            }
            kept(Map.of("All", all, "Empty", new byte[0]));
        });
        check("keeps times to the millisecond, which is what the client has", () -> kept(Map.of(
            "First", Date.from(Instant.parse("1601-01-01T00:00:00Z")),
            "Whole", Date.from(Instant.parse("1970-01-01T00:00:00Z")),
            "Fraction", Date.from(Instant.parse("2025-03-19T23:01:55.123Z")),
            "Last", Date.from(Instant.parse("9999-12-31T23:59:59.999Z")))));
        check("reads values in every format", () -> {
            CloudTable table = newTable();
            Map<String, Object> values = Map.of("Big", 5000000000L, "Id", UUID.fromString(GUID), "Text", "x", "Ratio", 0.5);
            insert(table, person("ada", values));
            for (TablePayloadFormat format : TablePayloadFormat.values()) {
                TableRequestOptions options = new TableRequestOptions();
                options.setTablePayloadFormat(format);
                if (format == TablePayloadFormat.JsonNoMetadata) {
                    options.setPropertyResolver((partitionKey, rowKey, name, value) -> property(values.get(name)).getEdmType());
                }
                TableOperation retrieve = TableOperation.retrieve("se", "ada", DynamicTableEntity.class);
                same(table.execute(retrieve, options, null).getResultAsType(), values);
            }
        });
        checkStorage("refuses a text that is too long", "Azure Cosmos DB bounds the entity only", () ->
            refused(400, "PropertyValueTooLarge", () -> insert(newTable(), person("ada", Map.of("X", "x".repeat(32769))))));
    }
}
