// Azure.Data.Tables, the client that is maintained.
using System.Globalization;
using System.Text;
using System.Text.RegularExpressions;
using Azure;
using Azure.Data.Tables;
using Azure.Data.Tables.Models;
using Azure.Data.Tables.Sas;
using static Cases;

var options = new TableClientOptions { Retry = { MaxRetries = 0 } };  // a retry would hide a failure of the server
var credential = new TableSharedKeyCredential(Account, Key);
var service = new TableServiceClient(new Uri(Endpoint), credential, options);

async Task<TableClient> NewTable()
{
    var table = service.GetTableClient(NewName());
    await table.CreateAsync();
    return table;
}

static TableEntity Person(string row, params (string Name, object? Value)[] values)
{
    var entity = new TableEntity("se", row);
    foreach (var (name, value) in values) entity[name] = value;
    return entity;
}

// what an entity holds but for what the server adds
static Dictionary<string, object?> Content(TableEntity entity) =>
    entity.Where(pair => pair.Key is not ("odata.etag" or "odata.metadata" or "Timestamp" or "PartitionKey" or "RowKey"))
        .ToDictionary(pair => pair.Key, pair => (object?)pair.Value);

static async Task<Dictionary<string, object?>> Stored(TableClient table, string row = "ada") =>
    Content(await table.GetEntityAsync<TableEntity>("se", row));

static async Task<string[]> Rows(TableClient table, string? filter = null)
{
    var rows = new List<string>();
    await foreach (var entity in table.QueryAsync<TableEntity>(filter)) rows.Add(entity.RowKey);
    return [.. rows];
}

static async Task Refused(int status, string code, Func<Task> request)
{
    try { await request(); }
    catch (RequestFailedException error)
    {
        Equal((status, code), (error.Status, error.ErrorCode!));
        return;
    }
    throw new Exception($"not refused with {status} {code}");
}

// inserted, merged, replaced, read one by one and in a page
async Task Return(params object?[] values)
{
    var table = await NewTable();
    var properties = values.Select((value, place) => ($"P{place}", value)).ToArray();
    await table.AddEntityAsync(Person("added", properties));
    await table.UpsertEntityAsync(Person("merged", properties), TableUpdateMode.Merge);
    await table.UpsertEntityAsync(Person("replaced", properties), TableUpdateMode.Replace);
    await table.SubmitTransactionAsync([new(TableTransactionActionType.Add, Person("together", properties))]);
    await CheckAll(table, 4, properties);
}

async Task CheckAll(TableClient table, int count, (string Name, object? Value)[] properties)
{
    var rows = await Rows(table);
    Equal(count, rows.Length);
    foreach (var row in rows) Check(await Stored(table, row));
    await foreach (var entity in table.QueryAsync<TableEntity>()) Check(Content(entity));

    void Check(Dictionary<string, object?> found)
    {
        Equal(properties.Length, found.Count);
        foreach (var (name, value) in properties) Returned(value, found[name], name);
    }
}

Check("is of its version", async () => Equal(ClientVersion, VersionOf(typeof(TableClient)).Split('+')[0]));

Check("returns booleans", () => Return(true, false));

Check("returns int32", () => Return(0, 1, -1, int.MaxValue, int.MinValue));

Check("returns int64", () => Return(0L, 1L, -1L, 1L + int.MaxValue, (1L << 53) + 1, long.MaxValue, long.MinValue));

Check("returns doubles", () =>
    Return(0.5, -2.5, 0.1, 1.0 / 3, 1e-7, 1e21, 1.0, -1.0, 123456789012345680.0, double.Epsilon, double.MaxValue, double.MinValue));

Check("reads doubles that it cannot send", async () =>
{
    var table = await NewTable();
    var token = table.GetSasBuilder(TableSasPermissions.Add, InAnHour).Sign(credential);
    using var client = new HttpClient();
    client.DefaultRequestHeaders.Add("Accept", "application/json");
    client.DefaultRequestHeaders.Add("x-ms-version", "2019-02-02");
    var body = """
        {"PartitionKey": "se", "RowKey": "ada", "P0@odata.type": "Edm.Double", "P0": "NaN", "P1@odata.type": "Edm.Double", "P1": "Infinity",
        "P2@odata.type": "Edm.Double", "P2": "-Infinity", "P3@odata.type": "Edm.Double", "P3": "-0.0"}
        """;
    using var content = new StringContent(body, Encoding.UTF8, "application/json");
    using var answer = await client.PostAsync($"{Endpoint}/{table.Name}?{token}", content);
    Equal(201, (int)answer.StatusCode);
    await CheckAll(table, 1, [("P0", double.NaN), ("P1", double.PositiveInfinity), ("P2", double.NegativeInfinity), ("P3", -0.0)]);
});

