// Cases of com.azure:azure-data-tables, each a test of tests/clients/java/test_java.py.
package cases;

final class Main {
    public static void main(String[] arguments) {
        Values.run();
        Entities.run();
        Batches.run();
        Queries.run();
        Access.run();
        Service.run();
        System.exit(0); // not after the threads of the client
    }
}
