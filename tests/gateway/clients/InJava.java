import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** pgjdbc: metadata, prepared statements that become binary, pages of rows, errors and cancel. Prints JSON. */
public class InJava {
    private static String text(Object value) {
        if (value == null || value instanceof Number) return String.valueOf(value);
        return "\"" + value.toString().replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    private static String rows(ResultSet found) throws SQLException {
        ResultSetMetaData known = found.getMetaData();
        List<String> rows = new ArrayList<>();
        while (found.next()) {
            List<String> cells = new ArrayList<>();
            for (int column = 1; column <= known.getColumnCount(); column++) cells.add(text(found.getObject(column)));
            rows.add("[" + String.join(",", cells) + "]");
        }
        return "[" + String.join(",", rows) + "]";
    }

    private static String ask(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet found = statement.executeQuery(sql)) {
            return rows(found);
        }
    }

    private static String state(Connection connection, String sql) {
        try {
            ask(connection, sql);
            return "null";
        } catch (SQLException error) {
            return text(error.getSQLState());
        }
    }

    private static String cancelled(Connection connection, String sql) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Thread later = new Thread(() -> {
                try {
                    Thread.sleep(500);
                    statement.cancel();
                } catch (Exception error) {
                    throw new RuntimeException(error);
                }
            });
            later.start();
            statement.executeQuery(sql);
            return "null";
        } catch (SQLException error) {
            return text(error.getSQLState());
        }
    }

    private static String names(ResultSet found, String column) throws SQLException {
        List<String> names = new ArrayList<>();
        while (found.next()) names.add(text(found.getString(column)));
        return "[" + String.join(",", names) + "]";
    }

    public static void main(String[] given) throws Exception {
        Properties login = new Properties();
        login.setProperty("user", given[1]);
        login.setProperty("password", given[2]);
        List<String> saw = new ArrayList<>();
        try (Connection connection = DriverManager.getConnection(given[0], login)) {
            DatabaseMetaData known = connection.getMetaData();
            saw.add("\"tables\":" + names(known.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"));
            saw.add("\"columns\":" + names(known.getColumns(null, "public", "visits", "%"), "COLUMN_NAME"));
            saw.add("\"keys\":" + names(known.getPrimaryKeys(null, "public", "visits"), "COLUMN_NAME"));
            saw.add("\"schemas\":" + names(known.getSchemas(), "TABLE_SCHEM"));
            saw.add("\"rows\":" + ask(connection, given[3]));
            saw.add("\"again\":" + ask(connection, given[3]));
            saw.add("\"scan\":" + state(connection, given[4]));
            saw.add("\"budget\":" + state(connection, given[5]));
            saw.add("\"cancel\":" + cancelled(connection, given[6]));
            saw.add("\"after\":" + ask(connection, given[3]));
            List<String> executed = new ArrayList<>();
            String prepared = "SELECT city, COUNT(*) AS n FROM visits WHERE cost <= ? GROUP BY city ORDER BY city";
            try (PreparedStatement statement = connection.prepareStatement(prepared)) {
                for (int round = 0; round < 8; round++) {  // from the sixth on, it is prepared on the server, and binary
                    statement.setDouble(1, 50.0);
                    executed.add(rows(statement.executeQuery()));
                }
            }
            saw.add("\"prepared\":[" + String.join(",", executed) + "]");
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(1);  // a portal that is suspended after each row
                saw.add("\"pages\":" + rows(statement.executeQuery(given[3])));
            }
            connection.rollback();
        }
        System.out.println("{" + String.join(",", saw) + "}");
    }
}