Check("returns strings", () => Return("", " ", "\0\u0001\t\r\n", "\"\\/'<>&", "é你🦊\u202e\u2028\ufeff\uffff", "2026-11-28T00:00:00Z", "NaN", "true", "1"));

Check("returns the longest string", () => Return(new string('x', 32768), string.Concat(Enumerable.Repeat("🦊", 16384))));

Check("returns binary", () => Return(Array.Empty<byte>(), new byte[] { 0, 255 }, Enumerable.Range(0, 256).Select(it => (byte)it).ToArray(), new byte[65536]));

Check("returns guids", () => Return(Guid.Empty, Guid.Parse("CF8EF051-1B7D-4E93-A1E5-A3944D7E441C"), Guid.NewGuid()));

Check("returns datetimes to 100 nanoseconds", () =>
    Return(
        new DateTimeOffset(1601, 1, 1, 0, 0, 0, TimeSpan.Zero), new DateTimeOffset(1601, 1, 1, 0, 0, 0, TimeSpan.Zero).AddTicks(1),
        new DateTimeOffset(1969, 12, 31, 23, 59, 59, TimeSpan.Zero).AddTicks(9999999), new DateTimeOffset(2026, 11, 28, 12, 0, 0, 100, TimeSpan.Zero),
        DateTimeOffset.MaxValue));

CheckCosmos("returns a datetime that was never set", "storage accounts refuse it", () => Return(default(DateTimeOffset)));

CheckStorage("refuses a datetime that was never set", "Cosmos accounts store it", async () =>
{
    var table = await NewTable();
    await Refused(400, "OutOfRangeInput", () => table.AddEntityAsync(Person("ada", ("Since", default(DateTimeOffset)))));
    Same([], await Rows(table));
});

Check("converts the zone of a datetime", async () =>
{
    var table = await NewTable();
    var noon = new DateTimeOffset(2026, 11, 28, 12, 0, 0, TimeSpan.FromHours(5.75));
    await table.AddEntityAsync(Person("ada", ("Moment", noon)));
    Equal(noon.UtcDateTime, ((DateTimeOffset)(await Stored(table))["Moment"]!).UtcDateTime);
});

Check("leaves out nulls", async () =>
{
    var table = await NewTable();
    await table.AddEntityAsync(Person("ada", ("Nothing", null), ("Text", "x")));
    Same(["Text"], (await Stored(table)).Keys);
});

Check("fills the properties of a class", async () =>
{
    var table = await NewTable();
    var sent = new Customer { PartitionKey = "se", RowKey = "ada", Age = 36, Visits = 1L << 40, Balance = 2, Since = InAnHour, Kind = Kind.Gold, Photo = [1, 2] };
    await table.AddEntityAsync(sent);
    Customer found = await table.GetEntityAsync<Customer>("se", "ada");
    Equal((36, 1L << 40, 2.0, InAnHour, Kind.Gold, null), (found.Age, found.Visits, found.Balance, found.Since!.Value, found.Kind, found.Title));
    Same(sent.Photo, found.Photo!);
    True(found.Timestamp > DateTimeOffset.UtcNow.AddMinutes(-5), "the Timestamp is of now");
});

Check("inserts an entity and tells its ETag", async () =>
{
    var table = await NewTable();
    var answer = await table.AddEntityAsync(Person("ada", ("Age", 36)));
    TableEntity found = await table.GetEntityAsync<TableEntity>("se", "ada");
    Equal(204, answer.Status);
    Equal(answer.Headers.ETag!.Value, found.ETag);
    True(Regex.IsMatch(found.ETag.ToString(), """^W/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d+)?Z'"$"""), found.ETag.ToString());
    True(found.ETag.ToString().Contains(Uri.EscapeDataString(found.Timestamp!.Value.UtcDateTime.ToString("s", CultureInfo.InvariantCulture))), "the ETag is of the Timestamp");
});

Check("refuses to insert an entity twice", async () =>
{
    var table = await NewTable();
    await table.AddEntityAsync(Person("ada", ("Age", 36)));
    await Refused(409, "EntityAlreadyExists", () => table.AddEntityAsync(Person("ada")));
    Equal(36, (await Stored(table))["Age"]);
});

Check("does not find a missing entity", async () =>
{
    var table = await NewTable();
    await Refused(404, "ResourceNotFound", () => table.GetEntityAsync<TableEntity>("se", "ada"));
    Equal(false, (await table.GetEntityIfExistsAsync<TableEntity>("se", "ada")).HasValue);
});

