// Microsoft.Azure.Cosmos.Table, or WindowsAzure.Storage before it: one interface in two name spaces.
using System.Globalization;
using System.Net;
using System.Text.RegularExpressions;
#if COSMOS_TABLE
using Microsoft.Azure.Cosmos.Table;
#else
using Microsoft.WindowsAzure.Storage;
using Microsoft.WindowsAzure.Storage.Auth;
using Microsoft.WindowsAzure.Storage.RetryPolicies;
using Microsoft.WindowsAzure.Storage.Shared.Protocol;
using Microsoft.WindowsAzure.Storage.Table;
#endif
using static Cases;

CloudTableClient Open(StorageCredentials credentials)
{
    // the client takes the first part of a path for the account behind an IP address only, and needs to with a token or a secondary
    var endpoint = credentials.IsSAS ? Endpoint.Replace("localhost", "127.0.0.1") : Endpoint;
    var addresses = new StorageUri(new Uri(endpoint), IsCosmos ? null : new Uri(endpoint + "-secondary"));
#if COSMOS_TABLE
    var client = new CloudTableClient(addresses, credentials, new TableClientConfiguration { UseRestExecutorForCosmosEndpoint = true });
#else
    var client = new CloudTableClient(addresses, credentials);
#endif
    client.DefaultRequestOptions.RetryPolicy = new NoRetry();  // a retry would hide a failure of the server
    return client;
}

var client = Open(new StorageCredentials(Account, Key));

async Task<CloudTable> NewTable()
{
    var table = client.GetTableReference(NewName());
    await table.CreateAsync();
    return table;
}

static DynamicTableEntity Person(string row, params (string Name, object? Value)[] values) => Entity("se", row, values);

static DynamicTableEntity Entity(string partition, string row, params (string Name, object? Value)[] values) =>
    new(partition, row) { Properties = values.ToDictionary(it => it.Name, it => EntityProperty.CreateEntityPropertyFromObject(it.Value)) };

static DynamicTableEntity Changing(DynamicTableEntity entity, string etag = "*")
{
    entity.ETag = etag;
    return entity;
}

static async Task<DynamicTableEntity?> Read(CloudTable table, string row = "ada", string partition = "se") =>
    (DynamicTableEntity?)(await table.ExecuteAsync(TableOperation.Retrieve<DynamicTableEntity>(partition, row))).Result;

static async Task<List<DynamicTableEntity>> All(CloudTable table, string? filter = null, TableRequestOptions? options = null)
{
    var entities = new List<DynamicTableEntity>();
    TableContinuationToken? token = null;
    do
    {
        var segment = await table.ExecuteQuerySegmentedAsync(new TableQuery<DynamicTableEntity> { FilterString = filter }, token, options, null);
        entities.AddRange(segment.Results);
        token = segment.ContinuationToken;
    } while (token is not null);
    return entities;
}

static async Task<string[]> Rows(CloudTable table, string? filter = null) => [.. (await All(table, filter)).Select(it => it.RowKey)];

static async Task Refused(int status, string code, Func<Task> request)
{
    try { await request(); }
    catch (StorageException error)
    {
        var information = error.RequestInformation;
        Equal((status, code), (information.HttpStatusCode, information.ExtendedErrorInformation?.ErrorCode ?? ""), error.Message);
        return;
    }
    throw new Exception($"not refused with {status} {code}");
}

static void Holds(DynamicTableEntity found, (string Name, object? Value)[] properties)
{
    Equal(properties.Length, found.Properties.Count);
    foreach (var (name, value) in properties) Returned(value, found.Properties[name].PropertyAsObject, name);
}

// inserted, merged, replaced, in a batch; read one by one and in a page
async Task Return(params object?[] values)
{
    var table = await NewTable();
    var properties = values.Select((value, place) => ($"P{place}", value)).ToArray();
    await table.ExecuteAsync(TableOperation.Insert(Person("added", properties)));
    await table.ExecuteAsync(TableOperation.InsertOrMerge(Person("merged", properties)));
    await table.ExecuteAsync(TableOperation.InsertOrReplace(Person("replaced", properties)));
    await table.ExecuteBatchAsync(new TableBatchOperation { TableOperation.Insert(Person("together", properties)) });
    var all = await All(table);
    Same(["added", "merged", "replaced", "together"], all.Select(it => it.RowKey));
    foreach (var entity in all)
    {
        Holds(entity, properties);
        Holds((await Read(table, entity.RowKey))!, properties);
    }
}

Check("is of its version", async () =>
#if COSMOS_TABLE
    Equal(ClientVersion, VersionOf(typeof(CloudTable))));
#else
    Equal(("9.3.3", "9.3.2.0"), (ClientVersion, VersionOf(typeof(CloudTable)))));  // the package 9.3.3 says so of itself
#endif

Check("returns booleans", () => Return(true, false));

Check("returns int32", () => Return(0, 1, -1, int.MaxValue, int.MinValue));

Check("returns int64", () => Return(0L, 1L, -1L, 1L + int.MaxValue, (1L << 53) + 1, long.MaxValue, long.MinValue));

Check("returns doubles", () =>
    Return(0.5, -2.5, -0.0, 0.1, 1.0 / 3, 1e-7, 1e21, 1.0, -1.0, 123456789012345680.0, double.Epsilon, double.MaxValue, double.MinValue));

#if !COSMOS_TABLE  // which sends them as strings and cannot read them
Check("returns infinities and NaN", () => Return(double.NaN, double.PositiveInfinity, double.NegativeInfinity));
#endif

Check("returns strings", () => Return("", " ", "\0\u0001\t\r\n", "\"\\/'<>&", "é你🦊\u202e\u2028\ufeff\uffff", "2026-11-28T00:00:00Z", "NaN", "true", "1"));

