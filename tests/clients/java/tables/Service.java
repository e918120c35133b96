package cases;

import static cases.Checks.*;
import static cases.Client.*;

import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableItem;
import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceGeoReplication;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

final class Service {
    private static List<List<String>> listTables(String filter, Integer top, String token) {
        List<List<String>> pages = new ArrayList<>();
        ListTablesOptions options = new ListTablesOptions().setFilter(filter).setTop(top);
        for (PagedResponse<TableItem> page : SERVICE.listTables(options, null, null).iterableByPage(token)) {
            pages.add(page.getValue().stream().map(TableItem::getName).toList());
        }
        return pages;
    }

    static void run() {
        check("creates, lists and deletes a table", () -> {
            String name = newName();
            String filter = "TableName eq '" + name + "'";
            SERVICE.createTable(name);
            equal(listTables(filter, null, null), List.of(List.of(name)));
            SERVICE.deleteTable(name);
            equal(listTables(filter, null, null).stream().flatMap(List::stream).toList(), List.of());
        });
        check("lists tables in pages", () -> {
            String prefix = newName();
            List<String> names = Stream.of("a", "b", "c", "d", "e").map(letter -> prefix + letter).toList();
            names.forEach(SERVICE::createTable);
            String filter = String.format("TableName ge '%sa' and TableName le '%sz'", prefix, prefix);
            equal(listTables(filter, 2, null), List.of(names.subList(0, 2), names.subList(2, 4), names.subList(4, 5)));
            ListTablesOptions options = new ListTablesOptions().setFilter(filter).setTop(2);
            String token = SERVICE.listTables(options, null, null).iterableByPage().iterator().next().getContinuationToken();
            equal(listTables(filter, 2, token), List.of(names.subList(2, 4), names.subList(4, 5)));
        });
        check("refuses a table that exists", () -> {
            String name = newTable().getTableName();
            refused(409, "TableAlreadyExists", () -> SERVICE.createTable(name));
            equal(SERVICE.createTableIfNotExists(name).getTableName(), name);
        });
        check("takes a missing table for deleted", () ->
            equal(SERVICE.deleteTableWithResponse(newName(), null, null).getStatusCode(), 404));
        checkStorage("refuses a table whose name is none", "Azure Cosmos DB takes almost any name", () -> {
            refused(400, "InvalidResourceName", () -> SERVICE.createTable("1a"));
            refused(400, "OutOfRangeInput", () -> SERVICE.createTable("a".repeat(64)));
        });
        checkStorage("keeps the properties of the service", "Azure Cosmos DB has no service properties", () -> {
            TableServiceProperties before = SERVICE.getProperties();
            TableServiceRetentionPolicy week = new TableServiceRetentionPolicy().setEnabled(true).setDaysToRetain(7);
            TableServiceCorsRule rule = new TableServiceCorsRule().setAllowedOrigins("https://a.example,https://b.example")
                .setAllowedMethods("GET,MERGE").setAllowedHeaders("x-ms-*").setExposedHeaders("x-ms-*,etag").setMaxAgeInSeconds(60);
            try {
                SERVICE.setProperties(new TableServiceProperties()
                    .setLogging(new TableServiceLogging().setAnalyticsVersion("1.0").setReadLogged(true).setWriteLogged(true)
                        .setDeleteLogged(false).setRetentionPolicy(week))
                    .setHourMetrics(new TableServiceMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true)
                        .setRetentionPolicy(week))
                    .setMinuteMetrics(new TableServiceMetrics().setVersion("1.0").setEnabled(false)
                        .setRetentionPolicy(new TableServiceRetentionPolicy().setEnabled(false)))
                    .setCorsRules(List.of(rule)));
                TableServiceProperties found = SERVICE.getProperties();
                TableServiceLogging logging = found.getLogging();
                equal(List.of(logging.isReadLogged(), logging.isWriteLogged(), logging.isDeleteLogged()), List.of(true, true, false));
                equal(logging.getRetentionPolicy().getDaysToRetain(), 7);
                equal(List.of(found.getHourMetrics().isEnabled(), found.getHourMetrics().isIncludeApis()), List.of(true, true));
                equal(found.getHourMetrics().getTableServiceRetentionPolicy().getDaysToRetain(), 7);
                equal(found.getMinuteMetrics().isEnabled(), false);
                TableServiceCorsRule cors = found.getCorsRules().get(0);
                equal(List.of(cors.getAllowedOrigins(), cors.getAllowedMethods(), cors.getAllowedHeaders(),
                    cors.getExposedHeaders(), cors.getMaxAgeInSeconds()),
                    List.of(rule.getAllowedOrigins(), "GET,MERGE", "x-ms-*", "x-ms-*,etag", 60));
            } finally {
                SERVICE.setProperties(before);
            }
        });
        checkStorage("has statistics at the secondary", "Azure Cosmos DB has no statistics", () -> {
            TableServiceGeoReplication found = serviceAt(ENDPOINT + "-secondary").getStatistics().getGeoReplication();
            equal(found.getStatus().toString(), "live");
            Duration age = Duration.between(found.getLastSyncTime(), OffsetDateTime.now());
            isTrue(age.abs().toHours() < 1, age);
            refused(400, "InvalidQueryParameterValue", () -> SERVICE.getStatistics());
        });
        check("connects by a connection string", () -> {
            String name = newTable().getTableName();
            for (String end : new String[] {"", ";"}) {
                TableServiceClient connected = new TableServiceClientBuilder().retryOptions(ONCE).connectionString(
                    String.format("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;TableEndpoint=%s%s",
                        ACCOUNT, KEY, ENDPOINT, end)).buildClient();
                connected.getTableClient(name).upsertEntity(person("ada"));
            }
        });
        check("knows the connection string of development storage", () -> equal(new TableServiceClientBuilder()
            .connectionString("UseDevelopmentStorage=true").buildClient().getServiceEndpoint(),
            "http://127.0.0.1:10002/devstoreaccount1"));
        check("reads from the secondary", () -> {
            TableClient table = newTable();
            insert(table, person("ada", LONDON));
            TableClient second = serviceAt(ENDPOINT + "-secondary").getTableClient(table.getTableName());
            equal(get(second, "se", "ada"), LONDON);
            if (IS_COSMOS) { // whose regions all take writes
                second.deleteEntity("se", "ada");
            } else {
                refused(403, "InsufficientAccountPermissions", () -> second.deleteEntity("se", "ada"));
            }
        });
    }
}