Check("merges and replaces by ETag", async () =>
{
    var table = await NewTable();
    var etag = (await table.AddEntityAsync(Person("ada", ("Age", 36), ("City", "London")))).Headers.ETag!.Value;
    etag = (await table.UpdateEntityAsync(Person("ada", ("Age", 37)), etag, TableUpdateMode.Merge)).Headers.ETag!.Value;
    Equal(etag, (await table.GetEntityAsync<TableEntity>("se", "ada")).Value.ETag);
    Equal((37, "London"), ((int)(await Stored(table))["Age"]!, (string)(await Stored(table))["City"]!));
    etag = (await table.UpdateEntityAsync(Person("ada", ("Title", "Countess")), etag, TableUpdateMode.Replace)).Headers.ETag!.Value;
    Equal(etag, (await table.GetEntityAsync<TableEntity>("se", "ada")).Value.ETag);
    Same(["Title"], (await Stored(table)).Keys);
    Equal(204, (await table.DeleteEntityAsync("se", "ada", etag)).Status);
    Same([], await Rows(table));
});

Check("refuses to change what was changed", async () =>
{
    var table = await NewTable();
    var old = (await table.AddEntityAsync(Person("ada", ("Age", 36)))).Headers.ETag!.Value;
    await table.UpsertEntityAsync(Person("ada", ("Age", 37)));
    foreach (var mode in new[] { TableUpdateMode.Merge, TableUpdateMode.Replace })
        await Refused(412, "UpdateConditionNotSatisfied", () => table.UpdateEntityAsync(Person("ada"), old, mode));
    await Refused(412, "UpdateConditionNotSatisfied", () => table.DeleteEntityAsync("se", "ada", old));
    Equal(37, (await Stored(table))["Age"]);
});

Check("changes whatever is there", async () =>
{
    var table = await NewTable();
    await table.AddEntityAsync(Person("ada", ("Age", 36)));
    await table.UpdateEntityAsync(Person("ada", ("City", "London")), ETag.All, TableUpdateMode.Merge);
    Same(["Age", "City"], (await Stored(table)).Keys.Order());
    await table.UpdateEntityAsync(Person("ada", ("Title", "Countess")), ETag.All, TableUpdateMode.Replace);
    Same(["Title"], (await Stored(table)).Keys);
    Equal(204, (await table.DeleteEntityAsync("se", "ada")).Status);
    Equal(404, (await table.DeleteEntityAsync("se", "ada")).Status);
});

Check("refuses to update a missing entity", async () =>
{
    var table = await NewTable();
    foreach (var mode in new[] { TableUpdateMode.Merge, TableUpdateMode.Replace })
        await Refused(404, "ResourceNotFound", () => table.UpdateEntityAsync(Person("ada"), ETag.All, mode));
});

Check("upserts by merging and by replacing", async () =>
{
    var table = await NewTable();
    foreach (var (mode, left) in new[] { (TableUpdateMode.Merge, new[] { "Age", "City" }), (TableUpdateMode.Replace, ["City"]) })
    {
        var inserted = await table.UpsertEntityAsync(Person($"{mode}", ("Age", 36)), mode);
        var changed = await table.UpsertEntityAsync(Person($"{mode}", ("City", "London")), mode);
        True(inserted.Headers.ETag != changed.Headers.ETag, "the ETag changes");
        Same(left, (await Stored(table, $"{mode}")).Keys.Order());
    }
});

Check("writes a transaction of all operations", async () =>
{
    var table = await NewTable();
    foreach (var row in new[] { "merged", "replaced", "deleted", "upserted" }) await table.AddEntityAsync(Person(row, ("Age", 1)));
    var etag = (await table.GetEntityAsync<TableEntity>("se", "replaced")).Value.ETag;
    var answers = (await table.SubmitTransactionAsync(
    [
        new(TableTransactionActionType.Add, Person("added", ("Age", 2))),
        new(TableTransactionActionType.UpdateMerge, Person("merged", ("City", "London"))),
        new(TableTransactionActionType.UpdateReplace, Person("replaced", ("City", "London")), etag),
        new(TableTransactionActionType.Delete, Person("deleted")),
        new(TableTransactionActionType.UpsertMerge, Person("upserted", ("City", "London"))),
        new(TableTransactionActionType.UpsertReplace, Person("new", ("City", "London"))),
    ])).Value;
    Same([204, 204, 204, 204, 204, 204], answers.Select(it => it.Status));
    Same(["added", "merged", "new", "replaced", "upserted"], await Rows(table));
    Same(["Age", "City"], (await Stored(table, "merged")).Keys.Order());
    Same(["City"], (await Stored(table, "replaced")).Keys);
    Equal((await table.GetEntityAsync<TableEntity>("se", "added")).Value.ETag, answers[0].Headers.ETag!.Value);
});