Check("returns the longest string", () => Return(new string('x', 32768), string.Concat(Enumerable.Repeat("🦊", 16384))));

Check("returns binary", () => Return(Array.Empty<byte>(), new byte[] { 0, 255 }, Enumerable.Range(0, 256).Select(it => (byte)it).ToArray(), new byte[65536]));

Check("returns guids", () => Return(Guid.Empty, Guid.Parse("CF8EF051-1B7D-4E93-A1E5-A3944D7E441C"), Guid.NewGuid()));

Check("returns datetimes to 100 nanoseconds", () =>
    Return(
        new DateTime(1601, 1, 1, 0, 0, 0, DateTimeKind.Utc), new DateTime(1601, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddTicks(1),
        new DateTime(1969, 12, 31, 23, 59, 59, DateTimeKind.Utc).AddTicks(9999999), new DateTime(2026, 11, 28, 12, 0, 0, 100, DateTimeKind.Utc),
        DateTime.SpecifyKind(DateTime.MaxValue, DateTimeKind.Utc)));

CheckCosmos("returns a datetime that was never set", "storage accounts refuse it", () => Return(DateTime.SpecifyKind(default, DateTimeKind.Utc)));

CheckStorage("refuses a datetime that was never set", "Cosmos accounts store it", async () =>
{
    var table = await NewTable();
    var never = Person("ada", ("Since", DateTime.SpecifyKind(default, DateTimeKind.Utc)));
    await Refused(400, "OutOfRangeInput", () => table.ExecuteAsync(TableOperation.Insert(never)));
    Same([], await Rows(table));
});

Check("leaves out nulls", async () =>
{
    var table = await NewTable();
    var entity = Person("ada", ("Text", "x"));
    entity.Properties["Nothing"] = new EntityProperty((string?)null);
    await table.ExecuteAsync(TableOperation.Insert(entity));
    Same(["Text"], (await Read(table))!.Properties.Keys);
});

Check("fills the properties of a class", async () =>
{
    var table = await NewTable();
    var sent = new Customer { PartitionKey = "se", RowKey = "ada", Age = 36, Visits = 1L << 40, Balance = 2, Since = InAnHour, Photo = [1, 2] };
    await table.ExecuteAsync(TableOperation.Insert(sent));
    var found = (Customer)(await table.ExecuteAsync(TableOperation.Retrieve<Customer>("se", "ada"))).Result;
    Equal((36, 1L << 40, 2.0, InAnHour, null), (found.Age, found.Visits, found.Balance, found.Since!.Value, found.Title));
    Same(sent.Photo, found.Photo!);
    True(found.Timestamp > DateTimeOffset.UtcNow.AddMinutes(-5), "the Timestamp is of now");
});

Check("reads at every level of metadata", async () =>
{
    var table = await NewTable();
    (string, object?)[] properties =
    [
        ("Text", "x"), ("Yes", true), ("Small", 1), ("Big", 1L), ("Whole", 1.0), ("Since", new DateTime(2026, 1, 1, 0, 0, 0, DateTimeKind.Utc)),
        ("Id", Guid.Empty), ("Photo", new byte[] { 1 }),
    ];
    await table.ExecuteAsync(TableOperation.Insert(Person("ada", properties)));
    EdmType Declared(string partition, string row, string name, string value) => name switch
    {
        "Yes" => EdmType.Boolean, "Small" => EdmType.Int32, "Big" => EdmType.Int64, "Whole" => EdmType.Double, "Since" => EdmType.DateTime,
        "Id" => EdmType.Guid, "Photo" => EdmType.Binary, _ => EdmType.String,
    };
    foreach (var format in new[] { TablePayloadFormat.Json, TablePayloadFormat.JsonFullMetadata, TablePayloadFormat.JsonNoMetadata })
    {
        var options = new TableRequestOptions { PayloadFormat = format, PropertyResolver = format == TablePayloadFormat.JsonNoMetadata ? Declared : null };
        Holds((await All(table, null, options)).Single(), properties);
        var result = await table.ExecuteAsync(TableOperation.Retrieve<DynamicTableEntity>("se", "ada"), options, null);
        Holds((DynamicTableEntity)result.Result, properties);
    }
});

Check("inserts an entity and tells its ETag", async () =>
{
    var table = await NewTable();
    var result = await table.ExecuteAsync(TableOperation.Insert(Person("ada", ("Age", 36))));
    var found = (await Read(table))!;
    Equal((204, found.ETag), (result.HttpStatusCode, result.Etag));
    True(Regex.IsMatch(found.ETag, """^W/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d+)?Z'"$"""), found.ETag);
    True(found.ETag.Contains(Uri.EscapeDataString(found.Timestamp.UtcDateTime.ToString("s", CultureInfo.InvariantCulture))), "the ETag is of the Timestamp");
});

Check("inserts with an echo", async () =>
{
    var table = await NewTable();
    (string, object?)[] properties = [("Age", 36), ("Big", 5L), ("Half", 0.5), ("Id", Guid.Empty), ("Photo", new byte[] { 1, 2 }), ("Text", "x")];
    var result = await table.ExecuteAsync(TableOperation.Insert(Person("ada", properties), echoContent: true));
    var echo = (DynamicTableEntity)result.Result;
    var found = (await Read(table))!;
    Equal((201, found.ETag, found.Timestamp), (result.HttpStatusCode, echo.ETag, echo.Timestamp));
    Holds(echo, properties);
    Holds(found, properties);
});

Check("inserts with an echo in a batch", async () =>
{
    var table = await NewTable();
    (string, object?)[] properties = [("Age", 36), ("Big", 5L), ("Half", 0.5), ("Id", Guid.Empty), ("Photo", new byte[] { 1, 2 }), ("Text", "x\r\ny")];
    var batch = new TableBatchOperation();
    foreach (var row in new[] { "a", "b", "c" }) batch.Insert(Person(row, properties), echoContent: true);
    batch.Insert(Person("silent", properties), echoContent: false);
    var results = (await table.ExecuteBatchAsync(batch)).ToArray();
    Same([201, 201, 201, 204], results.Select(it => it.HttpStatusCode));
    foreach (var result in results[..3])
    {
        var echo = (DynamicTableEntity)result.Result;
        Holds(echo, properties);
        Equal((await Read(table, echo.RowKey))!.Timestamp, echo.Timestamp);
    }
});

Check("reads in a batch", async () =>
{
    var table = await NewTable();
    (string, object?)[] properties = [("Big", 5L), ("Half", 0.5), ("Since", new DateTime(2026, 1, 1, 0, 0, 0, DateTimeKind.Utc)), ("Text", "x\r\ny")];
    await table.ExecuteAsync(TableOperation.Insert(Person("it's 50 %", properties)));
    var result = (await table.ExecuteBatchAsync(new TableBatchOperation { TableOperation.Retrieve<DynamicTableEntity>("se", "it's 50 %") })).Single();
    var found = (DynamicTableEntity)result.Result;
    Equal((200, (await Read(table, "it's 50 %"))!.ETag), (result.HttpStatusCode, found.ETag));
    Holds(found, properties);
});

Check("refuses to insert an entity twice", async () =>
{
    var table = await NewTable();
    await table.ExecuteAsync(TableOperation.Insert(Person("ada", ("Age", 36))));
    await Refused(409, "EntityAlreadyExists", () => table.ExecuteAsync(TableOperation.Insert(Person("ada"))));
    Equal(36, (await Read(table))!.Properties["Age"].Int32Value!.Value);
});

Check("does not find a missing entity", async () =>
{
    var table = await NewTable();
    var result = await table.ExecuteAsync(TableOperation.Retrieve<DynamicTableEntity>("se", "ada"));
    Equal((404, null), (result.HttpStatusCode, result.Result));
});

Check("merges and replaces by ETag", async () =>
{
    var table = await NewTable();
    var etag = (await table.ExecuteAsync(TableOperation.Insert(Person("ada", ("Age", 36), ("City", "London"))))).Etag;
    etag = (await table.ExecuteAsync(TableOperation.Merge(Changing(Person("ada", ("Age", 37)), etag)))).Etag;
    var found = (await Read(table))!;
    Equal((etag, 37, "London"), (found.ETag, found.Properties["Age"].Int32Value!.Value, found.Properties["City"].StringValue));
    etag = (await table.ExecuteAsync(TableOperation.Replace(Changing(Person("ada", ("Title", "Countess")), etag)))).Etag;
    found = (await Read(table))!;
    Equal(etag, found.ETag);
    Same(["Title"], found.Properties.Keys);
    Equal(204, (await table.ExecuteAsync(TableOperation.Delete(Changing(Person("ada"), etag)))).HttpStatusCode);
    Same([], await Rows(table));
});

Check("refuses to change what was changed", async () =>
{
    var table = await NewTable();
    var old = (await table.ExecuteAsync(TableOperation.Insert(Person("ada", ("Age", 36))))).Etag;
    await table.ExecuteAsync(TableOperation.InsertOrMerge(Person("ada", ("Age", 37))));
    foreach (var operation in new Func<ITableEntity, TableOperation>[] { TableOperation.Merge, TableOperation.Replace, TableOperation.Delete })
        await Refused(412, "UpdateConditionNotSatisfied", () => table.ExecuteAsync(operation(Changing(Person("ada"), old))));
    Equal(37, (await Read(table))!.Properties["Age"].Int32Value!.Value);
});

Check("changes whatever is there", async () =>
{
    var table = await NewTable();
    await table.ExecuteAsync(TableOperation.Insert(Person("ada", ("Age", 36))));
    await table.ExecuteAsync(TableOperation.Merge(Changing(Person("ada", ("City", "London")))));
    Same(["Age", "City"], (await Read(table))!.Properties.Keys.Order());
    await table.ExecuteAsync(TableOperation.Replace(Changing(Person("ada", ("Title", "Countess")))));
    Same(["Title"], (await Read(table))!.Properties.Keys);
    Equal(204, (await table.ExecuteAsync(TableOperation.Delete(Changing(Person("ada"))))).HttpStatusCode);
    Same([], await Rows(table));
});

Check("refuses to change a missing entity", async () =>
{
    var table = await NewTable();
    foreach (var operation in new Func<ITableEntity, TableOperation>[] { TableOperation.Merge, TableOperation.Replace, TableOperation.Delete })
        await Refused(404, "ResourceNotFound", () => table.ExecuteAsync(operation(Changing(Person("ada")))));
});

Check("upserts by merging and by replacing", async () =>
{
    var table = await NewTable();
    foreach (var (row, operation, left) in new (string, Func<ITableEntity, TableOperation>, string[])[]
    {
        ("merged", TableOperation.InsertOrMerge, ["Age", "City"]), ("replaced", TableOperation.InsertOrReplace, ["City"]),
    })
    {
        var inserted = await table.ExecuteAsync(operation(Person(row, ("Age", 36))));
        var changed = await table.ExecuteAsync(operation(Person(row, ("City", "London"))));
        True(inserted.Etag != changed.Etag, "the ETag changes");
        var found = (await Read(table, row))!;
        Equal(changed.Etag, found.ETag);
        Same(left, found.Properties.Keys.Order());
    }
});

Check("writes a batch of all operations", async () =>
{
    var table = await NewTable();
    foreach (var row in new[] { "merged", "replaced", "deleted", "upserted" }) await table.ExecuteAsync(TableOperation.Insert(Person(row, ("Age", 1))));
    var results = await table.ExecuteBatchAsync(new TableBatchOperation
    {
        TableOperation.Insert(Person("added", ("Age", 2))),
        TableOperation.Merge(Changing(Person("merged", ("City", "London")))),
        TableOperation.Replace(Changing(Person("replaced", ("City", "London")), (await Read(table, "replaced"))!.ETag)),
        TableOperation.Delete(Changing(Person("deleted"))),
        TableOperation.InsertOrMerge(Person("upserted", ("City", "London"))),
        TableOperation.InsertOrReplace(Person("new", ("City", "London"))),
    });
    Same([204, 204, 204, 204, 204, 204], results.Select(it => it.HttpStatusCode));
    Same(["added", "merged", "new", "replaced", "upserted"], await Rows(table));
    Same(["Age", "City"], (await Read(table, "merged"))!.Properties.Keys.Order());
    Same(["City"], (await Read(table, "replaced"))!.Properties.Keys);
    Equal((await Read(table, "new"))!.ETag, results[5].Etag);
});

Check("writes nothing of a batch that fails", async () =>
{
    var table = await NewTable();
    var old = (await table.ExecuteAsync(TableOperation.Insert(Person("ada", ("Age", 36))))).Etag;
    await table.ExecuteAsync(TableOperation.InsertOrMerge(Person("ada", ("Age", 37))));
    foreach (var (operation, status, code) in new[]
    {
        (TableOperation.Insert(Person("ada")), 409, "EntityAlreadyExists"),
        (TableOperation.Merge(Changing(Person("ada"), old)), 412, "UpdateConditionNotSatisfied"),
        (TableOperation.Replace(Changing(Person("bob"))), 404, "ResourceNotFound"),
        (TableOperation.Delete(Changing(Person("bob"))), 404, "ResourceNotFound"),
    })
        await Refused(status, code, () => table.ExecuteBatchAsync(new TableBatchOperation { TableOperation.Insert(Person("eva")), operation }));
    Same(["ada"], await Rows(table));
});

Check("refuses a batch with an entity twice", async () =>
{
    var table = await NewTable();
    await Refused(400, "InvalidDuplicateRow", () =>
        table.ExecuteBatchAsync(new TableBatchOperation { TableOperation.Insert(Person("ada")), TableOperation.InsertOrMerge(Person("ada")) }));
});

Check("writes a batch of 100", async () =>
{
    var table = await NewTable();
    var batch = new TableBatchOperation();
    for (var it = 0; it < 100; it++) batch.InsertOrReplace(Person($"{it:000}", ("It", it)));
    Equal(100, (await table.ExecuteBatchAsync(batch)).Count);
    Same(Enumerable.Range(0, 100), (await All(table)).Select(it => it.Properties["It"].Int32Value!.Value));
});

Check("filters by every type", async () =>
{
    var table = await NewTable();
    var guid = Guid.NewGuid();
    var moment = new DateTime(2026, 11, 28, 1, 2, 3, DateTimeKind.Utc).AddTicks(1234567);
    byte[] photo = [0, 255];
    await table.ExecuteAsync(TableOperation.Insert(Person("ada", ("Text", "O'Brien"), ("Yes", true), ("Small", -7), ("Big", long.MaxValue), ("Half", 0.5), ("Since", moment), ("Id", guid), ("Photo", photo))));
    await table.ExecuteAsync(TableOperation.Insert(Person("bob", ("Text", "Z"), ("Yes", false), ("Small", 7), ("Big", 1L), ("Half", 1.5), ("Since", moment.AddTicks(1)), ("Id", Guid.Empty), ("Photo", Array.Empty<byte>()))));
    foreach (var filter in new[]
    {
        TableQuery.CombineFilters(TableQuery.GenerateFilterCondition("PartitionKey", "eq", "se"), "and", TableQuery.GenerateFilterCondition("RowKey", "lt", "b")),
        TableQuery.GenerateFilterCondition("Text", "eq", "O'Brien"), TableQuery.GenerateFilterConditionForBool("Yes", "eq", true),
        TableQuery.GenerateFilterConditionForInt("Small", "le", -7), TableQuery.GenerateFilterConditionForLong("Big", "eq", long.MaxValue),
        TableQuery.GenerateFilterConditionForDouble("Half", "lt", 1.0), TableQuery.GenerateFilterConditionForDate("Since", "lt", moment.AddTicks(1)),
        TableQuery.GenerateFilterConditionForGuid("Id", "eq", guid), TableQuery.GenerateFilterConditionForBinary("Photo", "eq", photo),
        $"not ({TableQuery.GenerateFilterConditionForInt("Small", "gt", 0)})", TableQuery.GenerateFilterCondition("Text", "ne", "Z"),
    })
        Same(["ada"], await Rows(table, filter), filter);
});

CheckStorage("filters by Timestamp", "Cosmos DB finds nothing by Timestamp", async () =>
{
    var table = await NewTable();
    await table.ExecuteAsync(TableOperation.Insert(Person("ada")));
    Same(["ada"], await Rows(table, TableQuery.GenerateFilterConditionForDate("Timestamp", "gt", DateTimeOffset.UtcNow.AddHours(-1))));
    Same([], await Rows(table, TableQuery.GenerateFilterConditionForDate("Timestamp", "lt", DateTimeOffset.UtcNow.AddHours(-1))));
});

Check("selects properties", async () =>
{
    var table = await NewTable();
    await table.ExecuteAsync(TableOperation.Insert(Person("ada", ("Age", 36), ("City", "London"), ("Big", 5L))));
    var query = new TableQuery<DynamicTableEntity>().Where("Age eq 36").Select(["Big", "City"]);
    var found = (await table.ExecuteQuerySegmentedAsync(query, null)).Results.Single();
    Equal((5L, "London", false), (found.Properties["Big"].Int64Value!.Value, found.Properties["City"].StringValue, found.Properties.ContainsKey("Age")));
    found = (DynamicTableEntity)(await table.ExecuteAsync(TableOperation.Retrieve<DynamicTableEntity>("se", "ada", ["City"]))).Result;
    Same(["City"], found.Properties.Keys);
});

Check("resolves entities to values", async () =>
{
    var table = await NewTable();
    foreach (var row in "ab") await table.ExecuteAsync(TableOperation.Insert(Person($"{row}", ("Age", 36 + row))));
    EntityResolver<string> resolver = (partition, row, timestamp, properties, etag) => $"{partition} {row} {properties["Age"].Int32Value} {etag.Length > 0}";
    var found = await table.ExecuteQuerySegmentedAsync(new TableQuery<DynamicTableEntity>().Select(["Age"]), resolver, null);
    Same([$"se a {36 + 'a'} True", $"se b {36 + 'b'} True"], found.Results);
});

Check("takes the first entities", async () =>
{
    var table = await NewTable();
    foreach (var row in "abcde") await table.ExecuteAsync(TableOperation.Insert(Person($"{row}")));
    var segment = await table.ExecuteQuerySegmentedAsync(new TableQuery<DynamicTableEntity>().Take(2), null);
    Same(["a", "b"], segment.Results.Select(it => it.RowKey));
});

Check("follows pages to the end", async () =>
{
    var table = await NewTable();
    string[] partitions = ["", "a", "it's", "é 🦊", "%2F"];
    var sent = (IsCosmos ? partitions[1..] : partitions).SelectMany(partition => Enumerable.Range(0, 5), (partition, row) => (partition, $"'{row} %")).ToArray();
    foreach (var (partition, row) in sent) await table.ExecuteAsync(TableOperation.Insert(Entity(partition, row)));
    foreach (var size in new[] { 1, 3, 5, 1000 })
    {
        var found = new List<(string, string)>();
        TableContinuationToken? token = null;
        do
        {
            var segment = await table.ExecuteQuerySegmentedAsync(new TableQuery<DynamicTableEntity>().Take(size), token);
            True(segment.Results.Count <= size, $"a page has at most {size}");
            found.AddRange(segment.Results.Select(it => (it.PartitionKey, it.RowKey)));
            token = segment.ContinuationToken;
        } while (token is not null);
        Same(sent.OrderBy(it => it.partition, StringComparer.Ordinal), found, $"by {size}");
    }
});

Check("continues from a token that was written down", async () =>
{
    var table = await NewTable();
    foreach (var row in "abcde") await table.ExecuteAsync(TableOperation.Insert(Person($"{row}", ("Age", 1))));
    var pages = new List<string>();
    TableContinuationToken? token = null;
    do
    {
        var query = new TableQuery<DynamicTableEntity>().Where("Age eq 1").Take(2);
        var segment = await Open(client.Credentials).GetTableReference(table.Name).ExecuteQuerySegmentedAsync(query, token);
        pages.Add(string.Concat(segment.Results.Select(it => it.RowKey)));
        token = segment.ContinuationToken is null ? null : Copy(segment.ContinuationToken);
    } while (token is not null);
    Same(["ab", "cd", "e"], pages);

    static TableContinuationToken Copy(TableContinuationToken token) =>
        new() { NextPartitionKey = token.NextPartitionKey, NextRowKey = token.NextRowKey, NextTableName = token.NextTableName, TargetLocation = token.TargetLocation };
});

Check("pages by a thousand", async () =>
{
    var table = await NewTable();
    for (var start = 0; start < 1100; start += 100)
    {
        var batch = new TableBatchOperation();
        for (var it = start; it < start + 100; it++) batch.Insert(Person($"{it:0000}"));
        await table.ExecuteBatchAsync(batch);
    }
    var segment = await table.ExecuteQuerySegmentedAsync(new TableQuery<DynamicTableEntity>(), null);
    Equal(1000, segment.Results.Count);
    segment = await table.ExecuteQuerySegmentedAsync(new TableQuery<DynamicTableEntity>(), segment.ContinuationToken);
    Equal((100, null), (segment.Results.Count, segment.ContinuationToken));
});

Check("creates, lists and deletes tables", async () =>
{
    var prefix = NewName();
    foreach (var letter in "cab") await client.GetTableReference(prefix + letter).CreateAsync();
    await Refused(409, "TableAlreadyExists", () => client.GetTableReference(prefix + "a").CreateAsync());
    Equal(false, await client.GetTableReference(prefix + "a").CreateIfNotExistsAsync());
    async Task<string[]> Names(int? size = null)
    {
        var names = new List<string>();
        TableContinuationToken? token = null;
        do
        {
            var segment = await client.ListTablesSegmentedAsync(prefix, size, token, null, null);
            names.Add(string.Concat(segment.Results.Select(it => it.Name[prefix.Length..])));
            token = segment.ContinuationToken;
        } while (token is not null);
        return [.. names];
    }
    Same(["abc"], await Names());
    Same(["ab", "c"], await Names(2));
    var table = client.GetTableReference(prefix + "b");
    Equal((true, true, false), (await table.ExistsAsync(), await table.DeleteIfExistsAsync(), await table.ExistsAsync()));
    Equal(false, await table.DeleteIfExistsAsync());
    Same(["ac"], await Names());
});

CheckStorage("tells that a table is missing", "Cosmos DB calls it ResourceNotFound", async () =>
{
    var table = client.GetTableReference(NewName());
    await Refused(404, "TableNotFound", () => table.ExecuteAsync(TableOperation.Insert(Person("ada"))));
    await Refused(404, "TableNotFound", () => Rows(table));
    await Refused(404, "TableNotFound", () => table.ExecuteBatchAsync(new TableBatchOperation { TableOperation.Insert(Person("ada")) }));
});

CheckCosmos("tells that a table is missing, as Cosmos DB does", "storage accounts call it TableNotFound", async () =>
{
    var table = client.GetTableReference(NewName());
    await Refused(404, "ResourceNotFound", () => table.ExecuteAsync(TableOperation.Insert(Person("ada"))));
    await Refused(404, "ResourceNotFound", () => Rows(table));
});

Check("serves odd keys", async () =>
{
    var table = await NewTable();
    foreach (var text in OddTexts)
    {
        var (partition, row) = ($"p{text}", $"{text}r");
        await table.ExecuteAsync(TableOperation.Insert(Entity(partition, row, ("Text", text))));
        await table.ExecuteAsync(TableOperation.InsertOrMerge(Entity(partition, row, ("Text", text))));
        await table.ExecuteAsync(TableOperation.Replace(Changing(Entity(partition, row, ("Text", text)))));
        var found = (await Read(table, row, partition))!;
        Equal((partition, row, text), (found.PartitionKey, found.RowKey, found.Properties["Text"].StringValue));
        foreach (var (name, value) in new[] { ("PartitionKey", partition), ("RowKey", row), ("Text", text) })
            Same([row], await Rows(table, TableQuery.GenerateFilterCondition(name, "eq", value)), text);
        await table.ExecuteBatchAsync(new TableBatchOperation { TableOperation.Merge(Changing(Entity(partition, row, ("More", 1)))) });
        await table.ExecuteAsync(TableOperation.Delete(Changing(Entity(partition, row))));
    }
    Same([], await Rows(table));
});

CheckStorage("serves empty keys", "Cosmos DB refuses them", async () =>
{
    var table = await NewTable();
    foreach (var (partition, row) in new[] { ("", ""), ("", "r"), ("p", "") })
    {
        await table.ExecuteAsync(TableOperation.Insert(Entity(partition, row, ("It", 1))));
        await table.ExecuteAsync(TableOperation.Merge(Changing(Entity(partition, row, ("More", 2)))));
        var found = (await Read(table, row, partition))!;
        Equal((partition, row, 1, 2), (found.PartitionKey, found.RowKey, found.Properties["It"].Int32Value!.Value, found.Properties["More"].Int32Value!.Value));
        await table.ExecuteAsync(TableOperation.Delete(Changing(found)));
    }
    Same([], await Rows(table));
});

CheckCosmos("refuses empty keys", "storage accounts take them", async () =>
{
    var table = await NewTable();
    await Refused(400, "PropertiesNeedValue", () => table.ExecuteAsync(TableOperation.Insert(Entity("", "r"))));
    await Refused(400, "PropertiesNeedValue", () => table.ExecuteAsync(TableOperation.Insert(Entity("p", ""))));
});

Check("refuses keys with forbidden characters", async () =>
{
    var table = await NewTable();
    foreach (var character in new[] { "/", "\\", "#", "?", "\t", "\u0085" })
        await Refused(400, IsCosmos ? "InvalidInput" : "OutOfRangeInput", () => table.ExecuteAsync(TableOperation.Insert(Person($"a{character}"))));
});

CheckStorage("refuses what is too large, by its code", "Cosmos accounts have other limits and codes", async () =>
{
    var table = await NewTable();
    Task Insert(string row, params (string, object?)[] values) => table.ExecuteAsync(TableOperation.Insert(Person(row, values)));
    await Refused(400, "PropertyValueTooLarge", () => Insert("ada", ("Text", new string('x', 32769))));
    await Refused(400, "PropertyValueTooLarge", () => Insert("ada", ("Photo", new byte[65537])));
    await Refused(400, "TooManyProperties", () => Insert("ada", [.. Enumerable.Range(0, 253).Select(it => ($"P{it}", (object?)it))]));
    await Refused(400, "EntityTooLarge", () => Insert("ada", [.. Enumerable.Range(0, 17).Select(it => ($"P{it}", (object?)new byte[65536]))]));
    await Refused(400, "KeyValueTooLarge", () => Insert(new string('x', 1025)));
    await Refused(400, "EntityTooLarge", () => Insert("ada", ("Photo", new byte[1 << 20])));
    await Refused(400, "PropertyNameTooLong", () => Insert("ada", (new string('x', 256), 1)));
    await Refused(400, "PropertyNameInvalid", () => Insert("ada", ("a b", 1)));
    Same([], await Rows(table));
});

Check("refuses a filter that cannot be read", async () =>
{
    var table = await NewTable();
    await Refused(400, "InvalidInput", () => Rows(table, "aaa bbb ccc"));
});

Check("refuses another key", async () =>
{
    var stranger = Open(new StorageCredentials(Account, Convert.ToBase64String(new byte[64])));
    await (IsCosmos ? Refused(401, "Unauthorized", Request) : Refused(403, "AuthenticationFailed", Request));
    Task Request() => stranger.GetTableReference(NewName()).CreateAsync();
});

CloudTable ByToken(CloudTable table, string token) => Open(new StorageCredentials(token)).GetTableReference(table.Name);

static SharedAccessTablePolicy Policy(SharedAccessTablePermissions permissions) =>
    new() { Permissions = permissions, SharedAccessExpiryTime = InAnHour };

async Task<CloudTable> SomePeople()
{
    var table = await NewTable();
    foreach (var partition in "abc")
    {
        var batch = new TableBatchOperation();
        foreach (var row in "123") batch.Insert(Entity($"{partition}", $"{row}"));
        await table.ExecuteBatchAsync(batch);
    }
    return table;
}

static async Task<string> Keys(CloudTable table) => string.Join(" ", (await All(table)).Select(it => it.PartitionKey + it.RowKey));

const SharedAccessTablePermissions Everything =
    SharedAccessTablePermissions.Query | SharedAccessTablePermissions.Add | SharedAccessTablePermissions.Update | SharedAccessTablePermissions.Delete;

Check("allows what a SAS of a table says", async () =>
{
    var table = await SomePeople();
    foreach (var permissions in new[]
    {
        SharedAccessTablePermissions.Query, SharedAccessTablePermissions.Add, SharedAccessTablePermissions.Update, SharedAccessTablePermissions.Delete,
        SharedAccessTablePermissions.Add | SharedAccessTablePermissions.Update, Everything,
    })
    {
        var limited = ByToken(table, table.GetSharedAccessSignature(Policy(permissions)));
        async Task Try(SharedAccessTablePermissions needed, Func<Task> request) =>
            await (permissions.HasFlag(needed) ? request() : Refused(403, IsCosmos ? "Forbidden" : "AuthorizationPermissionMismatch", request));
        await Try(SharedAccessTablePermissions.Query, () => Read(limited, "1", "a"));
        await Try(SharedAccessTablePermissions.Query, () => All(limited));
        await Try(SharedAccessTablePermissions.Add, () => limited.ExecuteAsync(TableOperation.Insert(Entity("a", $"{permissions}"))));
        await Try(SharedAccessTablePermissions.Update, () => limited.ExecuteAsync(TableOperation.Merge(Changing(Entity("a", "1")))));
        await Try(SharedAccessTablePermissions.Add | SharedAccessTablePermissions.Update, () => limited.ExecuteAsync(TableOperation.InsertOrMerge(Entity("a", "new"))));
        await table.ExecuteAsync(TableOperation.InsertOrMerge(Entity("a", "old")));
        await Try(SharedAccessTablePermissions.Delete, () => limited.ExecuteAsync(TableOperation.Delete(Changing(Entity("a", "old")))));
    }
});

CheckStorage("keeps a SAS of a table within its key range", "Cosmos DB refuses ranges", async () =>
{
    var table = await SomePeople();
    async Task Reads(string expected, string? startPartition, string? startRow, string? endPartition, string? endRow)
    {
        var limited = ByToken(table, table.GetSharedAccessSignature(Policy(Everything), null, startPartition, startRow, endPartition, endRow));
        Equal(expected, await Keys(limited));
        Equal(null, await Read(limited, "9", "z"));  // there is nothing that it may see
        await Refused(403, "AuthorizationFailure", () => limited.ExecuteAsync(TableOperation.InsertOrMerge(Entity("z", "9"))));
    }
    await Reads("b1 b2 b3", "b", null, "b", null);
    await Reads("a2 a3 b1 b2", "a", "2", "b", "2");
    await Reads("c3", "c", "3", "c", "3");
    await Reads("a1 a2 a3 b1 b2 b3 c1 c2 c3", null, null, "c", null);
});

Check("refuses a SAS that has expired", async () =>
{
    var table = await SomePeople();
    var policy = new SharedAccessTablePolicy { Permissions = Everything, SharedAccessExpiryTime = DateTimeOffset.UtcNow.AddHours(-1) };
    var limited = ByToken(table, table.GetSharedAccessSignature(policy));
    await (IsCosmos ? Refused(401, "Unauthorized", () => All(limited)) : Refused(403, "AuthenticationFailed", () => All(limited)));
});

Check("allows what a SAS of the account says", async () =>
{
    var table = await SomePeople();
    string Token(SharedAccessAccountPermissions permissions, SharedAccessAccountResourceTypes types) =>
#if COSMOS_TABLE
        new CloudStorageAccount(client.Credentials, client.StorageUri)
#else
        new CloudStorageAccount(client.Credentials, null, null, client.StorageUri, null)
#endif
        .GetSharedAccessSignature(new SharedAccessAccountPolicy
        {
            Permissions = permissions, ResourceTypes = types, Services = SharedAccessAccountServices.Table, SharedAccessExpiryTime = InAnHour,
        });
    var all = Open(new StorageCredentials(Token(
        SharedAccessAccountPermissions.Read | SharedAccessAccountPermissions.Add | SharedAccessAccountPermissions.Create | SharedAccessAccountPermissions.Update |
        SharedAccessAccountPermissions.Delete | SharedAccessAccountPermissions.Write | SharedAccessAccountPermissions.List,
        SharedAccessAccountResourceTypes.Service | SharedAccessAccountResourceTypes.Container | SharedAccessAccountResourceTypes.Object)));
    var other = all.GetTableReference(NewName());
    await other.CreateAsync();
    await other.ExecuteAsync(TableOperation.Insert(Person("ada")));
    await other.DeleteAsync();
    var reading = Open(new StorageCredentials(Token(SharedAccessAccountPermissions.Read, SharedAccessAccountResourceTypes.Object)));
    var limited = reading.GetTableReference(table.Name);
    Equal("a1 a2 a3 b1 b2 b3 c1 c2 c3", await Keys(limited));
    await Refused(403, IsCosmos ? "Forbidden" : "AuthorizationPermissionMismatch", () => limited.ExecuteAsync(TableOperation.Insert(Person("ada"))));
    await Refused(403, IsCosmos ? "Forbidden" : "AuthorizationResourceTypeMismatch", () => reading.GetTableReference(NewName()).CreateAsync());
});

CheckStorage("stores access policies, which a SAS names", "Cosmos DB has none", async () =>
{
    var table = await SomePeople();
    var start = new DateTimeOffset(2026, 1, 1, 0, 0, 0, TimeSpan.Zero);
    var permissions = new TablePermissions();
    permissions.SharedAccessPolicies.Add("readers", new SharedAccessTablePolicy { SharedAccessStartTime = start, SharedAccessExpiryTime = InAnHour, Permissions = SharedAccessTablePermissions.Query });
    permissions.SharedAccessPolicies.Add("empty", new SharedAccessTablePolicy());
    await table.SetPermissionsAsync(permissions);
    var found = (await table.GetPermissionsAsync()).SharedAccessPolicies;
    Same(["empty", "readers"], found.Keys.Order());
    Equal((start, SharedAccessTablePermissions.Query), (found["readers"].SharedAccessStartTime!.Value, found["readers"].Permissions));
    Equal((null, SharedAccessTablePermissions.None), (found["empty"].SharedAccessExpiryTime, found["empty"].Permissions));
    var limited = ByToken(table, table.GetSharedAccessSignature(null, "readers"));
    Equal("a1 a2 a3 b1 b2 b3 c1 c2 c3", await Keys(limited));
    await Refused(403, "AuthorizationPermissionMismatch", () => limited.ExecuteAsync(TableOperation.Insert(Person("ada"))));
    await table.SetPermissionsAsync(new TablePermissions());
    await Refused(403, "AuthenticationFailed", () => All(limited));
});

CheckStorage("sets and returns service properties", "Cosmos DB has none", async () =>
{
    var before = await client.GetServicePropertiesAsync();
    var sent = new ServiceProperties(
        new LoggingProperties { LoggingOperations = LoggingOperations.Write | LoggingOperations.Delete, RetentionDays = 7, Version = "1.0" },
        new MetricsProperties { MetricsLevel = MetricsLevel.ServiceAndApi, RetentionDays = 7, Version = "1.0" },
        new MetricsProperties { MetricsLevel = MetricsLevel.None, Version = "1.0" },
        new CorsProperties());
    sent.Cors.CorsRules.Add(new CorsRule
    {
        AllowedOrigins = ["http://one.example", "http://two.example"], AllowedMethods = CorsHttpMethods.Get | CorsHttpMethods.Put | CorsHttpMethods.Trace | CorsHttpMethods.Connect,
        AllowedHeaders = ["x-ms-*"], ExposedHeaders = ["x-ms-*"], MaxAgeInSeconds = 60,
    });
    try
    {
        await client.SetServicePropertiesAsync(sent);
        var found = await client.GetServicePropertiesAsync();
        Equal((sent.Logging.LoggingOperations, 7), (found.Logging.LoggingOperations, found.Logging.RetentionDays!.Value));
        Equal((MetricsLevel.ServiceAndApi, 7), (found.HourMetrics.MetricsLevel, found.HourMetrics.RetentionDays!.Value));
        Equal((MetricsLevel.None, null), (found.MinuteMetrics.MetricsLevel, found.MinuteMetrics.RetentionDays));
        var rule = found.Cors.CorsRules.Single();
        Same(["http://one.example", "http://two.example"], rule.AllowedOrigins);
        Equal((CorsHttpMethods.Get | CorsHttpMethods.Put | CorsHttpMethods.Trace | CorsHttpMethods.Connect, 60), (rule.AllowedMethods, rule.MaxAgeInSeconds));
    }
    finally { await client.SetServicePropertiesAsync(before); }
});

CheckStorage("returns statistics of the secondary", "Cosmos DB has none", async () =>
{
    var found = await client.GetServiceStatsAsync(new TableRequestOptions { LocationMode = LocationMode.SecondaryOnly }, null);
    Equal(GeoReplicationStatus.Live, found.GeoReplication.Status);
    True(found.GeoReplication.LastSyncTime > DateTimeOffset.UtcNow.AddHours(-1), "synced lately");
});

CheckStorage("reads from the secondary", "the client knows none of an account in a path behind the name localhost", async () =>
{
    var table = await SomePeople();
    var options = new TableRequestOptions { LocationMode = LocationMode.SecondaryOnly };
    Equal(9, (await All(table, null, options)).Count);
#if !COSMOS_TABLE  // which sends every batch to the primary
    var batch = new TableBatchOperation { TableOperation.Retrieve<DynamicTableEntity>("b", "2") };
    Equal("2", ((DynamicTableEntity)(await table.ExecuteBatchAsync(batch, options, null)).Single().Result).RowKey);
#endif
});

Check("opens the account by a connection string", async () =>
{
    var table = await SomePeople();
    var account = CloudStorageAccount.Parse($"DefaultEndpointsProtocol=http;AccountName={Account};AccountKey={Key};TableEndpoint={Endpoint};");
#if COSMOS_TABLE
    var other = account.CreateCloudTableClient(new TableClientConfiguration { UseRestExecutorForCosmosEndpoint = true });
#else
    var other = account.CreateCloudTableClient();
#endif
    Equal("a1 a2 a3 b1 b2 b3 c1 c2 c3", await Keys(other.GetTableReference(table.Name)));
});

await Run();

class Customer : TableEntity
{
    public int Age { get; set; }
    public long Visits { get; set; }
    public double Balance { get; set; }
    public string? Title { get; set; }
    public DateTimeOffset? Since { get; set; }
    public byte[]? Photo { get; set; }
}
