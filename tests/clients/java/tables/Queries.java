package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.UUID;

final class Queries {
    /** A table with two entities, one of low and one of high values. */
    private static TableClient zoo() {
        TableClient table = newTable();
        insert(table, person("low", Map.of("Text", "o'low", "Flag", false, "Count", -3, "Ratio", 0.5, "Big", -5000000000L,
            "Moment", OffsetDateTime.parse("2020-01-01T12:00:00Z"), "Id", UUID.fromString(GUID), "Data", new byte[] {0, 1})));
        insert(table, person("high", Map.of("Text", "high", "Flag", true, "Count", 3, "Ratio", 1.5, "Big", 5000000000L,
            "Moment", OffsetDateTime.parse("2021-01-01T12:00:00Z"), "Id", UUID.randomUUID(), "Data", new byte[] {0, 2})));
        return table;
    }

    /** A table with entities of one partition. */
    private static TableClient tableOf(int count) {
        TableClient table = newTable();
        List<TableTransactionAction> actions = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            Map<String, Object> values = Map.of("Number", number, "Even", number % 2 == 0);
            actions.add(Batches.action(TableTransactionActionType.CREATE, person(String.format("%04d", number), values)));
            if (actions.size() == 100 || number == count - 1) {
                Batches.submit(table, actions);
                actions.clear();
            }
        }
        return table;
    }

    static void run() {
        check("filters by values of every type", () -> {
            TableClient table = zoo();
            for (String filter : new String[] {
                "Text eq 'o''low'",
                "Text gt 'n'",
                "Flag eq false",
                "Count eq -3",
                "Count lt 0",
                "Ratio eq 0.5",
                "Ratio lt 1",
                "Big eq -5000000000L",
                "Big lt 0L",
                "Moment eq datetime'2020-01-01T12:00:00Z'",
                "Moment lt datetime'2020-06-01T00:00:00Z'",
                "Id eq guid'" + GUID + "'",
                "Data eq X'0001'",
                "Data lt binary'0002'",
            }) {
                equal(rows(table, filter) + " by " + filter, "low by " + filter);
            }
        });
        check("filters by logic and by keys", () -> {
            TableClient table = zoo();
            Map.of(
                "not (Flag eq true)", "low",
                "Flag eq true or Count lt 0", "high low",
                "Flag eq true and Count lt 0", "",
                "PartitionKey eq 'se' and RowKey ge 'l'", "low",
                "RowKey ne 'low' and Text ge 'h'", "high",
                "Timestamp ge datetime'2020-01-01T00:00:00Z'", "high low",
                "Missing eq 'x'", ""
            ).forEach((filter, expected) -> equal(rows(table, filter) + " by " + filter, expected + " by " + filter));
        });
        check("refuses a filter that is none", () -> {
            TableClient table = newTable();
            refused(400, "InvalidInput", () -> rows(table, "Count eq"));
        });
        check("selects properties", () -> {
            ListEntitiesOptions options = new ListEntitiesOptions().setSelect(List.of("RowKey", "Count")).setFilter("RowKey eq 'low'");
            TableEntity found = list(zoo(), options).get(0);
            equal(content(found), Map.of("Count", -3));
            equal(found.getRowKey(), "low");
            equal(found.getPartitionKey(), null);
        });
        check("follows pages to the end", () -> {
            TableClient table = tableOf(7);
            Map.of(1, Collections.nCopies(7, 1), 2, List.of(2, 2, 2, 1), 3, List.of(3, 3, 1), 7, List.of(7), 8, List.of(7))
                .forEach((top, expected) -> {
                    ListEntitiesOptions options = new ListEntitiesOptions().setTop(top);
                    equal(sizes(table, options), expected);
                    equal(rows(list(table, options)), "0000 0001 0002 0003 0004 0005 0006");
                });
        });
        check("continues a query by its token", () -> {
            TableClient table = tableOf(7);
            ListEntitiesOptions options = new ListEntitiesOptions().setTop(2).setFilter("Even eq true").setSelect(List.of("RowKey"));
            PagedResponse<TableEntity> first = table.listEntities(options, null, null).iterableByPage().iterator().next();
            equal(rows(first.getValue()), "0000 0002");
            List<List<TableEntity>> rest = pages(table, options, first.getContinuationToken());
            equal(rest.size(), 1);
            equal(rows(rest.get(0)), "0004 0006");
        });
        check("follows more than a thousand entities", () -> equal(sizes(tableOf(1050), null), List.of(1000, 50)));
        check("continues among odd keys", () -> {
            TableClient table = newTable();
            List<String> keys = List.of("'", "+ %", "a b", "é", "😀");
            for (String partitionKey : keys) {
                for (String rowKey : keys) {
                    insert(table, entity(partitionKey, rowKey, Map.of()));
                }
            }
            ListEntitiesOptions options = new ListEntitiesOptions().setTop(2);
            equal(rows(list(table, options)), String.join(" ", Collections.nCopies(5, String.join(" ", keys))));
            equal(sizes(table, options).size(), 13);
        });
    }
}
