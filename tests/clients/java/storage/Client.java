package cases;

import static cases.Checks.*;

import com.microsoft.azure.storage.RetryNoRetry;
import com.microsoft.azure.storage.StorageCredentials;
import com.microsoft.azure.storage.StorageCredentialsAccountAndKey;
import com.microsoft.azure.storage.StorageCredentialsSharedAccessSignature;
import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.StorageUri;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.CloudTableClient;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.EntityProperty;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableQuery;
import com.microsoft.azure.storage.table.TableResult;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;

/** The server under test, and short forms of what the cases do with it. */
final class Client {
    static final CloudTableClient SERVICE = service(credentials(KEY));
    static final Map<String, Object> LONDON = Map.of("Age", 36, "City", "London");

    static StorageCredentials credentials(String key) {
        return new StorageCredentialsAccountAndKey(ACCOUNT, key);
    }

    static CloudTableClient service(StorageCredentials credentials) {
        StorageUri endpoints = new StorageUri(URI.create(ENDPOINT), URI.create(ENDPOINT + "-secondary"));
        CloudTableClient service = new CloudTableClient(endpoints, credentials);
        // a retry would hide a failure of the server
        service.getDefaultRequestOptions().setRetryPolicyFactory(RetryNoRetry.getInstance());
        return service;
    }

    static CloudTable byToken(String name, String token) throws Exception {
        return service(new StorageCredentialsSharedAccessSignature(token)).getTableReference(name);
    }

    static CloudTable newTable() throws Exception {
        CloudTable table = SERVICE.getTableReference(newName());
        table.create();
        return table;
    }

    static EntityProperty property(Object value) {
        if (value instanceof EntityProperty property) {
            return property;
        }
        return switch (value.getClass().getSimpleName()) {
            case "String" -> new EntityProperty((String) value);
            case "Integer" -> new EntityProperty((Integer) value);
            case "Long" -> new EntityProperty((Long) value);
            case "Double" -> new EntityProperty((Double) value);
            case "Boolean" -> new EntityProperty((Boolean) value);
            case "UUID" -> new EntityProperty((java.util.UUID) value);
            case "Date" -> new EntityProperty((java.util.Date) value);
            case "byte[]" -> new EntityProperty((byte[]) value);
            default -> throw new IllegalArgumentException(value.toString());
        };
    }

    static DynamicTableEntity entity(String partitionKey, String rowKey, Map<String, ?> values) {
        HashMap<String, EntityProperty> properties = new HashMap<>();
        values.forEach((name, value) -> properties.put(name, property(value)));
        return new DynamicTableEntity(partitionKey, rowKey, properties);
    }

    static DynamicTableEntity person(String rowKey, Map<String, ?> values) {
        return entity("se", rowKey, values);
    }

    static DynamicTableEntity person(String rowKey) {
        return person(rowKey, Map.of());
    }

    /** An entity for a change or deletion of a version. */
    static DynamicTableEntity withETag(DynamicTableEntity entity, String etag) {
        entity.setEtag(etag);
        return entity;
    }

    static TableResult insert(CloudTable table, DynamicTableEntity entity) throws StorageException {
        return table.execute(TableOperation.insert(entity));
    }

    static TableResult retrieve(CloudTable table, String partitionKey, String rowKey) throws StorageException {
        return table.execute(TableOperation.retrieve(partitionKey, rowKey, DynamicTableEntity.class));
    }

    static DynamicTableEntity get(CloudTable table, String partitionKey, String rowKey) throws StorageException {
        return retrieve(table, partitionKey, rowKey).getResultAsType();
    }

    /** The properties of an entity as text, such as "Age=36 City=London". */
    static String content(DynamicTableEntity entity) {
        return new TreeMap<>(entity.getProperties()).entrySet().stream()
            .map(it -> it.getKey() + "=" + it.getValue().getValueAsString()).collect(Collectors.joining(" "));
    }

    static String content(CloudTable table, String rowKey) throws StorageException {
        return content(get(table, "se", rowKey));
    }

    static TableQuery<DynamicTableEntity> query(String filter) {
        TableQuery<DynamicTableEntity> query = TableQuery.from(DynamicTableEntity.class);
        return filter == null ? query : query.where(filter);
    }

    static List<DynamicTableEntity> list(CloudTable table, TableQuery<DynamicTableEntity> query) throws StorageException {
        try {
            return StreamSupport.stream(table.execute(query).spliterator(), false).toList();
        } catch (NoSuchElementException error) { // what the iterator makes of a refusal
            throw (StorageException) error.getCause();
        }
    }

    static String rows(List<DynamicTableEntity> entities) {
        return entities.stream().map(DynamicTableEntity::getRowKey).collect(Collectors.joining(" "));
    }

    static String rows(CloudTable table, String filter) throws StorageException {
        return rows(list(table, query(filter)));
    }

    /** Checks the status and the code of a refusal. */
    static void refused(int status, String code, Body body) throws Exception {
        try {
            body.run();
        } catch (StorageException error) {
            equal(new Refusal(error.getHttpStatusCode(), error.getErrorCode()), refusal(status, code));
            return;
        }
        throw new AssertionError("not refused");
    }

    private Client() {
    }
}
