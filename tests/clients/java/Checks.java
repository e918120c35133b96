// What the cases of both clients share: see tests/clients/cases.py.
package cases;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;

final class Checks {
    static final String ENDPOINT = System.getenv("TABLE_ENDPOINT");
    static final String ACCOUNT = System.getenv("TABLE_ACCOUNT");
    static final String KEY = System.getenv("TABLE_KEY");
    static final boolean IS_COSMOS = System.getenv("TABLE_KIND").equals("cosmos");

    static final String GUID = "cf8ef051-1b7d-4e93-a1e5-a3944d7e441c";
    static final String[] ODD_KEYS = {
        "'", "\"", "{}", "[]", "()", ":", "@", "&", "=", "+", ",", "$", "<>", ";", "~", "^", "!", "%", "*", "%2F",
        " ", "a b", "|", "`", "é", "你好", "😀",
    };

    // the codes of an account of the kind cosmos for those of an account for storage, where both say the same
    private static final Map<String, String> COSMOS_CODES = Map.of(
        "AuthenticationFailed", "Unauthorized",
        "AuthorizationPermissionMismatch", "Forbidden",
        "AuthorizationProtocolMismatch", "Forbidden",
        "AuthorizationResourceTypeMismatch", "Forbidden",
        "TableNotFound", "ResourceNotFound");

    private static final PrintStream OUTPUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static int tables = 0;

    interface Body {
        void run() throws Exception;
    }

    record Refusal(int status, String code) {
    }

    /** Runs a case and prints how it ended. */
    static void check(String name, Body body) {
        String reason = "";
        try {
            body.run();
        } catch (Throwable failure) {
            String place = Arrays.stream(failure.getStackTrace())
                .filter(frame -> frame.getClassName().startsWith("cases."))
                .map(frame -> "\n  at " + frame)
                .collect(Collectors.joining());
            reason = failure + place;
        }
        OUTPUT.printf("{\"name\": %s, \"ok\": %s, \"reason\": %s}%n", quote(name), reason.isEmpty(), quote(reason));
    }

    /** Runs a case that needs what accounts of the kind cosmos lack, for the reason given. */
    static void checkStorage(String name, String reason, Body body) {
        if (!IS_COSMOS) {
            check(name, body);
        }
    }

    static void equal(Object actual, Object expected) {
        if (!Objects.deepEquals(actual, expected)) {
            throw new AssertionError(show(actual) + " is not " + show(expected));
        }
    }

    static void isTrue(boolean condition, Object... values) {
        if (!condition) {
            throw new AssertionError("not so: " + Arrays.deepToString(values));
        }
    }

    /** The refusal by an account of this kind for that by an account for storage. */
    static Refusal refusal(int status, String code) {
        String other = IS_COSMOS ? COSMOS_CODES.getOrDefault(code, code) : code;
        return new Refusal(other.equals("Unauthorized") ? 401 : status, other);
    }

    static String byKind(String storage, String cosmos) {
        return IS_COSMOS ? cosmos : storage;
    }

    static String newName() {
        return "java" + System.nanoTime() + "x" + ++tables;
    }

    private static String show(Object value) {
        String text = value instanceof Object[] values ? Arrays.deepToString(values) : String.valueOf(value);
        return text.length() > 1000 ? text.substring(0, 1000) : text;
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char unit : text.toCharArray()) {
            if (unit == '"' || unit == '\\') {
                quoted.append('\\').append(unit);
            } else if (unit < ' ' || unit > '~') {
                quoted.append(String.format("\\u%04x", (int) unit));
            } else {
                quoted.append(unit);
            }
        }
        return quoted.append('"').toString();
    }

    private Checks() {
    }
}