Check("writes nothing of a transaction that fails, and tells where", async () =>
{
    var table = await NewTable();
    await table.AddEntityAsync(Person("ada", ("Age", 36)));
    var old = (await table.GetEntityAsync<TableEntity>("se", "ada")).Value.ETag;
    await table.UpsertEntityAsync(Person("ada", ("Age", 37)));
    foreach (var (action, status, code) in new[]
    {
        (new TableTransactionAction(TableTransactionActionType.Add, Person("ada")), 409, "EntityAlreadyExists"),
        (new TableTransactionAction(TableTransactionActionType.UpdateMerge, Person("ada"), old), 412, "UpdateConditionNotSatisfied"),
        (new TableTransactionAction(TableTransactionActionType.UpdateReplace, Person("bob"), ETag.All), 404, "ResourceNotFound"),
        (new TableTransactionAction(TableTransactionActionType.Delete, Person("bob"), ETag.All), 404, "ResourceNotFound"),
    })
    {
        try
        {
            await table.SubmitTransactionAsync([new(TableTransactionActionType.Add, Person("eva")), action]);
            throw new Exception($"not refused with {code}");
        }
        catch (TableTransactionFailedException error)
        {
            Equal((status, code, 1), (error.Status, error.ErrorCode!, error.FailedTransactionActionIndex!.Value));
        }
    }
    Same(["ada"], await Rows(table));
});

Check("writes a transaction of 100, and none of 101", async () =>
{
    var table = await NewTable();
    TableTransactionAction[] Actions(int count) =>
        [.. Enumerable.Range(0, count).Select(it => new TableTransactionAction(TableTransactionActionType.UpsertReplace, Person($"{it:000}", ("It", it))))];
    Equal(100, (await table.SubmitTransactionAsync(Actions(100))).Value.Count);
    await Refused(400, "InvalidInput", () => table.SubmitTransactionAsync(Actions(101)));
    Equal(100, (await Rows(table)).Length);
});

Check("refuses a transaction with an entity twice", async () =>
{
    var table = await NewTable();
    var action = new TableTransactionAction(TableTransactionActionType.UpsertMerge, Person("ada"));
    await Refused(400, "InvalidDuplicateRow", () => table.SubmitTransactionAsync([action, action]));
});

Check("refuses a transaction over two partitions", async () =>
{
    var table = await NewTable();
    TableTransactionAction[] actions = [new(TableTransactionActionType.Add, Person("ada")), new(TableTransactionActionType.Add, new TableEntity("uk", "ada"))];
    await Refused(400, "CommandsInBatchActOnDifferentPartitions", () => table.SubmitTransactionAsync(actions));
});

Check("filters by every type", async () =>
{
    var table = await NewTable();
    var guid = Guid.NewGuid();
    var moment = new DateTimeOffset(2026, 11, 28, 1, 2, 3, TimeSpan.Zero).AddTicks(1234567);
    byte[] photo = [0, 255];
    await table.AddEntityAsync(Person("ada", ("Text", "O'Brien"), ("Yes", true), ("Small", -7), ("Big", long.MaxValue), ("Half", 0.5), ("Since", moment), ("Id", guid), ("Photo", photo)));
    await table.AddEntityAsync(Person("bob", ("Text", "Z"), ("Yes", false), ("Small", 7), ("Big", 1L), ("Half", 1.5), ("Since", moment.AddTicks(1)), ("Id", Guid.Empty), ("Photo", Array.Empty<byte>())));
    foreach (FormattableString filter in new FormattableString[]
    {
        $"PartitionKey eq {"se"} and RowKey lt {"b"}", $"Text eq {"O'Brien"}", $"Yes eq {true}", $"Small le {-7}", $"Big eq {long.MaxValue}", $"Half lt {1.0}",
        $"Since lt {moment.AddTicks(1)}", $"Id eq {guid}", $"Photo eq {photo}", $"not (Small gt {0}) and (Yes eq {true} or Half eq {9.5})", $"Text ne {"Z"}",
    })
        Same(["ada"], await Rows(table, TableClient.CreateQueryFilter(filter)), filter.ToString());
});

Check("filters by an expression", async () =>
{
    var table = await NewTable();
    await table.AddEntityAsync(new Customer { PartitionKey = "se", RowKey = "ada", Age = 36, Visits = 5, Since = InAnHour });
    await table.AddEntityAsync(new Customer { PartitionKey = "se", RowKey = "bob", Age = 7, Visits = 1L << 40, Since = InAnHour });
    async Task<string[]> Rows(System.Linq.Expressions.Expression<Func<Customer, bool>> filter)
    {
        var rows = new List<string>();
        await foreach (var found in table.QueryAsync(filter)) rows.Add(found.RowKey);
        return [.. rows];
    }
    Same(["ada"], await Rows(it => it.Age > 18 && it.PartitionKey == "se"));
    Same(["bob"], await Rows(it => it.Visits >= 1L << 40 || it.RowKey == "eva"));
    Same(["ada", "bob"], await Rows(it => it.Since >= InAnHour && !(it.Age == 8)));
    Same(["bob"], await Rows(it => it.RowKey.CompareTo("b") >= 0));
});

