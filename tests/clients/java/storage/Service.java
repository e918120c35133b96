package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.microsoft.azure.storage.CloudStorageAccount;
import com.microsoft.azure.storage.CorsHttpMethods;
import com.microsoft.azure.storage.CorsRule;
import com.microsoft.azure.storage.GeoReplicationStats;
import com.microsoft.azure.storage.LocationMode;
import com.microsoft.azure.storage.LoggingOperations;
import com.microsoft.azure.storage.MetricsLevel;
import com.microsoft.azure.storage.ResultContinuation;
import com.microsoft.azure.storage.ResultSegment;
import com.microsoft.azure.storage.ServiceProperties;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.CloudTableClient;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableRequestOptions;
import com.microsoft.azure.storage.table.TableResult;
import java.util.ArrayList;
import java.util.Date;
import java.util.EnumSet;
import java.util.List;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

final class Service {
    private static TableRequestOptions atSecondary() {
        TableRequestOptions options = new TableRequestOptions();
        options.setLocationMode(LocationMode.SECONDARY_ONLY);
        return options;
    }

    static void run() {
        check("creates, lists and deletes a table", () -> {
            CloudTable table = SERVICE.getTableReference(newName());
            equal(table.exists(), false);
            table.create();
            equal(table.exists(), true);
            Iterable<String> found = SERVICE.listTables(table.getName());
            equal(StreamSupport.stream(found.spliterator(), false).toList(), List.of(table.getName()));
            table.delete();
            equal(table.exists(), false);
        });
        check("lists tables in pages", () -> {
            String prefix = newName();
            List<String> names = Stream.of("a", "b", "c", "d", "e").map(letter -> prefix + letter).toList();
            for (String name : names) {
                SERVICE.getTableReference(name).create();
            }
            List<List<String>> pages = new ArrayList<>();
            ResultContinuation token = null;
            do {
                ResultSegment<String> page = SERVICE.listTablesSegmented(prefix, 2, token, null, null);
                pages.add(page.getResults());
                token = page.getContinuationToken();
            } while (token != null);
            equal(pages, List.of(names.subList(0, 2), names.subList(2, 4), names.subList(4, 5)));
        });
        check("refuses a table that exists", () -> {
            CloudTable table = newTable();
            refused(409, "TableAlreadyExists", () -> table.create());
            equal(table.createIfNotExists(), false);
        });
        check("refuses to delete a missing table", () -> {
            CloudTable table = SERVICE.getTableReference(newName());
            refused(404, "ResourceNotFound", () -> table.delete());
            equal(table.deleteIfExists(), false);
        });
        checkStorage("keeps the properties of the service", "Azure Cosmos DB has no service properties", () -> {
            ServiceProperties before = SERVICE.downloadServiceProperties();
            CorsRule rule = new CorsRule();
            rule.setAllowedOrigins(List.of("https://a.example", "https://b.example"));
            rule.setAllowedMethods(EnumSet.of(CorsHttpMethods.GET, CorsHttpMethods.MERGE));
            rule.setAllowedHeaders(List.of("x-ms-*"));
            rule.setExposedHeaders(List.of("x-ms-*", "etag"));
            rule.setMaxAgeInSeconds(60);
            ServiceProperties properties = new ServiceProperties();
            properties.getLogging().setLogOperationTypes(EnumSet.of(LoggingOperations.READ, LoggingOperations.WRITE));
            properties.getLogging().setRetentionIntervalInDays(7);
            properties.getHourMetrics().setMetricsLevel(MetricsLevel.SERVICE_AND_API);
            properties.getHourMetrics().setRetentionIntervalInDays(7);
            properties.getMinuteMetrics().setMetricsLevel(MetricsLevel.DISABLED);
            properties.getCors().getCorsRules().add(rule);
            try {
                SERVICE.uploadServiceProperties(properties);
                ServiceProperties found = SERVICE.downloadServiceProperties();
                equal(found.getLogging().getLogOperationTypes(), properties.getLogging().getLogOperationTypes());
                equal(found.getLogging().getRetentionIntervalInDays(), 7);
                equal(found.getHourMetrics().getMetricsLevel(), MetricsLevel.SERVICE_AND_API);
                equal(found.getHourMetrics().getRetentionIntervalInDays(), 7);
                equal(found.getMinuteMetrics().getMetricsLevel(), MetricsLevel.DISABLED);
                CorsRule cors = found.getCors().getCorsRules().get(0);
                equal(List.of(cors.getAllowedOrigins(), cors.getAllowedMethods(), cors.getAllowedHeaders(),
                    cors.getExposedHeaders(), cors.getMaxAgeInSeconds()),
                    List.of(rule.getAllowedOrigins(), rule.getAllowedMethods(), rule.getAllowedHeaders(),
                    rule.getExposedHeaders(), 60));
            } finally {
                SERVICE.uploadServiceProperties(before);
            }
        });
        checkStorage("has statistics at the secondary", "Azure Cosmos DB has no statistics", () -> {
            GeoReplicationStats found = SERVICE.getServiceStats(atSecondary(), null).getGeoReplication();
            equal(found.getStatus().toString(), "LIVE");
            isTrue(Math.abs(new Date().getTime() - found.getLastSyncTime().getTime()) < 3600_000, found.getLastSyncTime());
        });
        check("connects by a connection string", () -> {
            CloudTable table = newTable();
            for (String end : new String[] {"", ";"}) {
                CloudTableClient connected = CloudStorageAccount.parse(
                    String.format("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;TableEndpoint=%s%s",
                        ACCOUNT, KEY, ENDPOINT, end)).createCloudTableClient();
                connected.getTableReference(table.getName()).execute(TableOperation.insertOrMerge(person("ada")));
            }
        });
        check("knows the connection string of development storage", () -> equal(
            CloudStorageAccount.parse("UseDevelopmentStorage=true").getTableEndpoint().toString(),
            "http://127.0.0.1:10002/devstoreaccount1"));
        check("reads from the secondary", () -> {
            CloudTable table = newTable();
            insert(table, person("ada", LONDON));
            TableOperation retrieve = TableOperation.retrieve("se", "ada", DynamicTableEntity.class);
            equal(content(table.execute(retrieve, atSecondary(), null).getResultAsType()), "Age=36 City=London");
            TableBatchOperation batch = new TableBatchOperation();
            batch.retrieve("se", "ada", DynamicTableEntity.class);
            TableResult read = table.execute(batch, atSecondary(), null).get(0);
            equal(content(read.getResultAsType()), "Age=36 City=London");
        });
    }
}
