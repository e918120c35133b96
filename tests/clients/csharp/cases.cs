/// <summary>Cases by name: each is one test of pytest, which reads the names in the source and the outcomes from the output.</summary>
static class Cases
{
    public static readonly string Endpoint = Variable("TABLE_ENDPOINT");
    public static readonly string Account = Variable("TABLE_ACCOUNT");
    public static readonly string Key = Variable("TABLE_KEY");
    public static readonly string ClientVersion = Variable("TABLE_CLIENT_VERSION");
    public static readonly bool IsCosmos = Variable("TABLE_KIND") == "cosmos";
    public static readonly DateTimeOffset InAnHour = DateTimeOffset.UtcNow.AddHours(1);

    /// <summary>Keys and values that a careless address, filter or JSON would break.</summary>
    public static readonly string[] OddTexts =
    [
        "'", "''", "\"", "%", "%2F", "%25", "+", "&", "=", "$", "@", ":", ";", ",", "(", ")", "{}", "[]", "<b>", "!", "*", "~", "^", "|", "`",
        " ", "  two  ", "a b", "é", "e\u0301", "ß", "İı", "你好", "🦊", "\u202e", "\u00a0", "\ufeff", "it's \"50 %\" + more", "O''Brien", ".", "..",
    ];

    static readonly List<(string Name, Func<Task> Body)> all = [];

    /// <summary>A case for accounts of both kinds.</summary>
    public static void Check(string name, Func<Task> body) => all.Add((name, body));

    /// <summary>A case for storage accounts; <paramref name="reason"/> says why Cosmos accounts have none.</summary>
    public static void CheckStorage(string name, string reason, Func<Task> body)
    {
        if (!IsCosmos) all.Add((name, body));
    }

    /// <summary>A case for Cosmos accounts; <paramref name="reason"/> says why storage accounts have none.</summary>
    public static void CheckCosmos(string name, string reason, Func<Task> body)
    {
        if (IsCosmos) all.Add((name, body));
    }

    /// <summary>Run all cases, and print each outcome as a line of JSON.</summary>
    public static async Task Run()
    {
        foreach (var (name, body) in all)
        {
            var failure = "";
            try { await body(); }
            catch (Exception error) { failure = error.ToString(); }
            using var line = new MemoryStream();
            using (var json = new System.Text.Json.Utf8JsonWriter(line))
            {
                json.WriteStartObject();
                json.WriteString("name", name);
                json.WriteBoolean("ok", failure == "");
                json.WriteString("reason", failure);
                json.WriteEndObject();
            }
            Console.WriteLine(System.Text.Encoding.UTF8.GetString(line.ToArray()));
        }
    }

    /// <summary>The version that a client's assembly says it has.</summary>
    public static string VersionOf(Type type) => System.Diagnostics.FileVersionInfo.GetVersionInfo(type.Assembly.Location).ProductVersion!;

    public static string NewName() => "T" + Guid.NewGuid().ToString("N");

    public static void Equal<T>(T expected, T actual, string where = "")
    {
        if (!EqualityComparer<T>.Default.Equals(expected, actual)) throw new Exception($"{where} expected {expected}, got {actual}");
    }

    public static void Same<T>(IEnumerable<T> expected, IEnumerable<T> actual, string where = "")
    {
        if (!expected.SequenceEqual(actual))
            throw new Exception($"{where} expected [{string.Join("|", expected)}], got [{string.Join("|", actual)}]");
    }

    public static void True(bool condition, string what)
    {
        if (!condition) throw new Exception($"not so: {what}");
    }

    /// <summary>That a value came back as it was sent, in its type and to the bit.</summary>
    public static void Returned(object? sent, object? found, string name)
    {
        Equal(sent?.GetType(), found?.GetType(), $"the type of {name}:");
        if (sent is byte[] bytes) Same(bytes, (byte[])found!, name);
        else if (sent is double number) Equal(BitConverter.DoubleToInt64Bits(number), BitConverter.DoubleToInt64Bits((double)found!), name);
        else Equal(sent, found, name);
    }

    static string Variable(string name) => Environment.GetEnvironmentVariable(name) ?? throw new Exception($"{name} is not set");
}
