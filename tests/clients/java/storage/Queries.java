package cases;

import static cases.Checks.*;
import static cases.Client.*;
import static com.microsoft.azure.storage.table.TableQuery.QueryComparisons.EQUAL;
import static com.microsoft.azure.storage.table.TableQuery.QueryComparisons.LESS_THAN;
import static com.microsoft.azure.storage.table.TableQuery.generateFilterCondition;

import com.microsoft.azure.storage.ResultContinuation;
import com.microsoft.azure.storage.ResultSegment;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.TableQuery;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.UUID;

final class Queries {
    private static final Date NOON = Date.from(Instant.parse("2020-01-01T12:00:00Z"));

    /** A table with two entities, one of low and one of high values. */
    private static CloudTable zoo() throws Exception {
        CloudTable table = newTable();
        insert(table, person("low", Map.of("Text", "o'low", "Flag", false, "Count", -3, "Ratio", 0.5, "Big", -5000000000L,
            "Moment", NOON, "Id", UUID.fromString(GUID), "Data", new byte[] {0, 1})));
        insert(table, person("high", Map.of("Text", "z", "Flag", true, "Count", 3, "Ratio", 1.5, "Big", 5000000000L,
            "Moment", new Date(NOON.getTime() + 1), "Id", UUID.randomUUID(), "Data", new byte[] {0, 2})));
        return table;
    }

    /** A table with entities of one partition. */
    private static CloudTable tableOf(int count) throws Exception {
        CloudTable table = newTable();
        for (int start = 0; start < count; start += 100) {
            int first = start;
            Batches.submit(table, batch -> {
                for (int number = first; number < Math.min(first + 100, count); number++) {
                    batch.insert(person(String.format("%04d", number), Map.of("Even", number % 2 == 0)));
                }
            });
        }
        return table;
    }

    private static List<List<DynamicTableEntity>> pages(
        CloudTable table, TableQuery<DynamicTableEntity> query, ResultContinuation token) throws Exception {
        List<List<DynamicTableEntity>> pages = new ArrayList<>();
        do {
            ResultSegment<DynamicTableEntity> page = table.executeSegmented(query, token);
            pages.add(page.getResults());
            token = page.getContinuationToken();
        } while (token != null);
        return pages;
    }

    private static List<Integer> sizes(CloudTable table, TableQuery<DynamicTableEntity> query) throws Exception {
        return pages(table, query, null).stream().map(List::size).toList();
    }

    static void run() {
        check("filters by values of every type", () -> {
            CloudTable table = zoo();
            for (String filter : new String[] {
                generateFilterCondition("Text", EQUAL, "o'low"),
                generateFilterCondition("Text", LESS_THAN, "p"),
                generateFilterCondition("Flag", EQUAL, false),
                generateFilterCondition("Count", EQUAL, -3),
                generateFilterCondition("Count", LESS_THAN, 0),
                generateFilterCondition("Ratio", EQUAL, 0.5),
                generateFilterCondition("Ratio", LESS_THAN, 1.0),
                generateFilterCondition("Big", EQUAL, -5000000000L),
                generateFilterCondition("Big", LESS_THAN, 0L),
                generateFilterCondition("Moment", EQUAL, NOON),
                generateFilterCondition("Moment", LESS_THAN, new Date(NOON.getTime() + 1)),
                generateFilterCondition("Id", EQUAL, UUID.fromString(GUID)),
                generateFilterCondition("Data", EQUAL, new byte[] {0, 1}),
                generateFilterCondition("Data", LESS_THAN, new byte[] {0, 2}),
            }) {
                equal(rows(table, filter) + " by " + filter, "low by " + filter);
            }
        });
        check("filters by logic and by keys", () -> {
            CloudTable table = zoo();
            for (Map.Entry<String, String> one : Map.of(
                "not (Flag eq true)", "low",
                "(Flag eq true) or (Count lt 0)", "high low",
                "(Flag eq true) and (Count lt 0)", "",
                "PartitionKey eq 'se' and RowKey ge 'l'", "low",
                "RowKey ne 'low' and Text ge 'h'", "high",
                "Timestamp ge datetime'2020-01-01T00:00:00Z'", "high low",
                "Missing eq 'x'", "").entrySet()) {
                equal(rows(table, one.getKey()) + " by " + one.getKey(), one.getValue() + " by " + one.getKey());
            }
        });
        check("refuses a filter that is none", () -> {
            CloudTable table = newTable();
            refused(400, "InvalidInput", () -> rows(table, "Count eq"));
        });
        check("selects properties", () -> {
            List<DynamicTableEntity> found = list(zoo(), query("RowKey eq 'low'").select(new String[] {"Count"}));
            equal(content(found.get(0)), "Count=-3");
        });
        check("follows pages to the end", () -> {
            CloudTable table = tableOf(7);
            for (Map.Entry<Integer, List<Integer>> one : Map.of(1, Collections.nCopies(7, 1), 2, List.of(2, 2, 2, 1),
                3, List.of(3, 3, 1), 7, List.of(7), 8, List.of(7)).entrySet()) {
                equal(sizes(table, query(null).take(one.getKey())), one.getValue());
            }
        });
        check("continues a query by its token", () -> {
            CloudTable table = tableOf(7);
            TableQuery<DynamicTableEntity> query = query("Even eq true").take(2);
            ResultSegment<DynamicTableEntity> first = table.executeSegmented(query, null);
            equal(rows(first.getResults()), "0000 0002");
            List<List<DynamicTableEntity>> rest = pages(table, query, first.getContinuationToken());
            equal(rest.size(), 1);
            equal(rows(rest.get(0)), "0004 0006");
        });
        check("follows more than a thousand entities", () -> {
            CloudTable table = tableOf(1050);
            equal(sizes(table, query(null)), List.of(1000, 50));
            equal(list(table, query(null)).size(), 1050);
        });
        check("continues among odd keys", () -> {
            CloudTable table = newTable();
            List<String> keys = List.of("'", "+ %", "a b", "é", "😀");
            for (String partitionKey : keys) {
                for (String rowKey : keys) {
                    insert(table, entity(partitionKey, rowKey, Map.of()));
                }
            }
            List<List<DynamicTableEntity>> pages = pages(table, query(null).take(2), null);
            equal(pages.size(), 13);
            equal(rows(pages.stream().flatMap(List::stream).toList()),
                String.join(" ", Collections.nCopies(5, String.join(" ", keys))));
        });
    }
}