CheckStorage("filters by Timestamp", "Cosmos DB finds nothing by Timestamp", async () =>
{
    var table = await NewTable();
    await table.AddEntityAsync(Person("ada"));
    Same(["ada"], await Rows(table, TableClient.CreateQueryFilter($"Timestamp gt {DateTimeOffset.UtcNow.AddHours(-1)}")));
    Same([], await Rows(table, TableClient.CreateQueryFilter($"Timestamp lt {DateTimeOffset.UtcNow.AddHours(-1)}")));
});

Check("selects properties", async () =>
{
    var table = await NewTable();
    await table.AddEntityAsync(Person("ada", ("Age", 36), ("City", "London"), ("Big", 5L)));
    TableEntity found = await table.GetEntityAsync<TableEntity>("se", "ada", ["Big", "RowKey"]);
    Equal((5L, "ada", null, false), (found.GetInt64("Big"), found.RowKey, found.PartitionKey, found.ContainsKey("Age")));
    await foreach (var entity in table.QueryAsync<TableEntity>("Age eq 36", select: ["City"])) Same(["City"], Content(entity).Keys);
});

Check("follows pages to the end", async () =>
{
    var table = await NewTable();
    string[] partitions = ["", "a", "it's", "é 🦊", "%2F"];
    var sent = (IsCosmos ? partitions[1..] : partitions).SelectMany(partition => Enumerable.Range(0, 5), (partition, row) => (partition, $"'{row} %"));
    foreach (var (partition, row) in sent) await table.AddEntityAsync(new TableEntity(partition, row));
    foreach (var size in new[] { 1, 3, 5, 1000 })
    {
        var found = new List<(string, string)>();
        await foreach (var page in table.QueryAsync<TableEntity>(maxPerPage: size).AsPages())
        {
            True(page.Values.Count <= size, $"a page has at most {size}");
            found.AddRange(page.Values.Select(it => (it.PartitionKey, it.RowKey)));
        }
        Same(sent.OrderBy(it => it.Item1, StringComparer.Ordinal), found);
    }
});

Check("continues from a token", async () =>
{
    var table = await NewTable();
    foreach (var row in "abcde") await table.AddEntityAsync(Person($"{row}", ("Age", 1)));
    string? token = null;
    var pages = new List<string>();
    do
    {
        // each by a client of its own, as an application does between two requests of a user
        var other = new TableServiceClient(new Uri(Endpoint), credential, options).GetTableClient(table.Name);
        await foreach (var page in other.QueryAsync<TableEntity>("Age eq 1", maxPerPage: 2).AsPages(token))
        {
            pages.Add(string.Concat(page.Values.Select(it => it.RowKey)));
            token = page.ContinuationToken;
            break;
        }
    } while (token is not null);
    Same(["ab", "cd", "e"], pages);
});

Check("pages by a thousand", async () =>
{
    var table = await NewTable();
    for (var start = 0; start < 1100; start += 100)
        await table.SubmitTransactionAsync(Enumerable.Range(start, 100).Select(it => new TableTransactionAction(TableTransactionActionType.Add, Person($"{it:0000}"))));
    var pages = new List<int>();
    await foreach (var page in table.QueryAsync<TableEntity>().AsPages()) pages.Add(page.Values.Count);
    Same([1000, 100], pages);
});

Check("creates, lists and deletes tables", async () =>
{
    var prefix = NewName();
    foreach (var letter in "cab") await service.CreateTableAsync(prefix + letter);
    await Refused(409, "TableAlreadyExists", () => service.CreateTableAsync(prefix + "a"));
    await service.CreateTableIfNotExistsAsync(prefix + "a");
    async Task<string[]> Names(int? size = null)
    {
        var names = new List<string>();
        await foreach (var page in service.QueryAsync(TableServiceClient.CreateQueryFilter($"TableName ge {prefix} and TableName lt {prefix + "z"}"), size).AsPages())
            names.Add(string.Concat(page.Values.Select(it => it.Name[prefix.Length..])));
        return [.. names];
    }
    Same(["abc"], await Names());
    Same(["ab", "c"], await Names(2));
    Equal(204, (await service.DeleteTableAsync(prefix + "b")).Status);
    Equal(404, (await service.DeleteTableAsync(prefix + "b")).Status);
    Same(["ac"], await Names());
});

CheckStorage("tells that a table is missing", "Cosmos DB calls it ResourceNotFound", async () =>
{
    var table = service.GetTableClient(NewName());
    await Refused(404, "TableNotFound", () => table.AddEntityAsync(Person("ada")));
    await Refused(404, "TableNotFound", () => table.GetEntityAsync<TableEntity>("se", "ada"));
    await Refused(404, "TableNotFound", () => Rows(table));
});

