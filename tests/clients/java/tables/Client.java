package cases;

import static cases.Checks.*;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.HttpHeaderName;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.http.rest.PagedResponse;
import com.azure.core.http.rest.Response;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceError;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** The server under test, and short forms of what the cases do with it. */
final class Client {
    // a retry would hide a failure of the server
    static final RetryOptions ONCE = new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1)));
    static final AzureNamedKeyCredential CREDENTIAL = new AzureNamedKeyCredential(ACCOUNT, KEY);
    static final TableServiceClient SERVICE = serviceAt(ENDPOINT);
    static final Map<String, Object> LONDON = Map.of("Age", 36, "City", "London");

    private static final Pattern CODE = Pattern.compile("(?:\"code\":\"|<m:code>)(\\w+)"); // JSON or XML

    static TableServiceClient serviceAt(String endpoint) {
        return new TableServiceClientBuilder().endpoint(endpoint).credential(CREDENTIAL).retryOptions(ONCE).buildClient();
    }

    static TableClient byToken(String name, String token) {
        return new TableClientBuilder().endpoint(ENDPOINT).sasToken(token).tableName(name).retryOptions(ONCE).buildClient();
    }

    static TableClient newTable() {
        return SERVICE.createTable(newName());
    }

    static TableEntity entity(String partitionKey, String rowKey, Map<String, ?> properties) {
        TableEntity entity = new TableEntity(partitionKey, rowKey);
        properties.forEach(entity::addProperty);
        return entity;
    }

    static TableEntity person(String rowKey, Map<String, ?> properties) {
        return entity("se", rowKey, properties);
    }

    static TableEntity person(String rowKey) {
        return person(rowKey, Map.of());
    }

    /** The ETag of an answer, from which the client takes the last quotation mark. */
    private static String etag(Response<?> response) {
        return response.getHeaders().getValue(HttpHeaderName.ETAG) + '"';
    }

    /** Inserts an entity and returns its ETag. */
    static String insert(TableClient table, TableEntity entity) {
        return etag(table.createEntityWithResponse(entity, null, null));
    }

    static String update(TableClient table, TableEntity entity, TableEntityUpdateMode mode, boolean ifUnchanged) {
        return etag(table.updateEntityWithResponse(entity, mode, ifUnchanged, null, null));
    }

    static String upsert(TableClient table, TableEntity entity, TableEntityUpdateMode mode) {
        return etag(table.upsertEntityWithResponse(entity, mode, null, null));
    }

    /** The properties of an entity, without its keys, its Timestamp and what describes it. */
    static Map<String, Object> content(TableEntity entity) {
        Map<String, Object> result = new TreeMap<>(entity.getProperties());
        result.keySet().removeIf(name -> name.startsWith("odata.") || name.contains("@odata.")
            || List.of("PartitionKey", "RowKey", "Timestamp").contains(name));
        return result;
    }

    static Map<String, Object> get(TableClient table, String partitionKey, String rowKey) {
        return content(table.getEntity(partitionKey, rowKey));
    }

    static List<List<TableEntity>> pages(TableClient table, ListEntitiesOptions options, String token) {
        ListEntitiesOptions query = options == null ? new ListEntitiesOptions() : options;
        List<List<TableEntity>> pages = new ArrayList<>();
        for (PagedResponse<TableEntity> page : table.listEntities(query, null, null).iterableByPage(token)) {
            pages.add(page.getValue());
        }
        return pages;
    }

    static List<Integer> sizes(TableClient table, ListEntitiesOptions options) {
        return pages(table, options, null).stream().map(List::size).toList();
    }

    static List<TableEntity> list(TableClient table, ListEntitiesOptions options) {
        return pages(table, options, null).stream().flatMap(List::stream).toList();
    }

    static String rows(List<TableEntity> entities) {
        return entities.stream().map(TableEntity::getRowKey).collect(Collectors.joining(" "));
    }

    static String rows(TableClient table, String filter) {
        return rows(list(table, new ListEntitiesOptions().setFilter(filter)));
    }

    /** Checks the status and the code of a refusal. */
    static void refused(int status, String code, Body body) throws Exception {
        try {
            body.run();
        } catch (HttpResponseException error) {
            // what refuses a page is an exception that keeps the code in its message only
            Matcher found = CODE.matcher(error.getMessage());
            String actual = error.getValue() instanceof TableServiceError value
                ? String.valueOf(value.getErrorCode())
                : found.find() ? found.group(1) : error.getMessage();
            equal(new Refusal(error.getResponse().getStatusCode(), actual), refusal(status, code));
            return;
        }
        throw new AssertionError("not refused");
    }

    private Client() {
    }
}
