// Compiles and runs C# programs one after the other, each as if it were a process: most of the time of one is the start
// of the compiler. A client of the socket of the argument sends {file, folder, environment}, and gets {status, output, errors}.
using System.Net.Sockets;
using System.Reflection;
using System.Text;
using System.Text.Json;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;

var libraries = ((string)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES")!).Split(Path.PathSeparator)
    .Select(path => MetadataReference.CreateFromFile(path)).ToArray();
string[] usings = ["System", "System.Collections.Generic", "System.IO", "System.Linq", "System.Net.Http", "System.Threading", "System.Threading.Tasks"];
var global = CSharpSyntaxTree.ParseText(string.Join('\n', usings.Select(name => $"global using {name};")));
var options = new CSharpCompilationOptions(OutputKind.ConsoleApplication, nullableContextOptions: NullableContextOptions.Enable, allowUnsafe: true);
var (output, errors) = (Console.Out, Console.Error);
using var listener = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
listener.Bind(new UnixDomainSocketEndPoint(args[0]));
listener.Listen();
output.WriteLine("ready");
output.Flush();
while (true)
{
    using var client = new NetworkStream(listener.Accept(), ownsSocket: true);
    using var asked = JsonDocument.Parse(new StreamReader(client).ReadLine()!);
    foreach (string name in Environment.GetEnvironmentVariables().Keys) Environment.SetEnvironmentVariable(name, null);
    foreach (var pair in asked.RootElement.GetProperty("environment").EnumerateObject())
        Environment.SetEnvironmentVariable(pair.Name, pair.Value.GetString());
    Directory.SetCurrentDirectory(asked.RootElement.GetProperty("folder").GetString()!);
    var said = new StringWriter();
    var failed = new StringWriter();
    Console.SetOut(TextWriter.Synchronized(said));
    Console.SetError(TextWriter.Synchronized(failed));
    var status = await Run(asked.RootElement.GetProperty("file").GetString()!);
    Console.SetOut(output);
    Console.SetError(errors);
    var answer = new { status, output = said.ToString(), errors = failed.ToString() };
    await client.WriteAsync(Encoding.UTF8.GetBytes(JsonSerializer.Serialize(answer)));
}

async Task<int> Run(string file)
{
    var tree = CSharpSyntaxTree.ParseText(File.ReadAllText(file), new CSharpParseOptions(LanguageVersion.Latest), file);
    // a name of its own: the runtime takes two assemblies of one name for the same
    var compilation = CSharpCompilation.Create($"program{Guid.NewGuid():N}", [tree, global], libraries, options);
    using var image = new MemoryStream();
    var result = compilation.Emit(image);
    foreach (var diagnostic in result.Diagnostics.Where(one => one.Severity == DiagnosticSeverity.Error)) Console.Error.WriteLine(diagnostic);
    if (!result.Success) return 2;
    var main = Assembly.Load(image.ToArray()).EntryPoint!;
    try
    {
        var returned = main.Invoke(null, main.GetParameters().Length == 0 ? [] : [Array.Empty<string>()]);
        if (returned is Task task) await task;
        return returned is int code ? code : returned is Task<int> number ? number.Result : 0;
    }
    catch (Exception error)
    {
        Console.Error.WriteLine(error is TargetInvocationException { InnerException: { } inner } ? inner : error);
        return 1;
    }
}