CheckCosmos("tells that a table is missing, as Cosmos DB does", "storage accounts call it TableNotFound", async () =>
{
    var table = service.GetTableClient(NewName());
    await Refused(404, "ResourceNotFound", () => table.AddEntityAsync(Person("ada")));
    await Refused(404, "ResourceNotFound", () => Rows(table));
});

CheckStorage("refuses impossible names of tables", "Cosmos accounts take nearly any name", async () =>
{
    foreach (var name in new[] { "1table", "with-dash", "with_underscore" })
        await Refused(400, "InvalidResourceName", () => service.CreateTableAsync(name));
    foreach (var name in new[] { "a", new string('a', 64) })
        await Refused(400, "OutOfRangeInput", () => service.CreateTableAsync(name));
});

Check("serves odd keys", async () =>
{
    var table = await NewTable();
    foreach (var text in OddTexts)
    {
        var (partition, row) = ($"p{text}", $"{text}r");
        var entity = new TableEntity(partition, row) { ["Text"] = text };
        await table.AddEntityAsync(entity);
        await table.UpsertEntityAsync(entity, TableUpdateMode.Merge);
        await table.UpdateEntityAsync(entity, ETag.All, TableUpdateMode.Replace);
        TableEntity found = await table.GetEntityAsync<TableEntity>(partition, row);
        Equal((partition, row, text), (found.PartitionKey, found.RowKey, found.GetString("Text")));
        foreach (FormattableString filter in new FormattableString[] { $"PartitionKey eq {partition}", $"RowKey eq {row}", $"Text eq {text}" })
            Same([row], await Rows(table, TableClient.CreateQueryFilter(filter)), text);
        await table.SubmitTransactionAsync([new(TableTransactionActionType.UpdateMerge, entity)]);
        Equal(204, (await table.DeleteEntityAsync(partition, row)).Status, text);
    }
    Same([], await Rows(table));
});

CheckStorage("serves empty keys", "Cosmos DB refuses them", async () =>
{
    var table = await NewTable();
    foreach (var (partition, row) in new[] { ("", ""), ("", "r"), ("p", "") })
    {
        await table.AddEntityAsync(new TableEntity(partition, row) { ["It"] = 1 });
        await table.UpdateEntityAsync(new TableEntity(partition, row) { ["More"] = 2 }, ETag.All);
        TableEntity found = await table.GetEntityAsync<TableEntity>(partition, row);
        Equal((partition, row, 1, 2), (found.PartitionKey, found.RowKey, found.GetInt32("It")!.Value, found.GetInt32("More")!.Value));
        Equal(204, (await table.DeleteEntityAsync(partition, row)).Status);
    }
});

CheckCosmos("refuses empty keys", "storage accounts take them", async () =>
{
    var table = await NewTable();
    await Refused(400, "PropertiesNeedValue", () => table.AddEntityAsync(new TableEntity("", "r")));
    await Refused(400, "PropertiesNeedValue", () => table.AddEntityAsync(new TableEntity("p", "")));
});

Check("refuses keys with forbidden characters", async () =>
{
    var table = await NewTable();
    foreach (var character in new[] { "/", "\\", "#", "?", "\t", "\u0085" })
        await Refused(400, IsCosmos ? "InvalidInput" : "OutOfRangeInput", () => table.AddEntityAsync(new TableEntity("p", $"a{character}")));
});

CheckStorage("refuses what is too large, by its code", "Cosmos accounts have other limits and codes", async () =>
{
    var table = await NewTable();
    await Refused(400, "PropertyValueTooLarge", () => table.AddEntityAsync(Person("ada", ("Text", new string('x', 32769)))));
    await Refused(400, "PropertyValueTooLarge", () => table.AddEntityAsync(Person("ada", ("Photo", new byte[65537]))));
    await Refused(400, "TooManyProperties", () => table.AddEntityAsync(Person("ada", [.. Enumerable.Range(0, 253).Select(it => ($"P{it}", (object?)it))])));
    await Refused(400, "EntityTooLarge", () => table.AddEntityAsync(Person("ada", [.. Enumerable.Range(0, 17).Select(it => ($"P{it}", (object?)new byte[65536]))])));
    await Refused(400, "EntityTooLarge", () => table.AddEntityAsync(Person("ada", ("Photo", new byte[1 << 20]))));
    await Refused(400, "KeyValueTooLarge", () => table.AddEntityAsync(Person(new string('x', 1025))));
    await Refused(400, "PropertyNameTooLong", () => table.AddEntityAsync(Person("ada", (new string('x', 256), 1))));
    await Refused(400, "PropertyNameInvalid", () => table.AddEntityAsync(Person("ada", ("a b", 1))));
    Same([], await Rows(table));
});

