// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Tests of CacheSQLClient. Run with the base URLs of two nodes that hold the tables of the server's tests: `people` and
 * `loaded`. Without arguments the real nodes are left out. Prints `ok`, or what is not as expected and exits with 1.
 */
public class CacheSQLClientTest {
    private static final String ROWS = "{\"code\":0,\"message\":\"ok\",\"data\":[{\"a\":1}]}";
    private static final String WRITTEN = "{\"code\":0,\"message\":\"ok\",\"data\":{\"table\":\"T\",\"op\":\"insert\"}}";

    private interface Test {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Test> tests = new LinkedHashMap<>();
        tests.put("jsonIsRead", CacheSQLClientTest::jsonIsRead);
        tests.put("jsonIsRefused", CacheSQLClientTest::jsonIsRefused);
        tests.put("jsonIsWritten", CacheSQLClientTest::jsonIsWritten);
        tests.put("jsonTakesLinearTime", CacheSQLClientTest::jsonTakesLinearTime);
        tests.put("configurationErrorsNameTheKey", CacheSQLClientTest::configurationErrorsNameTheKey);
        tests.put("propertiesAreOfEitherEncoding", CacheSQLClientTest::propertiesAreOfEitherEncoding);
        tests.put("statementsNameTheirTables", CacheSQLClientTest::statementsNameTheirTables);
        tests.put("statementsAreRouted", CacheSQLClientTest::statementsAreRouted);
        tests.put("failingNodesAreSkipped", CacheSQLClientTest::failingNodesAreSkipped);
        tests.put("refusalsAreNotRetried", CacheSQLClientTest::refusalsAreNotRetried);
        tests.put("callsEndByTheirDeadline", CacheSQLClientTest::callsEndByTheirDeadline);
        tests.put("theBreakerLeavesOutAndProbes", CacheSQLClientTest::theBreakerLeavesOutAndProbes);
        tests.put("manyFailuresAtOnceAreOne", CacheSQLClientTest::manyFailuresAtOnceAreOne);
        tests.put("policiesSpreadReads", CacheSQLClientTest::policiesSpreadReads);
        tests.put("writesGoToTheLeaderWithAnId", CacheSQLClientTest::writesGoToTheLeaderWithAnId);
        tests.put("repeatedWritesKeepTheirId", CacheSQLClientTest::repeatedWritesKeepTheirId);
        tests.put("aHintIsFollowedOnce", CacheSQLClientTest::aHintIsFollowedOnce);
        tests.put("anElectionIsAwaited", CacheSQLClientTest::anElectionIsAwaited);
        tests.put("whatIsNotKnownIsSaid", CacheSQLClientTest::whatIsNotKnownIsSaid);
        tests.put("tokensOnlyGrow", CacheSQLClientTest::tokensOnlyGrow);
        tests.put("consistencyIsSent", CacheSQLClientTest::consistencyIsSent);
        tests.put("credentialsAreSent", CacheSQLClientTest::credentialsAreSent);
        tests.put("formsAreEncoded", CacheSQLClientTest::formsAreEncoded);
        tests.put("nullIsNeverAText", CacheSQLClientTest::nullIsNeverAText);
        tests.put("connectionsAreKept", CacheSQLClientTest::connectionsAreKept);
        tests.put("threadsShareAClient", CacheSQLClientTest::threadsShareAClient);
        tests.put("routesComeFromANode", CacheSQLClientTest::routesComeFromANode);
        tests.put("healthTellsOfEveryNode", CacheSQLClientTest::healthTellsOfEveryNode);
        if (arguments.length == 2) {
            tests.put("realNodesAreRouted", () -> realNodesAreRouted(arguments[0], arguments[1]));
            tests.put("aRealNodeTellsItsRoutes", () -> aRealNodeTellsItsRoutes(arguments[0]));
        }
        for (Map.Entry<String, Test> test : tests.entrySet()) {
            try {
                test.getValue().run();
            } catch (Throwable failure) {
                System.err.println(test.getKey() + ": " + failure);
                failure.printStackTrace();
                System.exit(1);
            }
        }
        System.out.println("ok");
        // Threads of fakes that are held in the middle of an answer.
        System.exit(0);
    }

    // ---- What is expected

