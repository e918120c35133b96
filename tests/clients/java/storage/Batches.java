package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableResult;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;

final class Batches {
    static List<TableResult> submit(CloudTable table, Consumer<TableBatchOperation> fill) throws StorageException {
        TableBatchOperation batch = new TableBatchOperation();
        fill.accept(batch);
        return table.execute(batch);
    }

    /** A table with five entities that one batch wrote. */
    private static CloudTable crowd() throws Exception {
        CloudTable table = newTable();
        submit(table, batch -> List.of("a", "b", "c", "d", "e").forEach(rowKey -> batch.insert(person(rowKey, LONDON))));
        return table;
    }

    private static String stored(CloudTable table) throws StorageException {
        return list(table, query(null)).stream()
            .map(it -> it.getRowKey() + "(" + content(it) + ")").collect(Collectors.joining(" "));
    }

    /** Checks that a batch is refused for its third operation, and that nothing of it stays. */
    private static void undone(int status, String code, TableOperation third) throws Exception {
        CloudTable table = crowd();
        String before = stored(table);
        try {
            submit(table, batch -> {
                batch.insertOrReplace(person("b", Map.of("Age", 9)));
                batch.delete(withETag(person("c"), "*"));
                batch.add(third);
            });
        } catch (StorageException error) {
            equal(new Refusal(error.getHttpStatusCode(), error.getErrorCode()), new Refusal(status, code));
            String message = error.getExtendedErrorInformation().getErrorMessage();
            isTrue(message.startsWith("2:"), message);
            equal(stored(table), before);
            return;
        }
        throw new AssertionError("not refused");
    }

    static void run() {
        check("writes every kind of operation in a batch", () -> {
            CloudTable table = crowd();
            Map<String, Object> changed = Map.of("Age", 2);
            List<TableResult> results = submit(table, batch -> {
                batch.insert(person("f", changed));
                batch.delete(withETag(person("a"), "*"));
                batch.merge(withETag(person("b", changed), "*"));
                batch.replace(withETag(person("c", changed), "*"));
                batch.insertOrMerge(person("d", changed));
                batch.insertOrReplace(person("e", changed));
                batch.insertOrMerge(person("g", changed));
                batch.insertOrReplace(person("h", changed));
            });
            equal(results.stream().map(TableResult::getHttpStatusCode).distinct().toList(), List.of(204));
            equal(results.get(7).getEtag(), retrieve(table, "se", "h").getEtag());
            equal(stored(table), "b(Age=2 City=London) c(Age=2) d(Age=2 City=London) e(Age=2) f(Age=2) g(Age=2) h(Age=2)");
        });
        check("inserts in a batch with an echo", () -> {
            CloudTable table = newTable();
            List<TableResult> results = submit(table, batch -> {
                batch.insert(person("a", LONDON), true);
                batch.insertOrMerge(person("b", LONDON));
                batch.insert(person("c", Map.of("Big", 5000000000L, "Text", "x\r\ny")), true);
            });
            equal(results.stream().map(TableResult::getHttpStatusCode).toList(), List.of(201, 204, 201));
            equal(content(results.get(0).getResultAsType()), "Age=36 City=London");
            equal(content(results.get(2).getResultAsType()), "Big=5000000000 Text=x\r\ny");
            equal(results.get(0).getEtag(), retrieve(table, "se", "a").getEtag());
        });
        check("reads an entity in a batch", () -> {
            CloudTable table = crowd();
            List<TableResult> results = submit(table, batch -> batch.retrieve("se", "c", DynamicTableEntity.class));
            equal(results.size(), 1);
            equal(content(results.get(0).getResultAsType()), "Age=36 City=London");
            equal(results.get(0).getEtag(), retrieve(table, "se", "c").getEtag());
            equal(submit(table, batch -> batch.retrieve("se", "x", DynamicTableEntity.class)).get(0).getHttpStatusCode(), 404);
        });
        check("changes the versions that a batch names", () -> {
            CloudTable table = crowd();
            DynamicTableEntity first = get(table, "se", "a");
            DynamicTableEntity second = get(table, "se", "b");
            first.getProperties().put("Age", property(37));
            submit(table, batch -> {
                batch.replace(first);
                batch.delete(second);
            });
            equal(rows(table, null), "a c d e");
            equal(content(table, "a"), "Age=37 City=London");
        });
        check("undoes a batch with an entity that exists", () ->
            undone(409, "EntityAlreadyExists", TableOperation.insert(person("a"))));
        check("undoes a batch with an entity that is missing", () ->
            undone(404, "ResourceNotFound", TableOperation.delete(withETag(person("nobody"), "*"))));
        check("undoes a batch with another version", () ->
            undone(412, "UpdateConditionNotSatisfied", TableOperation.merge(withETag(person("a"), Entities.OTHER_ETAG))));
        check("undoes a batch with an entity that is none", () ->
            undone(400, "PropertyNameInvalid", TableOperation.insertOrMerge(person("d", Map.of("a-b", 1)))));
        check("undoes a batch that names an entity twice", () -> {
            if (IS_COSMOS) { // which refuses the batch as a whole, and the client then reads no more than the status
                CloudTable table = crowd();
                String before = stored(table);
                int status = 202;
                try {
                    submit(table, batch -> {
                        batch.insertOrMerge(person("b"));
                        batch.insertOrMerge(person("b"));
                    });
                } catch (StorageException error) {
                    status = error.getHttpStatusCode();
                }
                equal(status, 400);
                equal(stored(table), before);
            } else {
                undone(400, "InvalidDuplicateRow", TableOperation.insertOrMerge(person("b")));
            }
        });
        check("writes a hundred entities in a batch", () -> {
            CloudTable table = newTable();
            submit(table, batch -> {
                for (int number = 0; number < 100; number++) {
                    batch.insert(person(String.format("%03d", number)));
                }
            });
            equal(list(table, query(null)).size(), 100);
        });
        check("serves odd keys and values in a batch", () -> {
            CloudTable table = newTable();
            for (Consumer<TableBatchOperation> all : List.<Consumer<TableBatchOperation>>of(
                batch -> odd(batch::insert), batch -> odd(batch::insertOrMerge), batch -> odd(batch::replace))) {
                submit(table, all);
            }
            for (String odd : ODD_KEYS) {
                equal(content(table, odd), "Value=--changeset_x\r\n\r\n\0" + odd);
            }
            submit(table, batch -> odd(batch::delete));
            equal(stored(table), "");
        });
    }

    private static void odd(Consumer<DynamicTableEntity> add) {
        for (String odd : ODD_KEYS) {
            add.accept(withETag(person(odd, Map.of("Value", "--changeset_x\r\n\r\n\0" + odd)), "*"));
        }
    }
}
