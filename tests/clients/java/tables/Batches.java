package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionResponse;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

final class Batches {
    static TableTransactionAction action(TableTransactionActionType type, TableEntity entity) {
        return new TableTransactionAction(type, entity);
    }

    /** Submits a batch and returns the status of each operation. */
    static List<Integer> submit(TableClient table, List<TableTransactionAction> actions) {
        return table.submitTransaction(actions).getTransactionActionResponses().stream()
            .map(TableTransactionActionResponse::getStatusCode).toList();
    }

    /** A table with five entities that one batch wrote. */
    private static TableClient crowd() {
        TableClient table = newTable();
        List<TableTransactionAction> actions = new ArrayList<>();
        for (String rowKey : "a b c d e".split(" ")) {
            actions.add(action(TableTransactionActionType.CREATE, person(rowKey, LONDON)));
        }
        equal(submit(table, actions), List.of(204, 204, 204, 204, 204));
        return table;
    }

    private static String stored(TableClient table) {
        return list(table, null).stream()
            .map(it -> it.getRowKey() + ":" + it.getProperty("Age") + "," + it.getProperty("City"))
            .collect(Collectors.joining(" "));
    }

    private static void undone(String code, TableTransactionAction third) {
        undone(crowd(), code, third);
    }

    /** Checks that a batch is refused for its third operation, and that nothing of it stays. */
    private static void undone(TableClient table, String code, TableTransactionAction third) {
        String before = stored(table);
        try {
            submit(table, List.of(
                action(TableTransactionActionType.UPSERT_REPLACE, person("b", Map.of("Age", 9))),
                action(TableTransactionActionType.DELETE, person("c")),
                third));
        } catch (TableTransactionFailedException error) {
            equal(error.getFailedTransactionActionIndex(), 2);
            equal(String.valueOf(error.getValue().getErrorCode()), code);
            equal(stored(table), before);
            return;
        }
        throw new AssertionError("not refused");
    }

    static void run() {
        check("writes every kind of operation in a batch", () -> {
            TableClient table = crowd();
            Map<String, Object> changed = Map.of("Age", 2);
            equal(submit(table, List.of(
                action(TableTransactionActionType.CREATE, person("f", changed)),
                action(TableTransactionActionType.DELETE, person("a")),
                action(TableTransactionActionType.UPDATE_MERGE, person("b", changed)),
                action(TableTransactionActionType.UPDATE_REPLACE, person("c", changed)),
                action(TableTransactionActionType.UPSERT_MERGE, person("d", changed)),
                action(TableTransactionActionType.UPSERT_REPLACE, person("e", changed)),
                action(TableTransactionActionType.UPSERT_MERGE, person("g", changed)),
                action(TableTransactionActionType.UPSERT_REPLACE, person("h", changed))
            )), List.of(204, 204, 204, 204, 204, 204, 204, 204));
            equal(stored(table), "b:2,London c:2,null d:2,London e:2,null f:2,null g:2,null h:2,null");
        });
        check("changes the versions that a batch names", () -> {
            TableClient table = crowd();
            submit(table, List.of(
                new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE,
                    table.getEntity("se", "a").addProperty("Age", 37), true),
                new TableTransactionAction(TableTransactionActionType.DELETE, table.getEntity("se", "b"), true)));
            equal(stored(table), "a:37,London c:36,London d:36,London e:36,London");
        });
        check("undoes a batch with an entity that exists", () ->
            undone("EntityAlreadyExists", action(TableTransactionActionType.CREATE, person("a"))));
        check("undoes a batch with an entity that is missing", () ->
            undone("ResourceNotFound", action(TableTransactionActionType.UPDATE_MERGE, person("nobody"))));
        check("undoes a batch with another version", () -> {
            TableClient table = crowd();
            TableEntity stale = table.getEntity("se", "a");
            table.updateEntity(person("a", Map.of("Age", 40)));
            undone(table, "UpdateConditionNotSatisfied",
                new TableTransactionAction(TableTransactionActionType.UPDATE_REPLACE, stale, true));
        });
        check("undoes a batch with an entity that is none", () ->
            undone("PropertyNameInvalid",
                action(TableTransactionActionType.UPSERT_MERGE, person("d", Map.of("a-b", 1)))));
        check("undoes a batch that names an entity twice", () -> {
            TableTransactionAction twice = action(TableTransactionActionType.UPSERT_MERGE, person("b"));
            if (IS_COSMOS) { // which refuses the batch as a whole
                TableClient table = crowd();
                String before = stored(table);
                refused(400, "InvalidDuplicateRow", () -> submit(table, List.of(twice, twice)));
                equal(stored(table), before);
            } else {
                undone("InvalidDuplicateRow", twice);
            }
        });
        check("writes a hundred entities in a batch, and no more", () -> {
            TableClient table = newTable();
            List<TableTransactionAction> actions = new ArrayList<>();
            for (int number = 0; number < 100; number++) {
                actions.add(action(TableTransactionActionType.UPSERT_MERGE, person(String.format("%03d", number))));
            }
            equal(submit(table, actions).size(), 100);
            equal(list(table, null).size(), 100);
            actions.add(action(TableTransactionActionType.UPSERT_MERGE, person("more")));
            try {
                submit(table, actions);
            } catch (TableServiceException error) {
                equal(String.valueOf(error.getValue().getErrorCode()), "InvalidInput");
                return;
            }
            throw new AssertionError("not refused");
        });
        check("serves odd keys and values in a batch", () -> {
            TableClient table = newTable();
            for (TableTransactionActionType type : new TableTransactionActionType[] {
                TableTransactionActionType.CREATE, TableTransactionActionType.UPSERT_MERGE,
                TableTransactionActionType.UPDATE_REPLACE, TableTransactionActionType.DELETE,
            }) {
                List<TableTransactionAction> actions = new ArrayList<>();
                for (String odd : ODD_KEYS) {
                    actions.add(action(type, person(odd, Map.of("Value", "--changeset_x\r\n\r\n\0" + odd))));
                }
                submit(table, actions);
                if (type == TableTransactionActionType.UPDATE_REPLACE) {
                    for (String odd : ODD_KEYS) {
                        equal(get(table, "se", odd), Map.of("Value", "--changeset_x\r\n\r\n\0" + odd));
                    }
                }
            }
            equal(stored(table), "");
        });
    }
}