    private static void expect(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError("not as expected: " + what);
        }
    }

    private static void equal(Object expected, Object found) {
        expect(expected == null ? found == null : expected.equals(found), "expected " + expected + ", found " + found);
    }

    private static <T extends Throwable> T thrown(Class<T> type, Callable<?> call) {
        try {
            Object result = call.call();
            throw new AssertionError("no " + type.getSimpleName() + " but " + result);
        } catch (Throwable failure) {
            if (failure instanceof AssertionError || !type.isInstance(failure)) {
                throw new AssertionError("expected " + type.getSimpleName() + ": " + failure, failure);
            }
            return type.cast(failure);
        }
    }

    private static void starts(String prefix, Throwable failure) {
        expect(failure.getMessage().startsWith(prefix), "a message that starts with \"" + prefix + "\", not: " + failure.getMessage());
    }

    private static long millisSince(long began) {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
    }

    // ---- JSON

    private static Map<String, Object> map(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            map.put((String) pairs[i], pairs[i + 1]);
        }
        return map;
    }

    private static String repeated(String text, int times) {
        return String.join("", Collections.nCopies(times, text));
    }

    private static void jsonIsRead() {
        Object[][] cases = {
            {"null", null}, {"true", true}, {" false\r\n\t", false}, {"\"\"", ""}, {"[]", Collections.emptyList()}, {"{}", map()}, {"[ ]", Collections.emptyList()},
            {"0", 0L}, {"-0", 0L}, {"-1", -1L}, {"9007199254740993", 9007199254740993L}, {"9223372036854775807", Long.MAX_VALUE},
            {"-9223372036854775808", Long.MIN_VALUE}, {"9223372036854775808", BigInteger.ONE.shiftLeft(63)},
            {"-9223372036854775809", BigInteger.ONE.shiftLeft(63).negate().subtract(BigInteger.ONE)},
            {"123456789012345678.90", new BigDecimal("123456789012345678.90")}, {"1.50", new BigDecimal(BigInteger.valueOf(150), 2)},
            {"-0.05", BigDecimal.valueOf(-5, 2)}, {"1e2", new BigDecimal(BigInteger.ONE, -2)}, {"1E+2", new BigDecimal(BigInteger.ONE, -2)},
            {"25e-1", BigDecimal.valueOf(25, 1)}, {"0.0", BigDecimal.valueOf(0, 1)}, {"1e9999", new BigDecimal(BigInteger.ONE, -9999)},
            {"1e0000000000000000002", new BigDecimal(BigInteger.ONE, -2)},
            {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"}, {"\"\\u0041\\u00e9\\u00E9\\u6c49\"", "Aéé汉"},
            // RFC 8259, section 7: the G clef U+1D11E.
            {"\"\\uD834\\uDD1E\"", new String(Character.toChars(0x1D11E))}, {"\"𝄞\"", new String(Character.toChars(0x1D11E))},
            {"\"\\uDEAD\"", String.valueOf((char) 0xDEAD)}, {"\"\\u0000\u007f\"", "\0\u007f"}, {"\"{[,]}:\"", "{[,]}:"},
            {"[1,[2,[3,{}]],null]", Arrays.asList(1L, Arrays.asList(2L, Arrays.asList(3L, map())), null)},
            {"{\"a\" : {\"b\":[ ]} , \"\":null}", map("a", map("b", Collections.emptyList()), "", null)},
            {"{\"a\":1,\"b\":2,\"a\":3}", map("a", 3L, "b", 2L)},
        };
        for (Object[] one : cases) {
            Object read = CacheSQLClient.Json.parse((String) one[0]);
            expect(one[1] == null ? read == null : one[1].equals(read), one[0] + " is " + one[1] + ", not " + read);
        }
        // RFC 8259, section 13.
        Object image = CacheSQLClient.Json.parse("{\"Image\":{\"Width\":800,\"Title\":\"View from 15th Floor\",\"Thumbnail\":"
            + "{\"Url\":\"http://www.example.com/image/481989943\",\"Height\":125},\"Animated\":false,\"IDs\":[116,943,234,38793]}}");
        equal(map("Image", map("Width", 800L, "Title", "View from 15th Floor", "Thumbnail",
            map("Url", "http://www.example.com/image/481989943", "Height", 125L), "Animated", false, "IDs", Arrays.asList(116L, 943L, 234L, 38793L))), image);
        equal("[z, a, m]", ((Map<?, ?>) CacheSQLClient.Json.parse("{\"z\":1,\"a\":2,\"m\":3}")).keySet().toString());
        CacheSQLClient.Json.parse(repeated("[", 200) + repeated("]", 200));
    }

    private static void jsonIsRefused() {
        String[] cases = {
            "", " ", "nul", "nulll", "True", "NaN", "Infinity", "undefined", "'a'", "01", "-01", "-", "+1", ".5", "1.", "1.e1", "1e", "1e+", "0x10", "1_0", "-a",
            "1e10000", "1e-10000", "1e99999999999999999999", "\"", "\"a", "\"\\", "\"\\x41\"", "\"\\u12\"", "\"\\u12G4\"", "\"\\u１２３４\"", "\"a\nb\"", "\"\t\"", "\"\0\"",
            "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{a:1}", "{1:1}", "{\"a\" 1}", "{\"a\":1]",
            "{,}", "[] []", "1 1", "{}x", "[]\0", "\uFEFF1", "\u00a01", "// a\n1", "1 /* a */", "\f1", "\"\\'\"", "\"\\U0041\"", repeated("9", 1001),
        };
        for (String text : cases) {
            starts("not JSON at character ", thrown(IllegalArgumentException.class, () -> CacheSQLClient.Json.parse(text)));
        }
        for (String opening : new String[] {"[", "{\"a\":"}) {
            for (int depth : new int[] {201, 1_000_000}) {
                IllegalArgumentException deep = thrown(IllegalArgumentException.class, () -> CacheSQLClient.Json.parse(repeated(opening, depth)));
                expect(deep.getMessage().contains("nested deeper than 200"), deep.getMessage());
            }
        }
    }

    private static void jsonIsWritten() {
        Object[][] cases = {
            {null, "null"}, {true, "true"}, {1, "1"}, {Long.MIN_VALUE, "-9223372036854775808"}, {new BigDecimal("1.50"), "1.50"}, {"", "\"\""},
            {"\"\\\b\n\u001f/é汉", "\"\\\"\\\\\\u0008\\u000a\\u001f/é汉\""}, {"\uD834\uDD1E", "\"\uD834\uDD1E\""}, {"\uDEAD", "\"\\udead\""}, {"\uD834", "\"\\ud834\""},
            {map("a", Arrays.asList(1, null, map())), "{\"a\":[1,null,{}]}"}, {new Object[] {"x", 2.5}, "[\"x\",2.5]"},
        };
        for (Object[] one : cases) {
            equal(one[1], CacheSQLClient.Json.write(one[0]));
        }
        List<Object> endless = new ArrayList<>();
        endless.add(endless);
        for (Object value : new Object[] {endless, Double.NaN, Float.POSITIVE_INFINITY, new Object(), map("a", new Object())}) {
            thrown(IllegalArgumentException.class, () -> CacheSQLClient.Json.write(value));
        }
    }

    private static void jsonTakesLinearTime() {
        // Where anything were quadratic, a million of these would take minutes.
        String[] texts = {
            "[" + repeated("1,", 1_000_000) + "1]", "\"" + repeated("\\n", 1_000_000) + "\"", "[" + repeated("\"\",", 1_000_000) + "[]]",
            "{" + repeated("\"a\":1,", 1_000_000) + "\"a\":1}", repeated(" ", 2_000_000) + "1", "[" + repeated("[],", 1_000_000) + "1]",
        };
        long began = System.nanoTime();
        for (String text : texts) {
            CacheSQLClient.Json.parse(text);
        }
        expect(millisSince(began) < 20_000, "ms for JSON: " + millisSince(began));
        began = System.nanoTime();
        thrown(IllegalArgumentException.class, () -> CacheSQLClient.Json.parse(repeated("7", 5_000_000)));
        expect(millisSince(began) < 5_000, "ms for a long number: " + millisSince(began));
    }

    // ---- Configuration

    private static Properties properties(String... pairs) {
        Properties properties = new Properties();
        for (int i = 0; i < pairs.length; i += 2) {
            properties.setProperty(pairs[i], pairs[i + 1]);
        }
        return properties;
    }

    /** A client of group g, whose table is T. */
    private static CacheSQLClient client(String master, String slaves, String... options) {
        Properties properties = properties(options);
        properties.setProperty("cachesql.group.g.master", master);
        properties.setProperty("cachesql.group.g.slaves", slaves);
        properties.setProperty("cachesql.group.g.tables", "T");
        return new CacheSQLClient(properties);
    }

    private static void configurationErrorsNameTheKey() {
        String master = "cachesql.group.g.master";
        String[][] cases = {
            {"cachesql.readTimeout", "abc"}, {"cachesql.readTimeout", "-1"}, {"cachesql.connectTimeout", "1.5"}, {"cachesql.connectTimeout", "٣"},
            {"cachesql.deadline", "0"}, {"cachesql.deadline", "99999999999"}, {"cachesql.deadline", ""}, {"cachesql.policy", "random"}, {"cachesql.policy", "Seed"},
            {"cachesql.consistency", "strong"}, {"cachesql.consistency", "bounded=x"}, {"cachesql.consistency", "bounded"}, {"cachesql.retries", "3"},
            {"cachesql.group.g.leader", "http://a"}, {"cachesql.group.master", "http://a"}, {"cachesql.group.h.tables", "T"}, {"cachesql.group.h.slaves", "http://a"},
            {master, "a:80"}, {master, "ftp://a"}, {master, "http://"}, {master, "http://a:x"}, {master, "http://a:70000"}, {master, "http://a b"},
            {master, "http://u:p@a"}, {master, "http://a?b=c"}, {master, ""}, {"cachesql.group.g.slaves", "http://b,c"}, {"cachesql.token", "a\nb"}, {"cachesql.token", ""},
        };
        for (String[] one : cases) {
            Properties properties = properties(master, "http://a:80", one[0], one[1]);
            String key = one[0].startsWith("cachesql.group.h") ? "cachesql.group.h.master" : one[0];
            starts(key, thrown(IllegalArgumentException.class, () -> new CacheSQLClient(properties)));
        }
        Properties twice = properties(master, "http://a", "cachesql.group.g.tables", "A, B", "cachesql.group.h.master", "http://b", "cachesql.group.h.tables", "C,B");
        String said = thrown(IllegalArgumentException.class, () -> new CacheSQLClient(twice)).getMessage();
        expect(said.contains("table B ") && said.contains("group.g.") && said.contains("group.h."), said);
        Properties secrets = properties("cachesql.token", "sesame", "cachesql.user", "u", "cachesql.password", "sesame");
        said = thrown(IllegalArgumentException.class, () -> new CacheSQLClient(secrets)).getMessage();
        expect(said.contains("cachesql.token") && said.contains("cachesql.user") && !said.contains("sesame"), said);
        Properties number = new Properties();
        number.put("cachesql.deadline", 5);
        starts("cachesql.deadline", thrown(IllegalArgumentException.class, () -> new CacheSQLClient(number)));
        // What is not the client's is not its business.
        try (CacheSQLClient client = new CacheSQLClient(properties("db.url", "jdbc:x", "server.role", "master"))) {
            equal("No group configured for table: T", thrown(IllegalArgumentException.class, () -> client.get("T", "a", 1)).getMessage());
            equal("No groups configured", thrown(IllegalStateException.class, client::refresh).getMessage());
            equal("No groups configured", thrown(IllegalStateException.class, client::health).getMessage());
            equal("No groups configured", thrown(IllegalStateException.class, () -> client.query("SELECT 1")).getMessage());
        }
    }

    private static void propertiesAreOfEitherEncoding() throws Exception {
        Path file = Files.createTempFile("cachesql", ".properties");
        try (Fake fake = new Fake()) {
            fake.does = rows();
            String[][] cases = {
                {"UTF-8", "\uFEFFcachesql.group.g.tables = 汉字, größe\n"}, {"ISO-8859-1", "cachesql.group.g.tables: \\u6c49\\u5b57,größe\n"},
                {"UTF-8", "cachesql.group.g.tables=\\\n   汉字,\\\n   größe\n# Ende\n"},
            };
            for (String[] one : cases) {
                Files.write(file, (one[1] + "cachesql.group.g.master=" + fake.url + "/\n").getBytes(Charset.forName(one[0])));
                try (CacheSQLClient client = new CacheSQLClient(file.toString())) {
                    equal(1, client.get("汉字", "a", 1).size());
                    equal(1, client.get("größe", "a", 1).size());
                    // Names match without regard to case when no name matches exactly.
                    equal(1, client.get("GRÖSSE".replace("SS", "ß"), "a", 1).size());
                }
            }
            Files.write(file, "cachesql.policy=\\u12".getBytes(StandardCharsets.US_ASCII));
            starts(file.toString(), thrown(IllegalArgumentException.class, () -> new CacheSQLClient(file.toString())));
        } finally {
            Files.delete(file);
        }
        expect(thrown(RuntimeException.class, () -> new CacheSQLClient(file.toString())).getMessage().contains(file.toString()), "the missing file's name");
    }

    // ---- Statements

    private static void statementsNameTheirTables() {
        String[][] cases = {
            {"SELECT * FROM KCA2", "[KCA2]"}, {"select a,b from KCA2 where c in (1,2)", "[KCA2]"}, {"SELECT 1", "[]"}, {"", "[]"}, {"SELECT 'FROM x'", "[]"},
            {"SELECT * FROM a, b AS bb, c d WHERE a.x = d.y", "[a, b, c]"}, {"SELECT * FROM a JOIN b ON a.x=b.x LEFT OUTER JOIN c USING (x, y), d", "[a, b, c, d]"},
            {"SELECT * FROM \"My \"\"Table\" , `t 2`", "[My \"Table, t 2]"}, {"SELECT * FROM public.KCA2 x", "[KCA2]"}, {"SELECT * FROM \"s\" . \"T\"", "[T]"},
            {"SELECT a /* FROM x /* nested */ FROM y */ FROM b -- JOIN c\n JOIN d ON true", "[b, d]"}, {"SELECT 'it''s FROM x', $$ FROM y $$, $t$ FROM z $$ $t$ FROM a", "[a]"},
            {"SELECT E'it\\'s FROM x' FROM a", "[a]"}, {"SELECT e'a''b\\'c FROM x' FROM a", "[a]"}, {"SELECT 'a\\' FROM b", "[b]"},
            {"SELECT extract(YEAR FROM born), substring(x FROM 2 FOR 3), trim(BOTH ' ' FROM y) FROM a", "[a]"}, {"SELECT a IS DISTINCT FROM b FROM c", "[c]"},
            {"SELECT * FROM (SELECT * FROM a JOIN b ON 1=1) x, c", "[a, b, c]"}, {"SELECT * FROM (a JOIN b ON a.i = b.i) JOIN c ON 1=1", "[a, b, c]"},
            {"SELECT (SELECT max(x) FROM b) FROM a WHERE EXISTS (SELECT 1 FROM c WHERE c.i IN (SELECT i FROM d))", "[b, a, c, d]"},
            {"SELECT a FROM t UNION ALL SELECT b FROM u ORDER BY 1, 2", "[t, u]"}, {"(SELECT a FROM t) EXCEPT (SELECT b FROM u)", "[t, u]"},
            {"WITH x AS (SELECT * FROM a), y(c, d) AS MATERIALIZED (SELECT * FROM x) SELECT * FROM x, y, b", "[a, b]"},
            {"WITH KCA2 AS (SELECT * FROM KCA2) SELECT * FROM KCA2", "[KCA2]"}, {"WITH RECURSIVE r AS (SELECT 1 UNION SELECT i FROM r JOIN a ON 1=1) SELECT * FROM r", "[a]"},
            {"SELECT * FROM (WITH x AS (SELECT * FROM a) SELECT * FROM x) y JOIN x ON 1=1", "[a, x]"}, {"SELECT * FROM generate_series(1, 3) g, a", "[a]"},
            {"SELECT * FROM a, LATERAL (SELECT * FROM b) c", "[a, b]"}, {"SELECT * FROM ONLY a", "[a]"}, {"EXPLAIN SELECT * FROM a", "[a]"},
            {"SELECT count(*) FILTER (WHERE x) FROM a GROUP BY b, c HAVING d LIMIT 3", "[a]"}, {"SELECT * FROM 表", "[表]"}, {"SELECT \"FROM\" FROM \"JOIN\"", "[JOIN]"},
            {"SELECT f(a, (SELECT 1)), $1 FROM t", "[t]"}, {"SELECT 'open FROM x", "[]"}, {"SELECT /* open FROM x", "[]"}, {"SELECT )) FROM a", "[a]"}, {"SELECT * FROM", "[]"},
            {"SELECT * FROM a CROSS JOIN b NATURAL JOIN c", "[a, b, c]"}, {"DELETE FROM a", "[a]"}, {"SELECT * FROM a FULL JOIN (SELECT 1) x ON true, b", "[a, b]"},
        };
        for (String[] one : cases) {
            String found = CacheSQLClient.SqlTables.of(one[0]).toString();
            expect(one[1].equals(found), one[0] + " reads " + one[1] + ", not " + found);
        }
        CacheSQLClient.SqlTables.of(repeated("(", 1_000_000));
    }

    private static void statementsAreRouted() throws Exception {
        try (Fake a = new Fake(); Fake b = new Fake()) {
            a.does = rows();
            b.does = rows();
            CacheSQLClient client = new CacheSQLClient(properties("cachesql.group.insurance.master", a.url, "cachesql.group.insurance.tables", "KCA2,KCA3",
                "cachesql.group.finance.master", b.url, "cachesql.group.finance.tables", "KCA4"));
            equal(1, client.query("SELECT * FROM KCA2 JOIN KCA3 ON 1=1 WHERE x = '汉 &+'").size());
            client.query("SELECT * FROM KCA4, elsewhere");
            equal(1, a.seen("/cache/query").size());
            equal("sql=SELECT+*+FROM+KCA2+JOIN+KCA3+ON+1%3D1+WHERE+x+%3D+%27%E6%B1%89+%26%2B%27", a.seen("/cache/query").get(0).body);
            equal(1, b.seen("/cache/query").size());
            String said = thrown(IllegalArgumentException.class, () -> client.query("SELECT * FROM KCA3, KCA4")).getMessage();
            expect(said.contains("insurance") && said.contains("finance") && said.contains("KCA3") && said.contains("KCA4"), said);
            equal("No group configured for table: nowhere", thrown(IllegalArgumentException.class, () -> client.query("SELECT * FROM nowhere")).getMessage());
            starts("No group configured for table: ", thrown(IllegalArgumentException.class, () -> client.query("SELECT 1")));
            equal(2, a.requests.size() + b.requests.size());
            client.close();
            thrown(IllegalStateException.class, () -> client.get("KCA2", "a", 1));
        }
    }

    // ---- Reads

    private static void failingNodesAreSkipped() throws Exception {
        Map<String, Does> failures = new LinkedHashMap<>();
        failures.put("reset", (seen, connection) -> connection.reset());
        failures.put("closed", (seen, connection) -> connection.socket.close());
        failures.put("stall", (seen, connection) -> connection.stall());
        failures.put("502", status(502, "bad"));
        failures.put("503", status(503, "not now"));
        failures.put("504", status(504, "slow"));
        failures.put("421", status(421, "not mine"));
        failures.put("cut", (seen, connection) -> connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + ROWS.substring(0, 20), true));
        failures.put("cut chunk", (seen, connection) -> connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"cod\r\n", true));
        failures.put("no JSON", status(200, "<html>proxy</html>"));
        failures.put("no envelope", status(200, "[]"));
        failures.put("no HTTP", (seen, connection) -> connection.send("SSH-2.0-x\r\n", true));
        failures.put("no UTF-8", (seen, connection) -> connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\u00ff", true));
        for (Map.Entry<String, Does> failure : failures.entrySet()) {
            try (Fake bad = new Fake(); Fake good = new Fake();
                 CacheSQLClient client = client(bad.url, good.url, "cachesql.policy", "leader", "cachesql.readTimeout", "3000", "cachesql.deadline", "60000")) {
                bad.does = failure.getValue();
                good.does = rows();
                equal(Collections.singletonList(map("a", 1L)), client.get("T", "a", 1));
                expect(bad.requests.size() >= 1 && good.requests.size() == 1, failure.getKey() + ": " + bad.requests.size() + ", " + good.requests.size());
            }
        }
        try (Fake good = new Fake(); CacheSQLClient client = client(refusing(), good.url + "," + refusing(), "cachesql.policy", "leader")) {
            good.does = rows();
            equal(1, client.get("T", "a", 1).size());
        }
        try (CacheSQLClient client = client(refusing(), refusing())) {
            long began = System.nanoTime();
            CacheSQLClient.CacheSQLException all = thrown(CacheSQLClient.CacheSQLException.class, () -> client.get("T", "a", 1));
            starts("All nodes failed, last error: ", all);
            expect(millisSince(began) < 5_000, "at once, not after ms " + millisSince(began));
        }
    }

    private static void refusalsAreNotRetried() throws Exception {
        try (Fake first = new Fake(); Fake second = new Fake(); CacheSQLClient client = client(first.url, second.url, "cachesql.policy", "leader")) {
            second.does = rows();
            int[] statuses = {400, 401, 403, 404, 405, 409, 429, 500, 301};
            for (int status : statuses) {
                first.does = status(status, "Column not found: x");
                CacheSQLClient.CacheSQLException refused = thrown(CacheSQLClient.CacheSQLException.class, () -> client.get("T", "x", 1));
                equal("Column not found: x", refused.getMessage());
                equal(status, refused.status());
            }
            first.does = status(400, "{\"code\":\"42P01\",\"message\":\"no such\"}", "Content-Type: application/json");
            equal("no such", thrown(CacheSQLClient.CacheSQLException.class, () -> client.delete("T", "x", 1)).getMessage());
            equal(statuses.length + 1, first.requests.size());
            equal(0, second.requests.size());
        }
    }

    private static void callsEndByTheirDeadline() throws Exception {
        Does stall = (seen, connection) -> connection.stall();
        Does dripHead = (seen, connection) -> connection.drip("HTTP/1.1 200 OK\r\nX: " + repeated("x", 4000));
        Does dripBody = (seen, connection) -> {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", false);
            connection.drip(repeated(" ", 4000));
        };
        for (Does does : Arrays.asList(stall, dripHead, dripBody)) {
            try (Fake a = new Fake(); Fake b = new Fake();
                 CacheSQLClient client = client(a.url, b.url, "cachesql.deadline", "900", "cachesql.readTimeout", "600")) {
                a.does = does;
                b.does = does;
                long began = System.nanoTime();
                starts("All nodes failed, last error: ", thrown(CacheSQLClient.CacheSQLException.class, () -> client.get("T", "a", 1)));
                // Without it, what drips takes more than a minute.
                expect(millisSince(began) >= 890 && millisSince(began) < 8_000, "ms of 900: " + millisSince(began));
                began = System.nanoTime();
                starts("All nodes failed for write, last error: ", thrown(CacheSQLClient.CacheSQLException.class, () -> client.delete("T", "a", 1)));
                expect(millisSince(began) < 8_000, "ms of 900: " + millisSince(began));
            }
        }
    }

    private static void theBreakerLeavesOutAndProbes() throws Exception {
        try (Fake bad = new Fake(); Fake good = new Fake(); CacheSQLClient client = client(bad.url, good.url, "cachesql.policy", "leader")) {
            bad.does = status(503, "not now");
            good.does = rows();
            for (int i = 1; i <= 3; i++) {
                client.get("T", "a", 1);
                equal(i, bad.requests.size());
            }
            long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (bad.requests.size() < 5 && System.nanoTime() < limit) {
                client.get("T", "a", 1);
            }
            List<Seen> seen = bad.seen("/cache/get");
            equal(5, seen.size());
            // Three in a row were asked; then it is left out, longer each time.
            long first = TimeUnit.NANOSECONDS.toMillis(seen.get(3).atNanos - seen.get(2).atNanos);
            long second = TimeUnit.NANOSECONDS.toMillis(seen.get(4).atNanos - seen.get(3).atNanos);
            expect(first >= 490 && second >= 990 && second < 20_000, "growing pauses: " + first + ", " + second);
            // A probe that succeeds brings it back.
            bad.does = rows();
            while (bad.requests.size() < 6 && System.nanoTime() < limit) {
                client.get("T", "a", 1);
            }
            for (int i = 7; i <= 9; i++) {
                client.get("T", "a", 1);
                equal(i, bad.requests.size());
            }
        }
        // Nobody else answers: then those that are left out are asked all the same.
        try (Fake only = new Fake(); CacheSQLClient client = client(only.url, "")) {
            only.does = status(503, "not now");
            for (int i = 0; i < 6; i++) {
                thrown(CacheSQLClient.CacheSQLException.class, () -> client.get("T", "a", 1));
            }
            equal(6, only.requests.size());
        }
    }

    private static void manyFailuresAtOnceAreOne() throws Exception {
        int threads = 24;
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try (Fake bad = new Fake(); Fake good = new Fake(); CacheSQLClient client = client(bad.url, good.url, "cachesql.policy", "leader")) {
            good.does = rows();
            CountDownLatch all = new CountDownLatch(threads);
            bad.does = (seen, connection) -> {
                all.countDown();
                await(all);
                connection.send(answer(503, "not now"), false);
            };
            List<Future<?>> reads = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                reads.add(pool.submit(() -> client.get("T", "a", 1)));
            }
            for (Future<?> read : reads) {
                read.get();
            }
            long began = System.nanoTime();
            while (bad.requests.size() == threads && millisSince(began) < 10_000) {
                client.get("T", "a", 1);
            }
            expect(millisSince(began) < 8_000, "the first pause, and not one for each of them: ms " + millisSince(began));
        } finally {
            pool.shutdownNow();
        }
    }

    private static int[] spread(String policy, int reads, Fake... fakes) {
        try (CacheSQLClient client = client(fakes[0].url, fakes[1].url + "," + fakes[2].url, "cachesql.policy", policy)) {
            int[] before = {fakes[0].requests.size(), fakes[1].requests.size(), fakes[2].requests.size()};
            for (int i = 0; i < reads; i++) {
                client.get("T", "a", 1);
            }
            return new int[] {fakes[0].requests.size() - before[0], fakes[1].requests.size() - before[1], fakes[2].requests.size() - before[2]};
        }
    }

    private static void policiesSpreadReads() throws Exception {
        try (Fake leader = new Fake(); Fake one = new Fake(); Fake two = new Fake()) {
            for (Fake fake : Arrays.asList(leader, one, two)) {
                fake.does = rows();
            }
            // Six standard deviations of the binomial distribution: 10 for a half of 400, 8.7 for a quarter, 9.4 for a third.
            int[] seed = spread("seed", 400, leader, one, two);
            expect(Math.abs(seed[0] - 200) <= 60 && Math.abs(seed[1] - 100) <= 52 && Math.abs(seed[2] - 100) <= 52, "seed " + Arrays.toString(seed));
            int[] uniform = spread("uniform", 400, leader, one, two);
            for (int count : uniform) {
                expect(Math.abs(count - 133) <= 57, "uniform " + Arrays.toString(uniform));
            }
            equal("[50, 0, 0]", Arrays.toString(spread("leader", 50, leader, one, two)));
            Does slow = (seen, connection) -> {
                connection.pace(100);
                connection.send(answer(200, ROWS), false);
            };
            leader.does = slow;
            two.does = slow;
            int[] nearest = spread("nearest", 100, leader, one, two);
            expect(nearest[1] >= 70, "nearest " + Arrays.toString(nearest));
        }
    }

    // ---- Writes

    private static void writesGoToTheLeaderWithAnId() throws Exception {
        try (Fake leader = new Fake(); Fake slave = new Fake(); CacheSQLClient client = client(leader.url, slave.url)) {
            leader.does = status(200, WRITTEN);
            Set<String> ids = new HashSet<>();
            for (int i = 0; i < 20; i++) {
                expect(client.insert("T", "a", i, map("b", "x")) && client.update("T", "a", i, map("b", "y")) && client.delete("T", "a", i), "written");
            }
            for (Seen seen : leader.requests) {
                equal("POST", seen.method);
                ids.add(UUID.fromString(seen.headers.get("cachesql-request-id")).toString());
            }
            equal(60, ids.size());
            equal(0, slave.requests.size());
            leader.does = status(200, "{\"code\":1,\"message\":\"no\",\"data\":null}");
            expect(!client.insert("T", "a", 1, null), "a code that is not 0 is false");
            leader.does = status(200, "{\"code\":0,\"message\":\"loaded\",\"data\":{\"table\":\"T\",\"rows\":3}}");
            equal(map("table", "T", "rows", 3L), client.load("T"));
            leader.does = status(200, "{\"code\":0,\"message\":\"refreshed\",\"data\":{\"tables\":2}}");
            equal(map("tables", 2L), client.refresh());
            equal(0, slave.requests.size());
        }
    }

    /** The answer to GET /v1/cluster of a group g with table T. */
    private static String cluster(String leader, Fake... members) {
        StringBuilder nodes = new StringBuilder();
        StringBuilder names = new StringBuilder();
        for (Fake member : members) {
            nodes.append(nodes.length() == 0 ? "" : ",").append("{\"name\":\"").append(member.name()).append("\",\"http\":\"http://").append(member.name()).append("\",\"ready\":true}");
            names.append(names.length() == 0 ? "" : ",").append("{\"node\":\"").append(member.name()).append("\",\"role\":null}");
        }
        return "{\"nodes\":[" + nodes + "],\"groups\":[{\"name\":\"g\",\"leader\":" + leader + ",\"members\":[" + names
            + "],\"tables\":[\"T\"]}],\"tables\":[{\"name\":\"T\",\"group\":\"g\"}]}";
    }

    private static String quoted(Fake fake) {
        return '"' + fake.name() + '"';
    }

    private static void repeatedWritesKeepTheirId() throws Exception {
        Map<String, Does> failures = new LinkedHashMap<>();
        failures.put("reset", (seen, connection) -> connection.reset());
        failures.put("stall", (seen, connection) -> connection.stall());
        failures.put("503", status(503, "not now"));
        failures.put("cut", (seen, connection) -> connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", true));
        for (Map.Entry<String, Does> failure : failures.entrySet()) {
            try (Fake old = new Fake(); Fake next = new Fake(); Fake third = new Fake();
                 CacheSQLClient client = client(old.url, third.url + "," + next.url, "cachesql.readTimeout", "3000", "cachesql.deadline", "60000")) {
                old.does = failure.getValue();
                next.does = status(200, WRITTEN);
                third.does = status(500, "a write that a follower must not see");
                next.cluster = cluster(quoted(next), old, next, third);
                third.cluster = cluster(quoted(next), old, next, third);
                expect(client.update("T", "a", 1, map("b", "汉")), failure.getKey());
                Set<String> sent = new HashSet<>();
                for (Fake fake : Arrays.asList(old, next)) {
                    for (Seen seen : fake.seen("/cache/update")) {
                        sent.add(seen.headers.get("cachesql-request-id") + " " + seen.body);
                    }
                }
                expect(old.seen("/cache/update").size() >= 1 && next.seen("/cache/update").size() == 1, failure.getKey());
                expect(sent.size() == 1 && !sent.iterator().next().startsWith("null"), failure.getKey() + ": one id and one body, not " + sent);
                equal(0, third.seen("/cache/update").size());
                // From now on it is known who leads.
                int before = old.requests.size();
                expect(client.update("T", "a", 2, map("b", "c")), failure.getKey());
                equal(before, old.requests.size());
            }
        }
    }

    private static void aHintIsFollowedOnce() throws Exception {
        for (int status : new int[] {421, 503}) {
            try (Fake old = new Fake(); Fake next = new Fake(); CacheSQLClient client = client(old.url, "")) {
                old.does = status(status, "not leader", "Cachesql-Leader: " + next.url);
                next.does = status(200, WRITTEN);
                expect(client.insert("T", "a", 1, null), "written where the hint says");
                equal(old.requests.get(0).headers.get("cachesql-request-id"), next.requests.get(0).headers.get("cachesql-request-id"));
                expect(client.insert("T", "a", 2, null), "and again");
                equal(1, old.requests.size());
                equal(2, next.requests.size());
            }
        }
        try (Fake a = new Fake(); Fake b = new Fake(); Fake c = new Fake(); CacheSQLClient client = client(a.url, "")) {
            a.does = status(421, "not leader", "Cachesql-Leader: " + b.url);
            b.does = status(421, "nor I", "Cachesql-Leader: " + c.url);
            c.does = status(200, WRITTEN);
            CacheSQLClient.CacheSQLException all = thrown(CacheSQLClient.CacheSQLException.class, () -> client.insert("T", "a", 1, null));
            starts("All nodes failed for write, last error: ", all);
            expect(all.outcomeKnown() && all.status() == 421, "nothing was applied");
            equal(0, c.requests.size());
            // Nonsense and circles are no hints.
            for (String hint : new String[] {"ftp://x", "nonsense", a.url, ""}) {
                a.does = status(421, "not leader", "Cachesql-Leader: " + hint);
                starts("All nodes failed for write", thrown(CacheSQLClient.CacheSQLException.class, () -> client.insert("T", "a", 1, null)));
            }
        }
    }

    private static void anElectionIsAwaited() throws Exception {
        try (Fake next = new Fake(); Fake other = new Fake(); Fake old = new Fake(); CacheSQLClient client = client(old.url, next.url + "," + other.url)) {
            next.does = status(200, WRITTEN);
            AtomicInteger questions = new AtomicInteger();
            String before = cluster(quoted(old), old, next, other);
            String during = cluster("null", old, next, other);
            String after = cluster(quoted(next), old, next, other);
            next.asked = () -> questions.incrementAndGet() > 4 ? after : questions.get() > 2 ? during : before;
            old.stop();
            expect(client.insert("T", "a", 1, null), "written once there is a leader");
            expect(questions.get() >= 5, "it asked until there was: " + questions);
        }
        // Routes that came in the middle of an election name no leader.
        try (Fake next = new Fake()) {
            next.does = status(200, WRITTEN);
            AtomicInteger questions = new AtomicInteger();
            String during = cluster("null", next);
            String after = cluster(quoted(next), next);
            next.asked = () -> questions.incrementAndGet() > 3 ? after : during;
            try (CacheSQLClient client = CacheSQLClient.connect(next.url)) {
                expect(client.insert("T", "a", 1, null), "written once there is a leader");
            }
        }
        // It was away for a moment, and still leads.
        try (Fake leader = new Fake(); Fake other = new Fake(); CacheSQLClient client = client(leader.url, other.url)) {
            AtomicInteger writes = new AtomicInteger();
            leader.does = (seen, connection) -> connection.send(writes.incrementAndGet() > 2 ? answer(200, WRITTEN) : answer(503, "starting"), false);
            leader.cluster = cluster(quoted(leader), leader, other);
            other.cluster = leader.cluster;
            expect(client.insert("T", "a", 1, null), "written in the end");
            equal(3, writes.get());
        }
        // There will be none: it ends, by its deadline or when no election takes that long.
        for (String deadline : new String[] {"1200", "600000"}) {
            try (Fake other = new Fake(); Fake old = new Fake(); CacheSQLClient client = client(old.url, other.url, "cachesql.deadline", deadline)) {
                other.cluster = cluster(quoted(old), old, other);
                old.stop();
                long began = System.nanoTime();
                starts("All nodes failed for write, last error: ", thrown(CacheSQLClient.CacheSQLException.class, () -> client.insert("T", "a", 1, null)));
                expect(millisSince(began) < 20_000, "ms of " + deadline + ": " + millisSince(began));
            }
        }
    }

    private static void whatIsNotKnownIsSaid() throws Exception {
        try (CacheSQLClient client = client(refusing(), refusing())) {
            CacheSQLClient.CacheSQLException all = thrown(CacheSQLClient.CacheSQLException.class, () -> client.delete("T", "a", 1));
            starts("All nodes failed for write, last error: ", all);
            expect(all.outcomeKnown() && !all.getMessage().contains("not known"), all.getMessage());
        }
        try (Fake leader = new Fake(); CacheSQLClient client = client(leader.url, "")) {
            for (Does does : Arrays.<Does>asList((seen, connection) -> connection.reset(), status(504, "slow"), status(200, "{"))) {
                leader.does = does;
                CacheSQLClient.CacheSQLException all = thrown(CacheSQLClient.CacheSQLException.class, () -> client.delete("T", "a", 1));
                starts("All nodes failed for write, last error: ", all);
                expect(!all.outcomeKnown() && all.getMessage().endsWith("(whether the write was applied is not known)"), all.getMessage());
            }
            leader.does = status(400, "Missing column/value");
            expect(thrown(CacheSQLClient.CacheSQLException.class, () -> client.delete("T", "a", 1)).outcomeKnown(), "a refusal did nothing");
        }
        // A load has no id, and is not sent again when it may be under way.
        try (Fake leader = new Fake(); Fake next = new Fake(); CacheSQLClient client = client(leader.url, next.url)) {
            leader.does = status(504, "slow");
            next.cluster = cluster(quoted(next), leader, next);
            expect(!thrown(CacheSQLClient.CacheSQLException.class, () -> client.load("T")).outcomeKnown(), "not known");
            equal(1, leader.requests.size());
            equal(0, next.requests.size());
            equal(null, leader.requests.get(0).headers.get("cachesql-request-id"));
        }
    }

    // ---- What is sent

    private static void tokensOnlyGrow() throws Exception {
        try (Fake a = new Fake(); Fake b = new Fake()) {
            CacheSQLClient client = new CacheSQLClient(properties("cachesql.group.g.master", a.url, "cachesql.group.g.tables", "T",
                "cachesql.group.h.master", b.url, "cachesql.group.h.tables", "U"));
            b.does = status(200, ROWS, "Cachesql-Token: main:3");
            String[][] cases = {
                {null, "main:7"}, {"main:7", "main:5"}, {"main:7", "main:10"}, {"main:10", "main:9"}, {"main:10", "nonsense"}, {"main:10", "main:-1"}, {"main:10", "main:"},
                {"main:10", ":11"}, {"main:10", "main:99999999999999999999"}, {"main:10", "main:9223372036854775808"}, {"main:9223372036854775808", "main:18446744073709551615"},
                {"main:18446744073709551615", "main:1"}, {"main:18446744073709551615", null}, {"main:18446744073709551615", "main:2"},
            };
            for (String[] one : cases) {
                a.does = one[1] == null ? rows() : status(200, ROWS, "Cachesql-Token: " + one[1]);
                client.get("T", "a", 1);
                equal(one[0], a.requests.get(a.requests.size() - 1).headers.get("cachesql-token"));
            }
            client.get("U", "a", 1);
            client.get("U", "a", 1);
            equal(null, b.requests.get(0).headers.get("cachesql-token"));
            equal("main:3", b.requests.get(1).headers.get("cachesql-token"));
            // A write's answer is what the next read must see.
            b.does = status(200, WRITTEN, "Cachesql-Token: main:8");
            client.insert("U", "a", 1, null);
            equal("main:8", client.token("U"));
            client.forgetSession();
            equal(null, client.token("U"));
            client.close();
        }
    }

    private static void consistencyIsSent() throws Exception {
        try (Fake fake = new Fake()) {
            fake.does = status(200, ROWS, "Cachesql-Token: main:7");
            for (String level : new String[] {"session", "any", "bounded=250ms", "linearizable"}) {
                try (CacheSQLClient client = client(fake.url, "", "cachesql.consistency", level)) {
                    client.get("T", "a", 1);
                    client.get("T", "a", 1);
                    Map<String, String> headers = fake.requests.get(fake.requests.size() - 1).headers;
                    equal(level, headers.get("cachesql-consistency"));
                    equal(level.equals("session") ? "main:7" : null, headers.get("cachesql-token"));
                }
            }
            try (CacheSQLClient client = client(fake.url, "")) {
                client.get("T", "a", 1);
                equal("session", fake.requests.get(fake.requests.size() - 1).headers.get("cachesql-consistency"));
            }
        }
    }

    private static void credentialsAreSent() throws Exception {
        try (Fake fake = new Fake()) {
            fake.does = rows();
            // RFC 7617, section 2, and its "test" with the pound sign in UTF-8.
            String[][] cases = {
                {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "cachesql.user", "Aladdin", "cachesql.password", "open sesame"},
                {"Basic dGVzdDoxMjPCow==", "cachesql.user", "test", "cachesql.password", "123£"}, {"Bearer abc.d-_~+/=", "cachesql.token", "abc.d-_~+/="}, {null},
            };
            for (String[] one : cases) {
                try (CacheSQLClient client = client(fake.url, "", Arrays.copyOfRange(one, 1, one.length))) {
                    client.get("T", "a", 1);
                    equal(one[0], fake.requests.get(fake.requests.size() - 1).headers.get("authorization"));
                }
            }
        }
    }

    private static void formsAreEncoded() throws Exception {
        try (Fake fake = new Fake(); CacheSQLClient client = client(fake.url, "")) {
            fake.does = rows();
            client.get("T", "名", "a+b & c=d 汉%41");
            equal("/cache/get?table=T&column=%E5%90%8D&value=a%2Bb+%26+c%3Dd+%E6%B1%89%2541", fake.requests.get(0).target);
            client.composite("T", "A+B", "x y", 7);
            equal("/cache/composite?table=T&index=A%2BB&values=x+y%2C7", fake.requests.get(1).target);
            starts("value 2 of index A+B", thrown(IllegalArgumentException.class, () -> client.composite("T", "A+B", 1, "a,b")));
            client.range("T", "a", -1, new BigDecimal("1E+3"));
            equal("/cache/range?table=T&column=a&from=-1&to=1000", fake.requests.get(2).target);
            fake.does = status(200, WRITTEN);
            Map<String, Object> data = map("s", "\uD834\uDD1E\n", "i", 7, "t", true, "b", new byte[] {0, (byte) 0xAB}, "d", new java.util.Date(0),
                "j", map("k", Arrays.asList(1, null)), "l", java.time.LocalDate.of(2026, 11, 30), "e", "");
            client.insert("T", "id", 1L, data);
            Seen seen = fake.requests.get(3);
            equal("table=T&column=id&value=1&s=%F0%9D%84%9E%0A&i=7&t=true&b=%5Cx00ab&d=1970-01-01T00%3A00%3A00Z&j=%7B%22k%22%3A%5B1%2Cnull%5D%7D&l=2026-11-30&e=", seen.body);
            equal("application/x-www-form-urlencoded", seen.headers.get("content-type"));
            for (Object bad : new Object[] {new Object(), "\uD834", "\uDD1E\uD834", new BigDecimal("1E999999999"), new int[] {1}}) {
                thrown(IllegalArgumentException.class, () -> client.insert("T", "id", 1, map("s", bad)));
            }
            for (String name : new String[] {"table", "column", "value", ""}) {
                thrown(IllegalArgumentException.class, () -> client.insert("T", "id", 1, map(name, 1)));
            }
            equal(4, fake.requests.size());
        }
    }

    private static void nullIsNeverAText() throws Exception {
        try (Fake fake = new Fake(); CacheSQLClient client = client(fake.url, "")) {
            fake.does = status(200, WRITTEN);
            // An insert replaces the row whole: a column that is left out is NULL.
            client.insert("T", "id", 1, map("a", null, "b", "null"));
            equal("table=T&column=id&value=1&b=null", fake.requests.get(0).body);
            String said = thrown(IllegalArgumentException.class, () -> client.update("T", "id", 1, map("city", null))).getMessage();
            expect(said.contains("city") && said.contains("null"), said);
            thrown(IllegalArgumentException.class, () -> client.insert("T", "id", 1, map("ID", null)));
            thrown(IllegalArgumentException.class, () -> client.get("T", "id", null));
            thrown(IllegalArgumentException.class, () -> client.composite("T", "a+b", 1, null));
            thrown(IllegalArgumentException.class, () -> client.delete("T", "id", null));
            equal(1, fake.requests.size());
        }
    }

    private static void connectionsAreKept() throws Exception {
        try (Fake fake = new Fake(); CacheSQLClient client = client(fake.url, "")) {
            AtomicInteger turn = new AtomicInteger();
            Does[] turns = {rows(), status(404, repeated("long ", 20_000)), status(503, "x"), rows()};
            fake.does = (seen, connection) -> turns[turn.getAndIncrement() % turns.length].answer(seen, connection);
            for (int i = 0; i < 40; i++) {
                try {
                    client.get("T", "a", 1);
                } catch (CacheSQLClient.CacheSQLException refused) {
                    expect(refused.status() == 404 || refused.status() == 503, refused);
                }
                expect(fake.connections.get() == 1, "one connection, errors or not: " + fake.connections + " after " + i);
            }
        }
    }

    private static void threadsShareAClient() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(16);
        try (Fake a = new Fake(); Fake b = new Fake(); CacheSQLClient client = client(a.url, b.url)) {
            AtomicInteger index = new AtomicInteger();
            Does echo = (seen, connection) -> {
                String value = seen.target.substring(seen.target.lastIndexOf('=') + 1);
                connection.send(answer(200, ROWS.replace("1", value), "Cachesql-Token: g:" + index.incrementAndGet()), false);
            };
            a.does = echo;
            b.does = echo;
            List<Future<?>> threads = new ArrayList<>();
            for (int t = 0; t < 16; t++) {
                int first = t * 1000;
                threads.add(pool.submit(() -> {
                    for (int i = first; i < first + 100; i++) {
                        equal(Collections.singletonList(map("a", (long) i)), client.get("T", "a", i));
                    }
                    return null;
                }));
            }
            for (Future<?> thread : threads) {
                thread.get();
            }
            equal("g:1600", client.token("T"));
        } finally {
            pool.shutdownNow();
        }
    }

    // ---- Routes from a node

    private static void routesComeFromANode() throws Exception {
        try (Fake leader = new Fake(); Fake follower = new Fake()) {
            for (Fake fake : Arrays.asList(leader, follower)) {
                fake.does = rows();
                fake.cluster = cluster(quoted(leader), leader, follower);
            }
            try (CacheSQLClient client = CacheSQLClient.connect(refusing() + ", " + follower.url, properties("cachesql.policy", "leader"))) {
                equal(1, client.get("t", "a", 1).size());
                equal(1, leader.seen("/cache/get").size());
                equal("No group configured for table: new", thrown(IllegalArgumentException.class, () -> client.get("new", "a", 1)).getMessage());
                // A table that comes later is found later; questions are not asked with every call.
                for (Fake fake : Arrays.asList(leader, follower)) {
                    fake.cluster = fake.cluster.replace("\"tables\":[", "\"tables\":[{\"name\":\"new\",\"group\":\"g\"},");
                }
                long began = System.nanoTime();
                boolean found = false;
                while (!found && millisSince(began) < 10_000) {
                    try {
                        found = client.get("new", "a", 1).size() == 1;
                    } catch (IllegalArgumentException notYet) {
                        expect(notYet.getMessage().startsWith("No group configured"), notYet);
                    }
                }
                expect(found && leader.seen("/v1/cluster").size() + follower.seen("/v1/cluster").size() < 10, "found with few questions");
                // All that were members are gone, and the routes with them.
                leader.stop();
                equal(1, client.get("T", "a", 1).size());
            }
            // Bound to every address, a node is where it was reached; a node alone is, wherever it says it is.
            int port = follower.server.getLocalPort();
            follower.cluster = cluster("\"x\"", leader).replace(quoted(leader), "\"x\"").replace("\"http\":\"x\"", "\"http\":\"0.0.0.0:" + port + "\"");
            follower.cluster = follower.cluster.replace("\"nodes\":[", "\"nodes\":[{\"name\":\"y\",\"http\":\"10.255.255.1:1\"},");
            follower.cluster = follower.cluster.replace("\"http\":\"http://" + leader.name() + "\"", "\"http\":\"0.0.0.0:" + port + "\"");
            try (CacheSQLClient client = CacheSQLClient.connect(follower.url)) {
                equal(1, client.get("T", "a", 1).size());
            }
            follower.cluster = cluster("\"x\"", leader).replace(quoted(leader), "\"x\"");
            try (CacheSQLClient client = CacheSQLClient.connect(follower.url)) {
                equal(1, client.get("T", "a", 1).size());
            }
        }
        starts("All nodes failed, last error: ", thrown(CacheSQLClient.CacheSQLException.class, () -> CacheSQLClient.connect(refusing())));
        thrown(IllegalArgumentException.class, () -> CacheSQLClient.connect("localhost"));
        thrown(IllegalArgumentException.class, () -> CacheSQLClient.connect("http://a", properties("cachesql.group.g.master", "http://b")));
    }

    private static void healthTellsOfEveryNode() throws Exception {
        try (Fake well = new Fake(); Fake full = new Fake()) {
            String health = "{\"code\":0,\"message\":\"ok\",\"data\":{\"status\":\"UP\",\"tables\":1}}";
            well.does = status(200, health);
            full.does = status(503, health.replace("UP", "WARN"));
            try (CacheSQLClient client = client(well.url, full.url)) {
                Map<String, Object> all = client.health();
                equal(map("status", "WARN", "nodes", map(well.url, map("status", "UP", "tables", 1L), full.url, map("status", "WARN", "tables", 1L))), all);
            }
            String gone = refusing();
            try (CacheSQLClient client = client(well.url, full.url + "," + gone)) {
                equal("DOWN", client.health().get("status"));
                equal("DOWN", ((Map<?, ?>) ((Map<?, ?>) client.health().get("nodes")).get(gone)).get("status"));
            }
        }
    }

    // ---- Real nodes

    private static void realNodesAreRouted(String insurance, String finance) throws Exception {
        Path file = Files.createTempFile("cachesql", ".properties");
        Files.write(file, ("# two groups\ncachesql.group.insurance.master=" + insurance + "\ncachesql.group.insurance.tables=people\ncachesql.group.finance.master="
            + finance + "\ncachesql.group.finance.tables=loaded,other\n").getBytes(StandardCharsets.UTF_8));
        try (CacheSQLClient client = new CacheSQLClient(file.toString())) {
            Map<String, Object> first = client.get("people", "id", 1).get(0);
            equal("[id, name, age, ok, price, born, doc]", first.keySet().toString());
            equal(map("id", 1L, "name", "张三", "age", 30L, "ok", true, "price", new BigDecimal("1.50"), "born", "1969-12-31T23:59:59", "doc", "{\"a\":[1,2]}"), first);
            equal(9007199254740993L, client.get("people", "name", "a,b").get(0).get("id"));
            equal(0, client.get("people", "id", 99).size());
            equal(map("ID", 1L, "CODE", "007"), client.less("loaded", "ID", 2).get(0));
            equal(map("ID", 3L, "CODE", ""), client.more("LOADED", "ID", 2).get(0));
            equal(Arrays.asList(map("ID", 1L, "CODE", "007"), map("ID", 2L, "CODE", null)), client.range("loaded", "ID", 1, 2));
            equal("张三", client.composite("people", "name+age", "张三", 30).get(0).get("name"));
            equal(Arrays.asList(map("id", 2L), map("id", 4L)), client.query("SELECT id FROM people WHERE age = 40 ORDER BY id"));
            equal(Collections.emptyList(), client.query("SELECT \"ID\" FROM loaded WHERE \"ID\" > 9"));

            expect(client.insert("people", "id", 80, map("name", "a+b & c=d {\"汉\"}\n", "age", 7, "price", null, "doc", map("k", Arrays.asList(1, "x")))), "inserted");
            Map<String, Object> row = client.get("people", "id", 80).get(0);
            equal("a+b & c=d {\"汉\"}\n", row.get("name"));
            equal(null, row.get("price"));
            equal(map("k", Arrays.asList(1L, "x")), CacheSQLClient.Json.parse((String) row.get("doc")));
            expect(client.update("people", "id", 80, map("name", "null")), "updated");
            equal("null", client.get("people", "id", 80).get(0).get("name"));
            // It went to one group's node and to no other.
            equal("[{\"id\":80}]", text(insurance + "/rest/people?id=eq.80&select=id"));
            equal("[]", text(finance + "/rest/people?id=eq.80&select=id"));
            expect(client.token("people") != null && client.token("loaded") != null, "tokens of both groups");
            expect(client.delete("people", "id", 80), "deleted");
            equal(0, client.get("people", "id", 80).size());

            equal(map("table", "loaded", "rows", 3L), client.load("loaded"));
            equal(map("tables", 2L), client.refresh());
            equal(3L, client.stats("loaded").get("activeRows"));
            equal("UP", client.health().get("status"));
            CacheSQLClient.CacheSQLException refused = thrown(CacheSQLClient.CacheSQLException.class, () -> client.get("people", "nothing", 1));
            equal("400 Column not found: nothing", refused.status() + " " + refused.getMessage());
            refused = thrown(CacheSQLClient.CacheSQLException.class, () -> client.get("other", "a", 1));
            equal("404 Table not found: other", refused.status() + " " + refused.getMessage());
            thrown(IllegalArgumentException.class, () -> client.query("SELECT * FROM people JOIN loaded ON id = \"ID\""));
        } finally {
            Files.delete(file);
        }
    }

    private static void aRealNodeTellsItsRoutes(String url) {
        try (CacheSQLClient client = CacheSQLClient.connect(url)) {
            equal(1, client.get("people", "id", 1).size());
            expect(client.insert("people", "id", 81, map("name", "x")), "inserted");
            equal("x", client.query("SELECT name FROM people WHERE id = 81").get(0).get("name"));
            expect(client.delete("people", "id", 81), "deleted");
            thrown(IllegalArgumentException.class, () -> client.get("nothing", "id", 1));
        }
    }

    private static String text(String url) throws IOException {
        try (InputStream in = URI.create(url).toURL().openStream()) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            for (int b = in.read(); b >= 0; b = in.read()) {
                bytes.write(b);
            }
            return new String(bytes.toByteArray(), StandardCharsets.UTF_8);
        }
    }

    // ---- A server that does what a test wants

    private interface Does {
        void answer(Seen seen, Connection connection) throws IOException;
    }

    private static Does rows() {
        return status(200, ROWS);
    }

    private static Does status(int status, String body, String... headers) {
        return (seen, connection) -> connection.send(answer(status, body, headers), false);
    }

    private static String answer(int status, String body, String... headers) {
        String lines = headers.length == 0 ? "" : String.join("\r\n", headers) + "\r\n";
        return "HTTP/1.1 " + status + " X\r\nContent-Length: " + body.getBytes(StandardCharsets.UTF_8).length + "\r\n" + lines + "\r\n" + body;
    }

    /** A URL whose port nobody listens on. */
    private static String refusing() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return "http://127.0.0.1:" + socket.getLocalPort();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** A request as it arrived. */
    private static final class Seen {
        final long atNanos = System.nanoTime();
        final String method;
        final String target;
        final Map<String, String> headers = new LinkedHashMap<>();
        String body = "";

        Seen(String line) {
            method = line.split(" ")[0];
            target = line.split(" ")[1];
        }
    }

    private static final class Connection {
        final Socket socket;
        private final CountDownLatch closed;

        Connection(Socket socket, CountDownLatch closed) {
            this.socket = socket;
            this.closed = closed;
        }

        void send(String text, boolean close) throws IOException {
            // Characters below U+0100 go as bytes where a test wants bytes that are no UTF-8.
            boolean raw = text.indexOf('\u00ff') >= 0;
            socket.getOutputStream().write(text.getBytes(raw ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_8));
            socket.getOutputStream().flush();
            if (close) {
                socket.close();
            }
        }

        void reset() throws IOException {
            // Closing without lingering sends RST.
            socket.setSoLinger(true, 0);
            socket.close();
        }

        /** Says nothing until the test is over. */
        void stall() {
            await(closed);
        }

        boolean pace(int ms) {
            try {
                return !closed.await(ms, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                return false;
            }
        }

        /** One byte after the other, so that no read time-out ever ends it. */
        void drip(String text) throws IOException {
            OutputStream out = socket.getOutputStream();
            for (byte b : text.getBytes(StandardCharsets.US_ASCII)) {
                out.write(b);
                if (!pace(20)) {
                    return;
                }
            }
        }
    }

    private static final class Fake implements AutoCloseable {
        final ServerSocket server;
        final String url;
        final List<Seen> requests = Collections.synchronizedList(new ArrayList<>());
        final AtomicInteger connections = new AtomicInteger();
        private final List<Socket> sockets = Collections.synchronizedList(new ArrayList<>());
        private final CountDownLatch closed = new CountDownLatch(1);
        private final Thread accepting;
        volatile Does does = status(404, "nothing here");
        /** The answer to GET /v1/cluster; without one it is not there. */
        volatile String cluster;
        /** The same, made anew for every question. */
        volatile Callable<String> asked = () -> cluster;

        Fake() throws IOException {
            server = new ServerSocket(0, 100, InetAddress.getByName("127.0.0.1"));
            url = "http://" + name();
            accepting = start(() -> {
                while (true) {
                    Socket socket = server.accept();
                    connections.incrementAndGet();
                    sockets.add(socket);
                    socket.setTcpNoDelay(true);
                    start(() -> serve(socket));
                }
            });
        }

        String name() {
            return "127.0.0.1:" + server.getLocalPort();
        }

        List<Seen> seen(String path) {
            List<Seen> found = new ArrayList<>();
            synchronized (requests) {
                for (Seen seen : requests) {
                    if (seen.target.equals(path) || seen.target.startsWith(path + "?")) {
                        found.add(seen);
                    }
                }
            }
            return found;
        }

        private static Thread start(Test work) {
            Thread thread = new Thread(() -> {
                try {
                    work.run();
                } catch (Exception over) {
                    // The socket was closed, by either side.
                }
            });
            thread.setDaemon(true);
            thread.start();
            return thread;
        }

        private void serve(Socket socket) throws Exception {
            InputStream in = new BufferedInputStream(socket.getInputStream());
            Connection connection = new Connection(socket, closed);
            for (String line = line(in); line != null; line = line(in)) {
                Seen seen = new Seen(line);
                for (String header = line(in); header != null && !header.isEmpty(); header = line(in)) {
                    int colon = header.indexOf(':');
                    seen.headers.put(header.substring(0, colon).toLowerCase(Locale.ROOT), header.substring(colon + 1).trim());
                }
                byte[] body = new byte[Integer.parseInt(seen.headers.getOrDefault("content-length", "0"))];
                for (int at = 0; at < body.length; ) {
                    int read = in.read(body, at, body.length - at);
                    if (read < 0) {
                        return;
                    }
                    at += read;
                }
                seen.body = new String(body, StandardCharsets.UTF_8);
                requests.add(seen);
                String routes = seen.target.equals("/v1/cluster") ? asked.call() : null;
                if (seen.target.equals("/v1/cluster")) {
                    connection.send(routes == null ? answer(404, "Not Found") : answer(200, routes), false);
                } else {
                    does.answer(seen, connection);
                }
            }
        }

        private static String line(InputStream in) throws IOException {
            StringBuilder line = new StringBuilder();
            for (int b = in.read(); b != '\n'; b = in.read()) {
                if (b < 0) {
                    return null;
                }
                if (b != '\r') {
                    line.append((char) b);
                }
            }
            return line.toString();
        }

        @Override
        public void close() throws IOException {
            stop();
        }

        /** Closes its port and its connections. When this returns, nobody answers there. */
        void stop() throws IOException {
            closed.countDown();
            server.close();
            // A thread in the middle of accepting holds the port open until it has seen that it was closed.
            try {
                accepting.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            synchronized (sockets) {
                for (Socket socket : sockets) {
                    socket.close();
                }
            }
        }
    }
}