Check("refuses a filter that cannot be read", async () =>
{
    var table = await NewTable();
    await Refused(400, "InvalidInput", () => Rows(table, "aaa bbb ccc"));
});

Check("refuses another key", async () =>
{
    var stranger = new TableServiceClient(new Uri(Endpoint), new TableSharedKeyCredential(Account, Convert.ToBase64String(new byte[64])), options);
    await (IsCosmos ? Refused(401, "Unauthorized", Request) : Refused(403, "AuthenticationFailed", Request));
    Task Request() => stranger.CreateTableAsync(NewName());
});

TableClient ByToken(TableClient table, string token) => new(new Uri($"{Endpoint}/{table.Name}?{token}"), new AzureSasCredential(token), options);

async Task<TableClient> SomePeople()
{
    var table = await NewTable();
    foreach (var partition in "abc")
        await table.SubmitTransactionAsync("123".Select(row => new TableTransactionAction(TableTransactionActionType.Add, new TableEntity($"{partition}", $"{row}"))));
    return table;
}

static async Task<string[]> Keys(TableClient table)
{
    var keys = new List<string>();
    await foreach (var entity in table.QueryAsync<TableEntity>(maxPerPage: 2)) keys.Add(entity.PartitionKey + entity.RowKey);
    return [.. keys];
}

Check("allows what a SAS of a table says", async () =>
{
    var table = await SomePeople();
    foreach (var letters in new[] { "r", "a", "u", "d", "au", "raud" })
    {
        var builder = table.GetSasBuilder(letters, InAnHour);
        var client = ByToken(table, builder.Sign(credential));
        async Task Try(bool isAllowed, Func<Task> request)
        {
            if (isAllowed) await request();
            else await Refused(403, IsCosmos ? "Forbidden" : "AuthorizationPermissionMismatch", request);
        }
        await Try(letters.Contains('r'), () => client.GetEntityAsync<TableEntity>("a", "1"));
        await Try(letters.Contains('r'), () => Keys(client));
        await Try(letters.Contains('a'), () => client.AddEntityAsync(new TableEntity("a", $"{letters}-new")));
        await Try(letters.Contains('u'), () => client.UpdateEntityAsync(new TableEntity("a", "1"), ETag.All));
        await Try(letters.Contains("au"), () => client.UpsertEntityAsync(new TableEntity("a", $"{letters}-upserted")));
        await table.UpsertEntityAsync(new TableEntity("a", "old"));
        await Try(letters.Contains('d'), () => client.DeleteEntityAsync("a", "old"));
    }
});

CheckStorage("keeps a SAS of a table within its key range", "Cosmos DB refuses ranges", async () =>
{
    var table = await SomePeople();
    async Task Reads(string expected, string? startPartition, string? startRow, string? endPartition, string? endRow)
    {
        var builder = table.GetSasBuilder(TableSasPermissions.All, InAnHour);
        (builder.PartitionKeyStart, builder.RowKeyStart, builder.PartitionKeyEnd, builder.RowKeyEnd) = (startPartition, startRow, endPartition, endRow);
        var client = ByToken(table, builder.Sign(credential));
        Equal(expected, string.Join(" ", await Keys(client)));
        await Refused(404, "ResourceNotFound", () => client.GetEntityAsync<TableEntity>("z", "9"));  // there is nothing that it may see
        await Refused(403, "AuthorizationFailure", () => client.UpsertEntityAsync(new TableEntity("z", "9")));
    }
    await Reads("b1 b2 b3", "b", null, "b", null);
    await Reads("a2 a3 b1 b2", "a", "2", "b", "2");
    await Reads("c3", "c", "3", "c", "3");
    await Reads("a1 a2 a3 b1 b2 b3 c1 c2 c3", null, null, "c", null);
});

Check("refuses a SAS that has expired", async () =>
{
    var table = await SomePeople();
    var client = ByToken(table, table.GetSasBuilder(TableSasPermissions.All, DateTimeOffset.UtcNow.AddHours(-1)).Sign(credential));
    await (IsCosmos ? Refused(401, "Unauthorized", () => Keys(client)) : Refused(403, "AuthenticationFailed", () => Keys(client)));
});

Check("allows what a SAS of the account says", async () =>
{
    var table = await SomePeople();
    var all = new TableAccountSasBuilder(TableAccountSasPermissions.All, TableAccountSasResourceTypes.All, InAnHour).Sign(credential);
    var reading = new TableAccountSasBuilder(TableAccountSasPermissions.Read, TableAccountSasResourceTypes.Object, InAnHour).Sign(credential);
    var client = new TableServiceClient(new Uri(Endpoint), new AzureSasCredential(all), options);
    var name = NewName();
    await client.CreateTableAsync(name);
    await client.GetTableClient(name).AddEntityAsync(Person("ada"));
    await client.DeleteTableAsync(name);
    client = new TableServiceClient(new Uri(Endpoint), new AzureSasCredential(reading), options);
    Equal(9, (await Keys(client.GetTableClient(table.Name))).Length);
    await Refused(403, IsCosmos ? "Forbidden" : "AuthorizationPermissionMismatch", () => client.GetTableClient(table.Name).AddEntityAsync(Person("ada")));
    await Refused(403, IsCosmos ? "Forbidden" : "AuthorizationResourceTypeMismatch", () => client.CreateTableAsync(NewName()));
});

