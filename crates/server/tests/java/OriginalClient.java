// A client as applications of the original server have it: HttpURLConnection, forms, and a JSON reader that scans for
// braces and knows flat objects only. Run as `java OriginalClient.java http://127.0.0.1:8080`; exits with 1 and a line
// on standard error when an answer is not what such a client takes for one.

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

public class OriginalClient {
    private final String base;

    OriginalClient(String base) {
        this.base = base;
    }

    public static void main(String[] arguments) throws Exception {
        OriginalClient client = new OriginalClient(arguments[0]);

        List<Map<String, Object>> rows = client.get("people", "id", "1");
        expect(rows.size() == 1, "one row, not " + rows);
        expect("张三".equals(rows.get(0).get("name")), "the name " + rows.get(0));
        expect(Long.valueOf(30).equals(rows.get(0).get("age")), "a bare number " + rows.get(0));
        expect("[id, name, age, ok, price, born, doc]".equals(rows.get(0).keySet().toString()), "column order");

        rows = client.get("people", "name", "say \"hi\"");
        expect(rows.size() == 1 && "say \"hi\"".equals(rows.get(0).get("name")), "quotes " + rows);
        expect(rows.get(0).get("born") == null, "NULL is null");
        expect(client.get("people", "id", "99").isEmpty(), "an empty list");

        Map<String, String> data = new LinkedHashMap<>();
        data.put("name", "a+b & c=d {\"x\"}");
        data.put("age", "7");
        expect(client.write("insert", "people", "id", "80", data), "insert");
        rows = client.get("people", "id", "80");
        expect(rows.size() == 1 && "a+b & c=d {\"x\"}".equals(rows.get(0).get("name")), "what was written " + rows);
        data.put("name", "changed");
        expect(client.write("update", "people", "id", "80", data), "update");
        expect("changed".equals(client.get("people", "id", "80").get(0).get("name")), "what was changed");
        expect(client.write("delete", "people", "id", "80", Map.of()), "delete");
        expect(client.get("people", "id", "80").isEmpty(), "what was deleted");

        rows = client.query("SELECT id, age FROM people WHERE age = 40 ORDER BY id");
        expect(rows.size() == 2 && Long.valueOf(4).equals(rows.get(1).get("id")), "a query " + rows);
        expect(client.status("/cache/get?table=people&column=id") == 400, "400 for what is missing");
        expect(client.status("/cache/get?table=nothing&column=id&value=1") == 404, "404 for a table that is not there");
        expect(client.status("/cache/insert") == 405, "405 for GET of a write");
        System.out.println("ok");
    }

    private static void expect(boolean holds, String what) {
        if (!holds) {
            System.err.println("not as expected: " + what);
            System.exit(1);
        }
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    List<Map<String, Object>> get(String table, String column, String value) throws IOException {
        return rows(read("/cache/get?table=" + encode(table) + "&column=" + encode(column) + "&value=" + encode(value)));
    }

    List<Map<String, Object>> query(String sql) throws IOException {
        return rows(read("/cache/query?sql=" + encode(sql)));
    }

    boolean write(String operation, String table, String column, String value, Map<String, String> data) throws IOException {
        StringBuilder form = new StringBuilder("table=" + encode(table) + "&column=" + encode(column) + "&value=" + encode(value));
        data.forEach((name, text) -> form.append('&').append(encode(name)).append('=').append(encode(text)));
        HttpURLConnection connection = open("/cache/" + operation);
        connection.setRequestMethod("POST");
        connection.setDoOutput(true);
        connection.setRequestProperty("Content-Type", "application/x-www-form-urlencoded");
        try (OutputStream out = connection.getOutputStream()) {
            out.write(form.toString().getBytes(StandardCharsets.UTF_8));
        }
        String answer = text(connection);
        return connection.getResponseCode() == 200 && answer.contains("\"code\":0");
    }

    int status(String path) throws IOException {
        return open(path).getResponseCode();
    }

    private HttpURLConnection open(String path) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) URI.create(base + path).toURL().openConnection();
        connection.setConnectTimeout(5000);
        connection.setReadTimeout(10000);
        return connection;
    }

    private String read(String path) throws IOException {
        HttpURLConnection connection = open(path);
        String text = text(connection);
        expect(connection.getResponseCode() == 200, path + " answers " + connection.getResponseCode() + " " + text);
        expect(text.startsWith("{\"code\":0,\"message\":\""), "the envelope: " + text);
        return text;
    }

    private static String text(HttpURLConnection connection) throws IOException {
        InputStream in = connection.getResponseCode() < 400 ? connection.getInputStream() : connection.getErrorStream();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        in.transferTo(bytes);
        return bytes.toString(StandardCharsets.UTF_8);
    }

    /** The objects of "data", found by their braces. */
    private static List<Map<String, Object>> rows(String text) {
        List<Map<String, Object>> rows = new ArrayList<>();
        int at = text.indexOf("\"data\":[") + 8;
        while (at < text.length() && text.charAt(at) == '{') {
            int end = closing(text, at);
            rows.add(members(text.substring(at + 1, end)));
            at = end + 1;
            if (at < text.length() && text.charAt(at) == ',') {
                at++;
            }
        }
        return rows;
    }

    /** Where the object that opens at a place closes; braces in strings do not count. */
    private static int closing(String text, int from) {
        int depth = 0;
        boolean quoted = false;
        for (int i = from; i < text.length(); i++) {
            char c = text.charAt(i);
            if (quoted) {
                if (c == '\\') {
                    i++;
                } else if (c == '"') {
                    quoted = false;
                }
            } else if (c == '"') {
                quoted = true;
            } else if (c == '{') {
                depth++;
            } else if (c == '}' && --depth == 0) {
                return i;
            }
        }
        return -1;
    }

    /** Members of a flat object: cut at the commas outside strings. */
    private static Map<String, Object> members(String inside) {
        Map<String, Object> row = new LinkedHashMap<>();
        int from = 0;
        boolean quoted = false;
        for (int i = 0; i <= inside.length(); i++) {
            char c = i < inside.length() ? inside.charAt(i) : ',';
            if (quoted && c == '\\') {
                i++;
            } else if (c == '"') {
                quoted = !quoted;
            } else if (c == ',' && !quoted) {
                String member = inside.substring(from, i);
                int colon = member.indexOf("\":");
                row.put(member.substring(1, colon), value(member.substring(colon + 2)));
                from = i + 1;
            }
        }
        return row;
    }

    private static Object value(String text) {
        if (text.equals("null")) {
            return null;
        }
        if (text.startsWith("\"")) {
            return text.substring(1, text.length() - 1).replace("\\\"", "\"").replace("\\\\", "\\");
        }
        if (text.equals("true") || text.equals("false")) {
            return Boolean.valueOf(text);
        }
        return text.contains(".") ? (Object) Double.valueOf(text) : (Object) Long.valueOf(text);
    }
}
