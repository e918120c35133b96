// Cases of com.microsoft.azure:azure-storage, each a test of tests/clients/java/test_java.py.
package cases;

final class Main {
    public static void main(String[] arguments) {
        Values.run();
        Entities.run();
        Batches.run();
        Queries.run();
        Access.run();
        Service.run();
    }
}