CheckStorage("stores access policies, which a SAS names", "Cosmos DB has none", async () =>
{
    var table = await SomePeople();
    var start = new DateTimeOffset(2026, 1, 1, 0, 0, 0, TimeSpan.Zero);
    await table.SetAccessPolicyAsync(
    [
        new TableSignedIdentifier("readers", new TableAccessPolicy(start, InAnHour, "r")),
        new TableSignedIdentifier("empty", new TableAccessPolicy(null, null, null)),
    ]);
    var found = (await table.GetAccessPoliciesAsync()).Value;
    Same(["readers", "empty"], found.Select(it => it.Id));
    Equal((start, "r"), (found[0].AccessPolicy.StartsOn!.Value, found[0].AccessPolicy.Permission));
    True((InAnHour - found[0].AccessPolicy.ExpiresOn!.Value).Duration() < TimeSpan.FromTicks(1), "the expiry comes back");
    var client = ByToken(table, new TableSasBuilder(table.Name, (TableSasPermissions)0, default) { Identifier = "readers" }.Sign(credential));
    Equal(9, (await Keys(client)).Length);
    await Refused(403, "AuthorizationPermissionMismatch", () => client.AddEntityAsync(Person("ada")));
    await table.SetAccessPolicyAsync([]);
    await Refused(403, "AuthenticationFailed", () => Keys(client));
});

CheckStorage("sets and returns service properties", "Cosmos DB has none", async () =>
{
    TableServiceProperties before = await service.GetPropertiesAsync();
    var retention = new TableRetentionPolicy(true) { Days = 7 };
    var sent = new TableServiceProperties
    {
        Logging = new TableAnalyticsLoggingSettings("1.0", true, false, true, retention),
        HourMetrics = new TableMetrics(true) { Version = "1.0", IncludeApis = true, RetentionPolicy = retention },
        MinuteMetrics = new TableMetrics(false) { Version = "1.0", RetentionPolicy = new TableRetentionPolicy(false) },
    };
    sent.Cors.Add(new TableCorsRule("http://one.example,http://two.example", "GET,PUT", "x-ms-*", "x-ms-*", 60));
    try
    {
        Equal(202, (await service.SetPropertiesAsync(sent)).Status);
        TableServiceProperties found = await service.GetPropertiesAsync();
        Equal((true, false, true, 7), (found.Logging.Delete, found.Logging.Read, found.Logging.Write, found.Logging.RetentionPolicy.Days!.Value));
        Equal((true, true, 7), (found.HourMetrics.Enabled, found.HourMetrics.IncludeApis!.Value, found.HourMetrics.RetentionPolicy.Days!.Value));
        Equal(false, found.MinuteMetrics.Enabled);
        var rule = found.Cors.Single();
        Equal(("http://one.example,http://two.example", "GET,PUT", 60), (rule.AllowedOrigins, rule.AllowedMethods, rule.MaxAgeInSeconds));
    }
    finally { await service.SetPropertiesAsync(before); }
});

CheckStorage("returns statistics of the secondary", "Cosmos DB has none", async () =>
{
    TableServiceStatistics found = await service.GetStatisticsAsync();
    Equal(TableGeoReplicationStatus.Live, found.GeoReplication.Status);
    True(found.GeoReplication.LastSyncedOn > DateTimeOffset.UtcNow.AddHours(-1), "synced lately");
});

Check("opens the account by a connection string", async () =>
{
    var table = await SomePeople();
    var text = $"DefaultEndpointsProtocol=http;AccountName={Account};AccountKey={Key};TableEndpoint={Endpoint};";
    Equal(9, (await Keys(new TableServiceClient(text, options).GetTableClient(table.Name))).Length);
    var token = table.GetSasBuilder(TableSasPermissions.Read, InAnHour).Sign(credential);
    Equal(9, (await Keys(new TableClient($"TableEndpoint={Endpoint};SharedAccessSignature={token}", table.Name, options))).Length);
});

await Run();

enum Kind { Plain, Gold }

class Customer : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public int Age { get; set; }
    public long Visits { get; set; }
    public double Balance { get; set; }
    public string? Title { get; set; }
    public DateTimeOffset? Since { get; set; }
    public Kind Kind { get; set; }
    public byte[]? Photo { get; set; }
}
