package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;

final class Values {
    /** Checks that an insert, a merge and a replacement store values as they were sent. */
    private static void kept(Map<String, ?> values) {
        TableClient table = newTable();
        insert(table, person("inserted", values));
        upsert(table, person("merged", values), TableEntityUpdateMode.MERGE);
        upsert(table, person("replaced", values), TableEntityUpdateMode.REPLACE);
        for (String rowKey : new String[] {"inserted", "merged", "replaced"}) {
            Map<String, Object> read = get(table, "se", rowKey);
            values.forEach((name, value) -> {
                if (!name.contains("@")) {
                    equal(read.get(name), value);
                }
            });
        }
    }

    private static Map<String, Object> typed(String type, Map<String, ?> values) {
        Map<String, Object> result = new HashMap<>(values);
        values.keySet().forEach(name -> result.put(name + "@odata.type", type));
        return result;
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
        check("keeps NaN and the infinities", () -> kept(typed("Edm.Double", Map.of(
            "Nan", Double.NaN, "More", Double.POSITIVE_INFINITY, "Less", Double.NEGATIVE_INFINITY))));
        check("keeps Booleans", () -> kept(Map.of("Yes", true, "No", false)));
        check("keeps a Guid", () -> kept(Map.of("Id", UUID.fromString(GUID))));
        check("keeps bytes", () -> {
            byte[] all = new byte[65536];
            for (int number = 0; number < all.length; number++) {
                all[number] = (byte) number;
            }
            kept(Map.of("All", all, "Empty", new byte[0]));
        });
        check("keeps times to 100 nanoseconds", () -> kept(Map.of(
            "First", OffsetDateTime.parse("1601-01-01T00:00:00Z"),
            "Whole", OffsetDateTime.parse("1970-01-01T00:00:00Z"),
            "Fraction", OffsetDateTime.parse("2025-03-19T23:01:55.1234567Z"),
            "Last", OffsetDateTime.parse("9999-12-31T23:59:59.9999999Z"))));
        check("refuses values that have no place in their type", () -> {
            TableClient table = newTable();
            for (String[] wrong : new String[][] {
                {"Edm.Int64", "9223372036854775808"},
                {"Edm.Guid", "nonsense"},
                {"Edm.DateTime", "2020-13-01T00:00:00Z"},
                {"Edm.Binary", "*"},
            }) {
                refused(400, "InvalidInput", () -> insert(table, person("ada", typed(wrong[0], Map.of("X", wrong[1])))));
            }
        });
        checkStorage("refuses a text that is too long", "Azure Cosmos DB bounds the entity only", () ->
            refused(400, "PropertyValueTooLarge", () -> insert(newTable(), person("ada", Map.of("X", "x".repeat(32769))))));
    }
}
