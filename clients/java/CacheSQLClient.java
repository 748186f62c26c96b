// SPDX-License-Identifier: Apache-2.0

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.HttpURLConnection;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.net.URL;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.temporal.TemporalAccessor;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.Comparator;
import java.util.Date;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * The routing client of CacheSQL: an application names a table, never a machine. Table → group → node comes from a
 * properties file, or from any node of the cluster ({@link #connect(String)}).
 *
 * <p>One file, nothing but the JDK (8 or later). All methods may be called from many threads at once. Every call ends,
 * one way or another, by its deadline; only a node that falls silent in the middle of an answer's body can stretch it, by
 * one read time-out, and a resolver of host names by the time that it takes.
 *
 * <p>Errors: {@link IllegalArgumentException} for what the caller or the configuration got wrong before anything was sent,
 * {@link CacheSQLException} for what nodes answered or did not answer.
 */
public class CacheSQLClient implements AutoCloseable {
    /** Failures in a row after which a node is left out. */
    private static final int BREAKER_FAILURES = 3;
    /** How long a node is left out at first, and at most. */
    private static final long BREAKER_FIRST_MS = 500;
    private static final long BREAKER_MOST_MS = 30_000;
    /** How long a write waits for a group to elect a leader, at most; its deadline may be nearer. */
    private static final long ELECTION_MS = 3_000;
    /** Pauses between two questions who leads now. */
    private static final long ELECTION_PAUSE_FIRST_MS = 50;
    private static final long ELECTION_PAUSE_MOST_MS = 400;
    /** How long one node may take to tell the routes. */
    private static final long ROUTES_MS = 1_000;
    /** Routes are not asked for again before that. */
    private static final long ROUTES_PAUSE_MS = 1_000;
    /** Bytes of one answer: it is held whole, so that what does not fit is an error and not the end of the process. */
    private static final int ANSWER_BYTES = 1 << 30;
    /** Characters of an error's text that are kept. */
    private static final int MESSAGE_CHARS = 4_096;
    /** One read in so many goes to any node, so that `nearest` notices one that became near. */
    private static final int NEAREST_EXPLORES = 32;

    private final Settings settings;
    private final Map<String, Node> nodes = new ConcurrentHashMap<>();
    private final ScheduledThreadPoolExecutor watchdog;
    /** URLs that were given to {@link #connect}; null when the routes are those of a file, and stay. */
    private final List<String> seeds;
    private volatile Routes routes;
    private volatile boolean closed;
    private final Object reloading = new Object();
    private long reloadedAtNanos;

    // ---- Opening and closing

    /** A client with the routes of a properties file, in UTF-8, or in ISO-8859-1 when it is not valid UTF-8. */
    public CacheSQLClient(String propertiesFile) {
        this(readProperties(propertiesFile));
    }

    /** A client with the routes of properties: `cachesql.group.NAME.master`, `.slaves`, `.tables`, and options. */
    public CacheSQLClient(Properties properties) {
        this(new Settings(properties), null);
        List<Group> groups = new ArrayList<>();
        for (Map.Entry<String, Settings.GroupSettings> entry : settings.groups.entrySet()) {
            Settings.GroupSettings configured = entry.getValue();
            List<Node> members = new ArrayList<>();
            members.add(node(configured.master));
            for (String slave : configured.slaves) {
                members.add(node(slave));
            }
            groups.add(new Group(entry.getKey(), members.get(0), members));
        }
        Map<String, Group> byTable = new LinkedHashMap<>();
        for (Group group : groups) {
            for (String table : settings.groups.get(group.name).tables) {
                byTable.put(table, group);
            }
        }
        routes = new Routes(groups, byTable);
    }

    private CacheSQLClient(Settings settings, List<String> seeds) {
        this.settings = settings;
        this.seeds = seeds;
        this.watchdog = new ScheduledThreadPoolExecutor(1, work -> {
            Thread thread = new Thread(work, "cachesql-deadlines");
            thread.setDaemon(true);
            return thread;
        });
        watchdog.setRemoveOnCancelPolicy(true);
        // A client that is forgotten without close() keeps no thread.
        watchdog.setKeepAliveTime(10, TimeUnit.SECONDS);
        watchdog.allowCoreThreadTimeOut(true);
    }

    /** A client that asks a node for the routes. Several URLs may be given, separated by commas; the first that answers counts. */
    public static CacheSQLClient connect(String url) {
        return connect(url, new Properties());
    }

    /** The same with options: the keys of the properties file, without groups. */
    public static CacheSQLClient connect(String url, Properties options) {
        Settings settings = new Settings(options);
        if (!settings.groups.isEmpty()) {
            throw new IllegalArgumentException("connect asks a node for the groups: cachesql.group." + settings.groups.keySet().iterator().next()
                + " must not be configured as well");
        }
        List<String> seeds = new ArrayList<>();
        for (String part : Settings.list(url)) {
            seeds.add(Settings.url("url", part));
        }
        if (seeds.isEmpty()) {
            throw new IllegalArgumentException("url: no URL is given");
        }
        CacheSQLClient client = new CacheSQLClient(settings, seeds);
        client.routes = new Routes(Collections.<Group>emptyList(), Collections.<String, Group>emptyMap());
        Failed last = client.reload(new Deadline(settings.deadlineMs));
        if (last != null) {
            client.close();
            throw new CacheSQLException("All nodes failed, last error: " + last.getMessage(), 0, true, last);
        }
        return client;
    }

    /** Ends the client's one thread. Calls after it are refused; connections are the JDK's, which closes idle ones itself. */
    @Override
    public void close() {
        closed = true;
        watchdog.shutdownNow();
    }

    private static Properties readProperties(String file) {
        try {
            byte[] bytes = Files.readAllBytes(Paths.get(file));
            Properties properties = new Properties();
            properties.load(propertiesReader(bytes));
            return properties;
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file + ": " + e.getMessage(), e);
        } catch (IllegalArgumentException e) {
            // A malformed \\u escape: the JDK does not say in which file.
            throw new IllegalArgumentException(file + ": " + e.getMessage(), e);
        }
    }

    private static Reader propertiesReader(byte[] bytes) {
        Charset charset = StandardCharsets.ISO_8859_1;
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes));
            charset = StandardCharsets.UTF_8;
        } catch (CharacterCodingException notUtf8) {
            // Java's own encoding of properties, then.
        }
        boolean marked = bytes.length >= 3 && bytes[0] == (byte) 0xEF && bytes[1] == (byte) 0xBB && bytes[2] == (byte) 0xBF;
        int from = marked && charset == StandardCharsets.UTF_8 ? 3 : 0;
        return new InputStreamReader(new ByteArrayInputStream(bytes, from, bytes.length - from), charset);
    }

    // ---- Reads

    /** Rows where the column equals the value. */
    public List<Map<String, Object>> get(String table, String column, Object value) {
        return rows(table, Request.get("/cache/get", new Form().add("table", table).add("column", column).add("value", value)));
    }

    /** Rows where the column is less than the value. */
    public List<Map<String, Object>> less(String table, String column, Object value) {
        return rows(table, Request.get("/cache/less", new Form().add("table", table).add("column", column).add("value", value)));
    }

    /** Rows where the column is more than the value. */
    public List<Map<String, Object>> more(String table, String column, Object value) {
        return rows(table, Request.get("/cache/more", new Form().add("table", table).add("column", column).add("value", value)));
    }

    /** Rows where the column is between two values, both included. */
    public List<Map<String, Object>> range(String table, String column, Object from, Object to) {
        Form form = new Form().add("table", table).add("column", column).add("from", from).add("to", to);
        return rows(table, Request.get("/cache/range", form));
    }

    /** Rows that are equal in all columns of an index, named `A+B`. The interface separates values by commas, so none may hold one. */
    public List<Map<String, Object>> composite(String table, String index, Object... values) {
        StringBuilder joined = new StringBuilder();
        for (int i = 0; i < values.length; i++) {
            String text = Form.text("value " + (i + 1) + " of index " + index, values[i]);
            if (text.indexOf(',') >= 0) {
                throw new IllegalArgumentException("value " + (i + 1) + " of index " + index + " holds a comma, which separates values: " + text);
            }
            joined.append(i == 0 ? "" : ",").append(text);
        }
        Form form = new Form().add("table", table).add("index", index).add("values", joined.toString());
        return rows(table, Request.get("/cache/composite", form));
    }

    /**
     * Rows of a query. The tables after FROM and JOIN decide the group; tables of two groups are refused, and so is a
     * statement that names no table that has a group.
     */
    public List<Map<String, Object>> query(String sql) {
        if (sql == null) {
            throw new IllegalArgumentException("sql: null");
        }
        // As a form, because a URL has a limit that statements pass.
        return rows(read(groupOfStatement(sql), Request.post("/cache/query", new Form().add("sql", sql))));
    }

    /** Rows, retention and indexes of a table, as one of its nodes has them. */
    public Map<String, Object> stats(String table) {
        return object(read(group(table), Request.get("/cache/stats", new Form().add("table", table))).data);
    }

    private Group groupOfStatement(String sql) {
        if (seeds == null && routes.groups.isEmpty()) {
            throw new IllegalStateException("No groups configured");
        }
        String known = null;
        String unknown = null;
        Group group = null;
        for (String table : SqlTables.of(sql)) {
            Group found = find(table);
            if (found == null) {
                unknown = unknown == null ? table : unknown;
            } else if (group != null && found != group) {
                throw new IllegalArgumentException("One statement, two groups: table " + known + " is in group " + group.name + ", table " + table
                    + " in group " + found.name);
            } else {
                group = found;
                known = table;
            }
        }
        if (group == null) {
            throw noGroup(unknown == null ? "(the statement names none)" : unknown);
        }
        return group;
    }

    private List<Map<String, Object>> rows(String table, Request request) {
        return rows(read(group(table), request));
    }

    private static List<Map<String, Object>> rows(Envelope envelope) {
        if (!(envelope.data instanceof List)) {
            throw new CacheSQLException("an answer without rows: " + shortened(envelope.message), 200, true, null);
        }
        List<Map<String, Object>> rows = new ArrayList<>(((List<?>) envelope.data).size());
        for (Object row : (List<?>) envelope.data) {
            rows.add(object(row));
        }
        return rows;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        if (!(value instanceof Map)) {
            throw new CacheSQLException("an answer that is no object", 200, true, null);
        }
        // The JSON reader makes no other maps than from names to values.
        return (Map<String, Object>) value;
    }

    /** Asks the nodes of a group, one after the other, until one answers. */
    private Envelope read(Group group, Request request) {
        Deadline deadline = begin();
        request.consistency = settings.consistency;
        Failed last = null;
        Set<Node> asked = new HashSet<>();
        for (int round = 0; round < 2; round++) {
            Deque<Node> turn = new ArrayDeque<>(group.order(settings.policy));
            turn.removeAll(asked);
            Set<Node> leftOut = new HashSet<>();
            while (!turn.isEmpty() && !deadline.passed()) {
                Node node = turn.poll();
                // A node that is left out is still asked when nobody else answers: trying is better than failing.
                if (!leftOut.contains(node) && !node.admits()) {
                    leftOut.add(node);
                    turn.addLast(node);
                    continue;
                }
                asked.add(node);
                try {
                    return call(group, node, request, deadline);
                } catch (Failed failure) {
                    last = failure;
                }
            }
            // Where the routes were asked for, the group may have other members by now.
            if (round > 0 || seeds == null || deadline.passed() || reload(deadline) != null) {
                break;
            }
        }
        String text = last == null ? settings.deadlineText() : last.getMessage();
        throw new CacheSQLException("All nodes failed, last error: " + text, last == null ? 0 : last.status, true, last);
    }

    // ---- Writes

    /**
     * Puts one row: the column has the value, `data` are its other columns. Rows that had the value before are replaced
     * whole, so columns that are not named, or are null in `data`, become NULL.
     */
    public boolean insert(String table, String column, Object value, Map<String, ?> data) {
        Form form = new Form().add("table", table).add("column", column).add("value", value);
        addColumns(form, "insert", table, column, data);
        return write(group(table), Request.post("/cache/insert", form)).code == 0;
    }

    /**
     * Sets columns in the rows where the column equals the value. The interface has no word for NULL here, so a null in
     * `data` is refused rather than written as a text.
     */
    public boolean update(String table, String column, Object value, Map<String, ?> data) {
        Form form = new Form().add("table", table).add("column", column).add("value", value);
        addColumns(form, "update", table, column, data);
        return write(group(table), Request.post("/cache/update", form)).code == 0;
    }

    /** Removes the rows where the column equals the value. */
    public boolean delete(String table, String column, Object value) {
        Form form = new Form().add("table", table).add("column", column).add("value", value);
        return write(group(table), Request.post("/cache/delete", form)).code == 0;
    }

    private static void addColumns(Form form, String operation, String table, String column, Map<String, ?> data) {
        if (data == null) {
            return;
        }
        for (Map.Entry<String, ?> entry : data.entrySet()) {
            String name = entry.getKey();
            if ("table".equals(name) || "column".equals(name) || "value".equals(name)) {
                throw new IllegalArgumentException(operation + " of " + table + ": a column called \"" + name
                    + "\" cannot be named, it is a parameter of this call");
            }
            if (entry.getValue() == null) {
                if (operation.equals("insert") && !column.equalsIgnoreCase(name)) {
                    continue;
                }
                throw new IllegalArgumentException(operation + " of " + table + ": column " + name
                    + " is null, which this call cannot say; POST /v1/sql can");
            }
            form.add(name, entry.getValue());
        }
    }

    /** Loads a table from its source again: `{"table", "rows"}`. What takes longer than the deadline goes on at the node. */
    public Map<String, Object> load(String table) {
        Request request = Request.post("/cache/load", new Form().add("table", table));
        request.repeatable = false;
        return object(write(group(table), request).data);
    }

    /** Loads every table of every group again: `{"tables": how many}`. */
    public Map<String, Object> refresh() {
        long tables = 0;
        for (Group group : someGroups()) {
            Request request = Request.post("/cache/refresh", new Form());
            request.repeatable = false;
            Object loaded = object(write(group, request).data).get("tables");
            tables += loaded instanceof Long ? (Long) loaded : 0;
        }
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("tables", tables);
        return data;
    }

    /**
     * Sends a write to the leader of a group, and after a failure to whoever leads then.
     *
     * <p>A request whose connection broke or that was not answered in time may have been applied. It is sent again only
     * because it carries a `Cachesql-Request-Id`, the same each time: the group applies one id once, and answers the
     * repeat as it answered the first. Loads carry none, and are not repeated when their outcome is not known.
     */
    private Envelope write(Group group, Request request) {
        Deadline deadline = begin();
        if (request.repeatable) {
            request.id = UUID.randomUUID().toString();
        }
        Election election = new Election(deadline);
        Set<Node> failed = new LinkedHashSet<>();
        boolean redirected = false;
        boolean known = true;
        Failed last = null;
        Node node = group.leader;
        if (node == null || !node.admits()) {
            // A leader that is left out is probably none any more. When nobody knows another, it is asked all the same.
            Node other = findLeader(group, Collections.singleton(node), election, node == null);
            node = other == null ? node : other;
        }
        while (node != null && !deadline.passed()) {
            try {
                Envelope envelope = call(group, node, request, deadline);
                group.leads(node);
                return envelope;
            } catch (Failed failure) {
                last = failure;
                known &= failure.notApplied;
                failed.add(node);
                if (!failure.notApplied && !request.repeatable) {
                    break;
                }
                Node hinted = redirected ? null : hinted(node, failure);
                redirected |= hinted != null;
                node = hinted != null ? hinted : findLeader(group, failed, election, true);
            } catch (CacheSQLException refused) {
                if (known) {
                    throw refused;
                }
                // An earlier try may have been applied all the same, so this is no plain refusal.
                throw new CacheSQLException(refused.getMessage(), refused.status(), false, refused);
            }
        }
        String text = last != null ? last.getMessage() : node == null ? "group " + group.name + " has no leader" : settings.deadlineText();
        String suffix = known ? "" : " (whether the write was applied is not known)";
        throw new CacheSQLException("All nodes failed for write, last error: " + text + suffix, last == null ? 0 : last.status, known, last);
    }

    /** The node that a "not leader" answer names; null for none, or where credentials would leave TLS. */
    private Node hinted(Node asked, Failed failure) {
        if (failure.leader == null) {
            return null;
        }
        try {
            String url = Settings.url("Cachesql-Leader", failure.leader);
            boolean downgrade = asked.url.startsWith("https:") && !url.startsWith("https:");
            return downgrade || url.equals(asked.url) ? null : node(url);
        } catch (IllegalArgumentException malformed) {
            return null;
        }
    }

    /**
     * Asks the members who leads now. A leader that has just failed is named for a while until another is elected: with
     * `patient`, this waits for that as long as some member answers at all.
     */
    private Node findLeader(Group group, Set<Node> failed, Election election, boolean patient) {
        while (true) {
            boolean answered = false;
            Node again = null;
            for (Node member : group.askable(failed)) {
                Topology topology = topology(member, election.deadline);
                if (topology == null) {
                    continue;
                }
                answered = true;
                Node leader = adopt(topology, group);
                if (leader != null && !failed.contains(leader)) {
                    return leader;
                }
                again = leader == null ? again : leader;
            }
            if (!answered || !patient || !election.pause()) {
                return null;
            }
            // Members still hold to it, and it answers: it was away for a moment only.
            if (again != null && topology(again, election.deadline) != null) {
                return again;
            }
        }
    }

    // ---- Health

    /**
     * How every node is: `{"status": "UP" | "WARN" | "DOWN", "nodes": {url: what it says}}`. The status is that of the
     * node that is worst.
     */
    public Map<String, Object> health() {
        Set<Node> all = new LinkedHashSet<>();
        for (Group group : someGroups()) {
            all.addAll(group.members());
        }
        Deadline deadline = begin();
        Map<String, Object> said = new LinkedHashMap<>();
        String worst = "UP";
        int left = all.size();
        for (Node node : all) {
            Map<String, Object> one = healthOf(node, new Deadline(Math.max(1, deadline.leftMs() / left--)));
            said.put(node.url, one);
            String status = String.valueOf(one.get("status"));
            worst = status.equals("DOWN") || worst.equals("DOWN") ? "DOWN" : status.equals("UP") ? worst : "WARN";
        }
        Map<String, Object> health = new LinkedHashMap<>();
        health.put("status", worst);
        health.put("nodes", said);
        return health;
    }

    private Map<String, Object> healthOf(Node node, Deadline deadline) {
        String error;
        try {
            // 503 is an answer here: a node that is short of memory says WARN with it.
            Reply reply = exchange(node, Request.get("/cache/health", new Form()), deadline);
            Object data = reply.status == 200 || reply.status == 503 ? envelope(reply.text).data : null;
            if (data instanceof Map && ((Map<?, ?>) data).get("status") != null) {
                node.succeeded();
                return object(data);
            }
            error = reply.status + " " + reply.message();
        } catch (Failed | IllegalArgumentException failure) {
            error = failure.getMessage();
        }
        Map<String, Object> down = new LinkedHashMap<>();
        down.put("status", "DOWN");
        down.put("error", error);
        return down;
    }

    // ---- Sessions

    /**
     * Forgets what this client has seen. Reads promise to show at least that; nodes that lost it (all restarted without a
     * disk) can never keep the promise, and refuse until it is taken back.
     */
    public void forgetSession() {
        for (Group group : routes.groups) {
            group.forgetToken();
        }
    }

    /** The token that the next read of a table sends: `group:log index`; null before the first answer. */
    public String token(String table) {
        return group(table).token();
    }

    // ---- Routes

    private Group group(String table) {
        Group group = find(table);
        if (group == null) {
            throw noGroup(table);
        }
        return group;
    }

    private static IllegalArgumentException noGroup(String table) {
        return new IllegalArgumentException("No group configured for table: " + table);
    }

    private Group find(String table) {
        Group group = routes.find(table);
        // A table may be newer than the routes, where these came from a node.
        return group == null && seeds != null && reload(new Deadline(settings.deadlineMs)) == null ? routes.find(table) : group;
    }

    private List<Group> someGroups() {
        List<Group> groups = routes.groups;
        if (groups.isEmpty()) {
            throw new IllegalStateException("No groups configured");
        }
        return groups;
    }

    private Node node(String url) {
        return nodes.computeIfAbsent(url, Node::new);
    }

    /** Asks all nodes that are known until one tells the routes; null when they are fresh, or why nobody told them. */
    private Failed reload(Deadline deadline) {
        synchronized (reloading) {
            boolean first = routes.groups.isEmpty();
            if (!first && System.nanoTime() - reloadedAtNanos < TimeUnit.MILLISECONDS.toNanos(ROUTES_PAUSE_MS)) {
                return null;
            }
            Set<String> urls = new LinkedHashSet<>(seeds);
            for (Group group : routes.groups) {
                for (Node member : group.members()) {
                    urls.add(member.url);
                }
            }
            Failed last = new Failed(settings.deadlineText(), 0, true, null);
            for (String url : urls) {
                try {
                    adopt(askTopology(node(url), deadline), null);
                    return null;
                } catch (Failed failure) {
                    last = failure;
                }
            }
            return last;
        }
    }

    private Topology topology(Node node, Deadline deadline) {
        try {
            return askTopology(node, deadline);
        } catch (Failed failure) {
            return null;
        }
    }

    private Topology askTopology(Node node, Deadline deadline) throws Failed {
        Reply reply = exchange(node, Request.get("/v1/cluster", new Form()), deadline.within(ROUTES_MS));
        if (reply.status != 200) {
            node.succeeded();
            throw new Failed(reply.said(node), reply.status, true, null);
        }
        try {
            Topology topology = new Topology(node.url, Json.parse(reply.text));
            node.succeeded();
            return topology;
        } catch (IllegalArgumentException malformed) {
            node.failed();
            throw new Failed(node.url + "/v1/cluster: " + malformed.getMessage(), reply.status, true, null);
        }
    }

    /**
     * Takes over what a node tells: the leader of a group, and where the routes came from a node, all of them. Answers
     * the group's leader, null for an unknown one.
     */
    private Node adopt(Topology topology, Group group) {
        // A node that has just begun may know no group yet, which is no news of the others.
        if (seeds != null && !topology.groups.isEmpty()) {
            synchronized (reloading) {
                routes = routes.updated(topology, this::node);
                reloadedAtNanos = System.nanoTime();
            }
        }
        Topology.GroupView view = group == null ? null : topology.groupOf(group.name, routes.tablesOf(group));
        return view == null || view.leader == null ? null : node(view.leader);
    }

    private Deadline begin() {
        if (closed) {
            throw new IllegalStateException("this CacheSQLClient is closed");
        }
        return new Deadline(settings.deadlineMs);
    }

    // ---- One request to one node

    /** Sends a request and reads its envelope. What the caller got wrong is thrown at once; `Failed` is the node's. */
    private Envelope call(Group group, Node node, Request request, Deadline deadline) throws Failed {
        request.token = request.consistency != null && request.consistency.equals("session") ? group.token() : null;
        long began = System.nanoTime();
        Reply reply = exchange(node, request, deadline);
        if (reply.status == 421 || reply.status == 503 && reply.leader != null) {
            // It is well, and says that it is not the one to ask; nothing was applied.
            node.succeeded();
            throw new Failed(reply.said(node), reply.status, true, reply.leader);
        }
        if (reply.status == 502 || reply.status == 503 || reply.status == 504) {
            node.failed();
            throw new Failed(reply.said(node), reply.status, false, null);
        }
        if (reply.status != 200) {
            node.succeeded();
            // After a fault of the node's own, what became of a write is not known; a refusal did nothing.
            throw new CacheSQLException(reply.message(), reply.status, reply.status < 500 || request.isRead(), null);
        }
        Envelope envelope;
        try {
            envelope = envelope(reply.text);
        } catch (IllegalArgumentException malformed) {
            node.failed();
            throw new Failed(node.url + ": " + malformed.getMessage(), reply.status, false, null);
        }
        node.succeeded();
        node.took(System.nanoTime() - began);
        group.saw(reply.token);
        return envelope;
    }

    private static Envelope envelope(String text) {
        Object value = Json.parse(text);
        if (!(value instanceof Map) || !(((Map<?, ?>) value).get("code") instanceof Long)) {
            throw new IllegalArgumentException("an answer that is not {\"code\",\"message\",\"data\"}");
        }
        Map<?, ?> object = (Map<?, ?>) value;
        return new Envelope((Long) object.get("code"), String.valueOf(object.get("message")), object.get("data"));
    }

    /**
     * One exchange. The JDK sends a request once more by itself, on a new connection, when one that it kept turns out to
     * be closed; that is wanted (a restarted node is not a failed one), and safe as all repeats are.
     */
    private Reply exchange(Node node, Request request, Deadline deadline) throws Failed {
        int leftMs = (int) Math.min(Integer.MAX_VALUE, deadline.leftMs());
        if (leftMs <= 0) {
            throw new Failed(settings.deadlineText(), 0, true, null);
        }
        HttpURLConnection connection = null;
        Expiry expiry = new Expiry();
        Future<?> watch = null;
        boolean connected = false;
        try {
            connection = open(node, request, leftMs);
            expiry.connection = connection;
            // Read time-outs begin anew with every byte; an answer's head that drips in is ended by this.
            watch = watchdog.schedule(expiry, leftMs, TimeUnit.MILLISECONDS);
            connection.connect();
            connected = true;
            if (expiry.expired) {
                throw new SocketTimeoutException("connecting took too long");
            }
            if (request.body != null) {
                try (OutputStream out = connection.getOutputStream()) {
                    out.write(request.body);
                }
            }
            int status = connection.getResponseCode();
            expiry.headRead = true;
            if (status < 0) {
                throw new IOException("no HTTP answer");
            }
            String text = body(connection, status, deadline);
            return new Reply(status, text, connection.getHeaderField("Content-Type"), connection.getHeaderField("Cachesql-Token"),
                connection.getHeaderField("Cachesql-Leader"));
        } catch (IOException | RuntimeException e) {
            if (connection != null) {
                connection.disconnect();
            }
            if (e instanceof RejectedExecutionException) {
                throw new IllegalStateException("this CacheSQLClient is closed");
            }
            // A connection that is closed under the JDK's feet may show as any exception of its own.
            if (e instanceof RuntimeException && !expiry.expired) {
                throw (RuntimeException) e;
            }
            // Time that was too short from the start is not the node's fault.
            boolean fair = leftMs >= Math.min(settings.readTimeoutMs == 0 ? Integer.MAX_VALUE : settings.readTimeoutMs, settings.deadlineMs / 2);
            if (fair || !(expiry.expired || e instanceof SocketTimeoutException)) {
                node.failed();
            }
            String what = expiry.expired ? "no answer within the deadline" : e.getMessage() == null ? e.getClass().getName() : e.getMessage();
            throw new Failed(node.url + ": " + what, 0, !connected, null);
        } finally {
            if (watch != null) {
                watch.cancel(false);
            }
        }
    }

    private HttpURLConnection open(Node node, Request request, int leftMs) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) URI.create(node.url + request.target).toURL().openConnection();
        // 0 would be for ever.
        connection.setConnectTimeout(settings.connectTimeoutMs == 0 ? leftMs : Math.min(settings.connectTimeoutMs, leftMs));
        connection.setReadTimeout(settings.readTimeoutMs == 0 ? leftMs : Math.min(settings.readTimeoutMs, leftMs));
        connection.setInstanceFollowRedirects(false);
        connection.setUseCaches(false);
        connection.setRequestProperty("Accept", "application/json");
        String[][] headers = {
            {"Authorization", settings.authorization}, {"Cachesql-Consistency", request.consistency}, {"Cachesql-Token", request.token},
            {"Cachesql-Request-Id", request.id}
        };
        for (String[] header : headers) {
            if (header[1] != null) {
                connection.setRequestProperty(header[0], header[1]);
            }
        }
        if (request.body != null) {
            connection.setRequestMethod("POST");
            connection.setDoOutput(true);
            connection.setRequestProperty("Content-Type", "application/x-www-form-urlencoded");
        }
        return connection;
    }

    /** Reads a body to its end, whatever the status: only then does the connection serve the next request. */
    private static String body(HttpURLConnection connection, int status, Deadline deadline) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (InputStream in = status >= 400 ? connection.getErrorStream() : connection.getInputStream()) {
            byte[] buffer = new byte[16 << 10];
            int read;
            while (in != null && (read = in.read(buffer)) >= 0) {
                if (bytes.size() > ANSWER_BYTES - read) {
                    throw new IOException("an answer of more than " + ANSWER_BYTES + " bytes");
                }
                bytes.write(buffer, 0, read);
                if (deadline.passed()) {
                    throw new SocketTimeoutException("the answer was not whole within the deadline");
                }
            }
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes.toByteArray())).toString();
        } catch (CharacterCodingException e) {
            throw new IOException("an answer that is not UTF-8", e);
        }
    }

    private static String shortened(String text) {
        return text.length() <= MESSAGE_CHARS ? text : text.substring(0, MESSAGE_CHARS) + "…";
    }

    // ---- What is thrown

    /** What a node refused, or that no node answered. */
    public static final class CacheSQLException extends RuntimeException {
        private static final long serialVersionUID = 1;
        private final int status;
        private final boolean outcomeKnown;

        CacheSQLException(String message, int status, boolean outcomeKnown, Throwable cause) {
            super(message, cause);
            this.status = status;
            this.outcomeKnown = outcomeKnown;
        }

        /** The HTTP status of the last answer; 0 when there was none. */
        public int status() {
            return status;
        }

        /** False for a write that may have been applied: it was sent, and how it ended was never heard. */
        public boolean outcomeKnown() {
            return outcomeKnown;
        }
    }

    /** A node did not do its part; another may. */
    private static final class Failed extends Exception {
        private static final long serialVersionUID = 1;
        final int status;
        /** True when a write cannot have been applied by this try. */
        final boolean notApplied;
        /** Who leads, if the node said so. */
        final String leader;

        Failed(String message, int status, boolean notApplied, String leader) {
            super(message, null, false, false);
            this.status = status;
            this.notApplied = notApplied;
            this.leader = leader;
        }
    }

    // ---- Time

    private static final class Deadline {
        private final long atNanos;

        Deadline(long ms) {
            atNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        }

        /** Rounded up, so that what is left is not 0 before it is over. */
        long leftMs() {
            return (atNanos - System.nanoTime() + 999_999) / 1_000_000;
        }

        boolean passed() {
            return leftMs() <= 0;
        }

        /** This one, or one that is so near. */
        Deadline within(long ms) {
            return leftMs() <= ms ? this : new Deadline(ms);
        }
    }

    /** Ends an exchange whose deadline came before the head of its answer. */
    private static final class Expiry implements Runnable {
        volatile HttpURLConnection connection;
        /** From then on whoever reads the body looks at the clock; closing would only wait for it. */
        volatile boolean headRead;
        volatile boolean expired;

        @Override
        public void run() {
            if (!headRead) {
                expired = true;
                connection.disconnect();
            }
        }
    }

    /** How long one write waits for a leader. */
    private static final class Election {
        final Deadline deadline;
        /** Begins with the first pause: what a silent leader took before is not its time. */
        private Deadline end;
        private long pauseMs = ELECTION_PAUSE_FIRST_MS;

        Election(Deadline deadline) {
            this.deadline = deadline;
        }

        /** Waits a little, each time longer; false when it has been enough, or the thread is interrupted. */
        boolean pause() {
            end = end == null ? deadline.within(ELECTION_MS) : end;
            long ms = Math.min(pauseMs, end.leftMs());
            pauseMs = Math.min(pauseMs * 2, ELECTION_PAUSE_MOST_MS);
            if (ms <= 0) {
                return false;
            }
            try {
                Thread.sleep(ms);
                return true;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return false;
            }
        }
    }

    // ---- Requests and answers

    private static final class Request {
        final String target;
        /** A form to be posted; null for GET. */
        final byte[] body;
        String id;
        String consistency;
        String token;
        /** Whether it may be sent again after a try whose outcome is not known. */
        boolean repeatable = true;

        private Request(String target, byte[] body) {
            this.target = target;
            this.body = body;
        }

        static Request get(String path, Form form) {
            return new Request(form.length() == 0 ? path : path + "?" + form, null);
        }

        static Request post(String path, Form form) {
            return new Request(path, form.toString().getBytes(StandardCharsets.US_ASCII));
        }

        boolean isRead() {
            return repeatable && id == null;
        }
    }

    private static final class Reply {
        final int status;
        final String text;
        final String token;
        final String leader;
        private final String type;

        Reply(int status, String text, String type, String token, String leader) {
            this.status = status;
            this.text = text;
            this.type = type;
            this.token = token;
            this.leader = leader;
        }

        String said(Node node) {
            return node.url + ": " + status + " " + message();
        }

        /** What an error says: plain text, or the message of a JSON object. */
        String message() {
            if (type != null && type.toLowerCase(Locale.ROOT).startsWith("application/json")) {
                try {
                    Object value = Json.parse(text);
                    Object message = value instanceof Map ? ((Map<?, ?>) value).get("message") : null;
                    if (message instanceof String) {
                        return shortened((String) message);
                    }
                } catch (IllegalArgumentException notJson) {
                    // Its text will do.
                }
            }
            return text.isEmpty() ? "HTTP status " + status : shortened(text);
        }
    }

    private static final class Envelope {
        final long code;
        final String message;
        final Object data;

        Envelope(long code, String message, Object data) {
            this.code = code;
            this.message = message;
            this.data = data;
        }
    }

    /** Names and values, percent-encoded as UTF-8. */
    private static final class Form {
        private final StringBuilder encoded = new StringBuilder();

        Form add(String name, Object value) {
            if (name == null || name.isEmpty()) {
                throw new IllegalArgumentException("a column without a name");
            }
            String text = text(name, value);
            encoded.append(encoded.length() == 0 ? "" : "&").append(encode(name, name)).append('=').append(encode(name, text));
            return this;
        }

        int length() {
            return encoded.length();
        }

        @Override
        public String toString() {
            return encoded.toString();
        }

        /** A value as the text that its column's type reads. What has no such text is refused, never guessed. */
        static String text(String name, Object value) {
            if (value == null) {
                throw new IllegalArgumentException(name + ": null, which this call cannot say");
            }
            if (value instanceof BigDecimal) {
                BigDecimal decimal = (BigDecimal) value;
                if (Math.abs((long) decimal.scale()) > Json.MAX_EXPONENT) {
                    throw new IllegalArgumentException(name + ": a decimal with the exponent " + -(long) decimal.scale());
                }
                return decimal.toPlainString();
            }
            if (value instanceof byte[]) {
                StringBuilder hex = new StringBuilder("\\x");
                for (byte b : (byte[]) value) {
                    hex.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
                }
                return hex.toString();
            }
            if (value instanceof Map || value instanceof Iterable || value instanceof Object[]) {
                return Json.write(value);
            }
            if (value.getClass() == Date.class) {
                return ((Date) value).toInstant().toString();
            }
            boolean plain = value instanceof CharSequence || value instanceof Number || value instanceof Boolean || value instanceof Character
                || value instanceof Enum || value instanceof UUID || value instanceof Date || value instanceof TemporalAccessor;
            if (!plain) {
                throw new IllegalArgumentException(name + ": a " + value.getClass().getName() + " has no text that a column could read");
            }
            return value.toString();
        }

        private static String encode(String name, String text) {
            for (int i = 0; i < text.length(); i++) {
                if (Character.isSurrogate(text.charAt(i))) {
                    // The JDK would send half a pair as a question mark.
                    if (Character.isLowSurrogate(text.charAt(i)) || i + 1 == text.length() || !Character.isLowSurrogate(text.charAt(i + 1))) {
                        throw new IllegalArgumentException(name + ": half a surrogate pair at " + i + ", which is no character");
                    }
                    i++;
                }
            }
            try {
                return URLEncoder.encode(text, "UTF-8");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    // ---- Configuration

    /** What is in `cachesql.properties`, checked. Keys that do not begin with `cachesql.` are other programs'. */
    private static final class Settings {
        final Map<String, GroupSettings> groups = new TreeMap<>();
        int connectTimeoutMs = 5_000;
        int readTimeoutMs = 10_000;
        int deadlineMs = 15_000;
        String policy = "seed";
        String consistency = "session";
        String authorization;

        static final class GroupSettings {
            String master;
            List<String> slaves = new ArrayList<>();
            List<String> tables = new ArrayList<>();
        }

        Settings(Properties properties) {
            for (Object key : properties.keySet()) {
                if (key instanceof String && ((String) key).startsWith("cachesql.") && properties.getProperty((String) key) == null) {
                    throw new IllegalArgumentException(key + ": the value is no String");
                }
            }
            String token = null;
            String user = null;
            String password = null;
            for (String key : new TreeSet<>(properties.stringPropertyNames())) {
                String value = properties.getProperty(key).trim();
                if (key.startsWith("cachesql.group.")) {
                    readGroup(key, value);
                } else if (key.equals("cachesql.token")) {
                    token = value;
                } else if (key.equals("cachesql.user")) {
                    user = value;
                } else if (key.equals("cachesql.password")) {
                    // A password may begin or end with a space.
                    password = properties.getProperty(key);
                } else if (key.startsWith("cachesql.")) {
                    readOption(key, value);
                }
            }
            authorization = authorization(token, user, password);
            checkGroups();
        }

        private void readOption(String key, String value) {
            switch (key) {
                case "cachesql.connectTimeout":
                    connectTimeoutMs = milliseconds(key, value, 0);
                    break;
                case "cachesql.readTimeout":
                    readTimeoutMs = milliseconds(key, value, 0);
                    break;
                case "cachesql.deadline":
                    deadlineMs = milliseconds(key, value, 1);
                    break;
                case "cachesql.policy":
                    policy = one(key, value, "seed|uniform|nearest|leader", "seed, uniform, nearest or leader");
                    break;
                case "cachesql.consistency":
                    consistency = one(key, value, "any|session|linearizable|bounded=[0-9]{1,15}(ms|s)?", "any, session, bounded=250ms or linearizable");
                    break;
                default:
                    throw new IllegalArgumentException(key + ": unknown key");
            }
        }

        private void readGroup(String key, String value) {
            String rest = key.substring("cachesql.group.".length());
            int dot = rest.lastIndexOf('.');
            String what = rest.substring(dot + 1);
            if (dot <= 0 || !Arrays.asList("master", "slaves", "tables").contains(what)) {
                throw new IllegalArgumentException(key + ": unknown key; a group has .master, .slaves and .tables");
            }
            GroupSettings group = groups.computeIfAbsent(rest.substring(0, dot), name -> new GroupSettings());
            switch (what) {
                case "master":
                    group.master = url(key, value);
                    break;
                case "slaves":
                    for (String slave : list(value)) {
                        group.slaves.add(url(key, slave));
                    }
                    break;
                default:
                    group.tables.addAll(list(value));
            }
        }

        private void checkGroups() {
            Map<String, String> owners = new HashMap<>();
            for (Map.Entry<String, GroupSettings> group : groups.entrySet()) {
                if (group.getValue().master == null) {
                    throw new IllegalArgumentException("cachesql.group." + group.getKey() + ".master: missing");
                }
                for (String table : group.getValue().tables) {
                    String other = owners.put(table, group.getKey());
                    if (other != null && !other.equals(group.getKey())) {
                        throw new IllegalArgumentException("table " + table + " is in two groups: cachesql.group." + other + ".tables and cachesql.group."
                            + group.getKey() + ".tables");
                    }
                }
            }
        }

        /** The header that shows who asks. Errors name the keys and never what is secret. */
        private static String authorization(String token, String user, String password) {
            if (token != null && (user != null || password != null)) {
                throw new IllegalArgumentException("cachesql.token and cachesql.user: one of them, not both");
            }
            if (user == null && password != null) {
                throw new IllegalArgumentException("cachesql.user: missing, but there is a cachesql.password");
            }
            if (token != null) {
                if (!token.matches("[!-~]+")) {
                    throw new IllegalArgumentException("cachesql.token: empty, or with characters that a header cannot carry");
                }
                return "Bearer " + token;
            }
            if (user == null) {
                return null;
            }
            if (user.indexOf(':') >= 0) {
                throw new IllegalArgumentException("cachesql.user: a colon, which ends the name");
            }
            byte[] both = (user + ":" + (password == null ? "" : password)).getBytes(StandardCharsets.UTF_8);
            return "Basic " + Base64.getEncoder().encodeToString(both);
        }

        private static int milliseconds(String key, String value, int least) {
            if (!value.matches("[0-9]{1,10}") || Long.parseLong(value) > Integer.MAX_VALUE || Long.parseLong(value) < least) {
                throw new IllegalArgumentException(key + ": \"" + value + "\" is no number of milliseconds");
            }
            return Integer.parseInt(value);
        }

        private static String one(String key, String value, String pattern, String words) {
            if (!value.matches(pattern)) {
                throw new IllegalArgumentException(key + ": \"" + value + "\" is not " + words);
            }
            return value;
        }

        static List<String> list(String value) {
            List<String> items = new ArrayList<>();
            for (String item : value.split(",")) {
                if (!item.trim().isEmpty()) {
                    items.add(item.trim());
                }
            }
            return items;
        }

        /** A node's address in one spelling, without a slash at its end. */
        static String url(String key, String value) {
            try {
                URI uri = new URI(value);
                String scheme = uri.getScheme() == null ? "" : uri.getScheme().toLowerCase(Locale.ROOT);
                if (!scheme.equals("http") && !scheme.equals("https")) {
                    throw new IllegalArgumentException("it does not begin with http:// or https://");
                }
                // URI knows no host names with "_", which some networks give out; URL does.
                URL url = uri.toURL();
                if (url.getHost().isEmpty() || url.getPort() == 0 || url.getPort() > 65_535) {
                    throw new IllegalArgumentException("no host, or no such port");
                }
                if (url.getUserInfo() != null || url.getQuery() != null || url.getRef() != null) {
                    throw new IllegalArgumentException("an address is scheme, host, port and perhaps a path");
                }
                String port = url.getPort() < 0 ? "" : ":" + url.getPort();
                return scheme + "://" + url.getHost().toLowerCase(Locale.ROOT) + port + url.getPath().replaceAll("/+$", "");
            } catch (Exception e) {
                throw new IllegalArgumentException(key + ": \"" + value + "\" is no URL of a node: " + e.getMessage(), e);
            }
        }

        String deadlineText() {
            return "the deadline of " + deadlineMs + " ms passed";
        }
    }

    // ---- Routes

    /** One node, with what this client has seen of it. */
    private static final class Node {
        final String url;
        private int failures;
        /** Probes that failed since it is left out; each doubles the time to the next. */
        private int probesFailed;
        private boolean probing;
        private long leftOutUntilNanos;
        /** Smoothed; 0 before the first answer. */
        private volatile double tookNanos;

        Node(String url) {
            this.url = url;
        }

        /** Whether it is to be asked. Where its time is over, this grants one caller the probe, and others only after another such time. */
        synchronized boolean admits() {
            if (failures < BREAKER_FAILURES) {
                return true;
            }
            if (System.nanoTime() - leftOutUntilNanos < 0) {
                return false;
            }
            probing = true;
            leaveOut();
            return true;
        }

        synchronized void succeeded() {
            failures = 0;
            probesFailed = 0;
            probing = false;
        }

        /** Once it is left out, only a probe's failure counts: many requests that fail at one moment are one failure. */
        synchronized void failed() {
            if (failures < BREAKER_FAILURES) {
                failures++;
            } else if (probing) {
                probing = false;
                probesFailed = Math.min(probesFailed + 1, 16);
            } else {
                return;
            }
            if (failures == BREAKER_FAILURES) {
                leaveOut();
            }
        }

        private void leaveOut() {
            long ms = Math.min(BREAKER_FIRST_MS << probesFailed, BREAKER_MOST_MS);
            // Clients that saw it fail together do not come back together.
            ms += ThreadLocalRandom.current().nextLong(ms / 4 + 1);
            leftOutUntilNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        }

        void took(long nanos) {
            // Updates that meet may lose one sample, which no choice depends on.
            tookNanos = tookNanos == 0 ? nanos : tookNanos * 0.8 + nanos * 0.2;
        }
    }

    /** The nodes that hold a set of tables, and how far this client has seen them. */
    private static final class Group {
        private static final Pattern TOKEN = Pattern.compile("[ -~]+:[0-9]{1,20}");

        final String name;
        volatile Node leader;
        private volatile List<Node> members;
        private String tokenGroup;
        private long tokenIndex;

        Group(String name, Node leader, List<Node> members) {
            this.name = name;
            this.leader = leader;
            this.members = distinct(members);
        }

        private static List<Node> distinct(List<Node> nodes) {
            return Collections.unmodifiableList(new ArrayList<>(new LinkedHashSet<>(nodes)));
        }

        List<Node> members() {
            return members;
        }

        synchronized void leads(Node node) {
            leader = node;
            if (!members.contains(node)) {
                List<Node> more = new ArrayList<>(members);
                more.add(node);
                members = distinct(more);
            }
        }

        synchronized void update(Node newLeader, List<Node> newMembers) {
            members = distinct(newMembers);
            // While there is none, the last one is the best guess.
            leader = newLeader == null ? leader : newLeader;
        }

        /** Members to ask about the group: not those that failed, and those that are left out only if there is nobody else. */
        List<Node> askable(Set<Node> failed) {
            List<Node> rest = new ArrayList<>(members);
            rest.removeAll(failed);
            List<Node> admitted = new ArrayList<>();
            for (Node node : rest) {
                if (node.admits()) {
                    admitted.add(node);
                }
            }
            return admitted.isEmpty() ? rest : admitted;
        }

        /** All members in the order in which a read asks them. */
        List<Node> order(String policy) {
            ThreadLocalRandom random = ThreadLocalRandom.current();
            Node first = leader;
            List<Node> rest = new ArrayList<>(members);
            Collections.shuffle(rest, random);
            if (policy.equals("nearest")) {
                Collections.sort(rest, Comparator.comparingDouble(node -> node.tookNanos));
                if (random.nextInt(NEAREST_EXPLORES) == 0) {
                    Collections.swap(rest, 0, random.nextInt(rest.size()));
                }
            } else if (first != null && rest.contains(first) && !policy.equals("uniform")) {
                // Half the time the leader, else a follower, each as often as another: the rest is shuffled.
                boolean leads = policy.equals("leader") || random.nextBoolean();
                Node follower = null;
                for (Node node : rest) {
                    follower = follower == null && node != first ? node : follower;
                }
                Node chosen = leads || follower == null ? first : follower;
                rest.remove(chosen);
                rest.add(0, chosen);
            }
            return rest;
        }

        /** Keeps what an answer says it saw, if that is further. */
        synchronized void saw(String token) {
            int colon = token == null ? -1 : token.lastIndexOf(':');
            // A name that no request header can carry could not be sent back.
            if (colon <= 0 || !TOKEN.matcher(token).matches()) {
                return;
            }
            long index;
            try {
                index = Long.parseUnsignedLong(token.substring(colon + 1));
            } catch (NumberFormatException tooLarge) {
                return;
            }
            String of = token.substring(0, colon);
            // Positions in two logs do not compare: a group under another name is another log.
            if (!of.equals(tokenGroup) || Long.compareUnsigned(index, tokenIndex) > 0) {
                tokenGroup = of;
                tokenIndex = index;
            }
        }

        synchronized String token() {
            return tokenGroup == null ? null : tokenGroup + ":" + Long.toUnsignedString(tokenIndex);
        }

        synchronized void forgetToken() {
            tokenGroup = null;
        }
    }

    /** Table → group. A table's name matches exactly first, then without regard to case, as nodes match it. */
    private static final class Routes {
        final List<Group> groups;
        private final Map<String, Group> byTable;
        private final Map<String, Set<Group>> byFoldedTable = new HashMap<>();

        Routes(List<Group> groups, Map<String, Group> byTable) {
            this.groups = groups;
            this.byTable = byTable;
            for (Map.Entry<String, Group> entry : byTable.entrySet()) {
                byFoldedTable.computeIfAbsent(entry.getKey().toLowerCase(Locale.ROOT), name -> new LinkedHashSet<>()).add(entry.getValue());
            }
        }

        Group find(String table) {
            if (table == null) {
                return null;
            }
            Group exact = byTable.get(table);
            if (exact != null) {
                return exact;
            }
            Set<Group> folded = byFoldedTable.getOrDefault(table.toLowerCase(Locale.ROOT), Collections.<Group>emptySet());
            if (folded.size() > 1) {
                List<String> names = new ArrayList<>();
                for (Group group : folded) {
                    names.add(group.name);
                }
                throw new IllegalArgumentException("table " + table + " is, in other spellings, in groups " + String.join(" and ", names));
            }
            return folded.isEmpty() ? null : folded.iterator().next();
        }

        Set<String> tablesOf(Group group) {
            Set<String> tables = new HashSet<>();
            for (Map.Entry<String, Group> entry : byTable.entrySet()) {
                if (entry.getValue() == group) {
                    tables.add(entry.getKey());
                }
            }
            return tables;
        }

        /** The routes that a node tells; groups that stay keep what was seen of them. */
        Routes updated(Topology topology, Function<String, Node> node) {
            Map<String, Group> known = new LinkedHashMap<>();
            for (Group group : groups) {
                known.put(group.name, group);
            }
            List<Group> updated = new ArrayList<>();
            Map<String, Group> tables = new LinkedHashMap<>();
            for (Topology.GroupView view : topology.groups.values()) {
                List<Node> members = new ArrayList<>();
                for (String url : view.members) {
                    members.add(node.apply(url));
                }
                if (members.isEmpty()) {
                    continue;
                }
                Node leader = view.leader == null ? null : node.apply(view.leader);
                Group group = known.get(view.name);
                if (group == null) {
                    group = new Group(view.name, leader, members);
                } else {
                    group.update(leader, members);
                }
                updated.add(group);
                for (String table : view.tables) {
                    tables.put(table, group);
                }
            }
            // A node that is still loading does not tell all tables of a group; of one that is gone, its nodes will say so.
            for (Map.Entry<String, Group> entry : byTable.entrySet()) {
                if (updated.contains(entry.getValue())) {
                    tables.putIfAbsent(entry.getKey(), entry.getValue());
                }
            }
            return new Routes(updated, tables);
        }
    }

    /** What `GET /v1/cluster` tells. Members that it does not understand are skipped, so that nodes may say more one day. */
    private static final class Topology {
        final Map<String, GroupView> groups = new LinkedHashMap<>();

        static final class GroupView {
            final String name;
            String leader;
            final List<String> members = new ArrayList<>();
            final List<String> tables = new ArrayList<>();

            GroupView(String name) {
                this.name = name;
            }
        }

        Topology(String askedUrl, Object json) {
            Map<?, ?> cluster = json instanceof Map ? (Map<?, ?>) json : Collections.emptyMap();
            if (!(cluster.get("groups") instanceof List)) {
                throw new IllegalArgumentException("no list of groups");
            }
            List<Map<?, ?>> listed = objects(cluster.get("nodes"));
            Map<Object, String> urls = new HashMap<>();
            for (Map<?, ?> node : listed) {
                // A node that is alone is the one that was asked, and is reached as it was reached, whatever it calls itself.
                String url = listed.size() == 1 ? askedUrl : url(askedUrl, node.get("http"));
                if (url != null) {
                    urls.put(node.get("name"), url);
                }
            }
            for (Map<?, ?> group : objects(cluster.get("groups"))) {
                GroupView view = new GroupView(String.valueOf(group.get("name")));
                view.leader = urls.get(group.get("leader"));
                Object members = group.get("members");
                for (Object member : members instanceof List ? (List<?>) members : Collections.emptyList()) {
                    Object name = member instanceof Map ? ((Map<?, ?>) member).get("node") : member;
                    if (urls.containsKey(name)) {
                        view.members.add(urls.get(name));
                    }
                }
                Object tables = group.get("tables");
                for (Object table : tables instanceof List ? (List<?>) tables : Collections.emptyList()) {
                    if (table instanceof String) {
                        view.tables.add((String) table);
                    }
                }
                groups.put(view.name, view);
            }
            for (Map<?, ?> table : objects(cluster.get("tables"))) {
                GroupView view = groups.get(String.valueOf(table.get("group")));
                if (view != null && table.get("name") instanceof String && !view.tables.contains(table.get("name"))) {
                    view.tables.add((String) table.get("name"));
                }
            }
        }

        private static List<Map<?, ?>> objects(Object list) {
            List<Map<?, ?>> objects = new ArrayList<>();
            for (Object item : list instanceof List ? (List<?>) list : Collections.emptyList()) {
                if (item instanceof Map) {
                    objects.add((Map<?, ?>) item);
                }
            }
            return objects;
        }

        /** A node's own word for its door: a URL, or host:port as it is bound. */
        private static String url(String askedUrl, Object http) {
            if (!(http instanceof String)) {
                return null;
            }
            try {
                String text = (String) http;
                URI asked = new URI(askedUrl);
                String url = Settings.url("http", text.contains("://") ? text : asked.getScheme() + "://" + text);
                // Bound to every address of its machine: it says no name, so the one that answered must do.
                return url.replaceFirst("://(0\\.0\\.0\\.0|\\[::\\]|\\[0:0:0:0:0:0:0:0\\])(?=[:/]|$)", "://" + asked.toURL().getHost());
            } catch (Exception malformed) {
                return null;
            }
        }

        /** A group by its name; else, as files may call it otherwise, the only one, or the one that has one of its tables. */
        GroupView groupOf(String name, Set<String> tables) {
            GroupView named = groups.get(name);
            if (named != null) {
                return named;
            }
            if (groups.size() == 1) {
                return groups.values().iterator().next();
            }
            for (GroupView view : groups.values()) {
                if (!Collections.disjoint(view.tables, tables)) {
                    return view;
                }
            }
            return null;
        }
    }

    // ---- Which tables a statement reads

    /**
     * Finds the tables that a statement names after FROM and JOIN: past comments, texts, quoted names, subqueries, common
     * table expressions and functions whose arguments have a FROM. It does not judge the statement; a node does.
     */
    static final class SqlTables {
        private static final Set<String> END_OF_FROM = new HashSet<>(Arrays.asList("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "FETCH",
            "WINDOW", "UNION", "INTERSECT", "EXCEPT", "FOR", "QUALIFY", "SELECT", "VALUES", "DELETE"));

        /** What is between two parentheses. */
        private static final class Level {
            /** SELECT was seen here, so that FROM begins its tables and is no function's word. */
            boolean query;
            boolean inFrom;
            boolean expectsTable;
            boolean inWith;
            /** Names of common table expressions, folded. */
            final Set<String> expressions = new HashSet<>();
            /** The expression that ends with this level; visible after it. */
            String defines;
        }

        private final String sql;
        private int at;
        private final Set<String> tables = new LinkedHashSet<>();
        private final Deque<Level> levels = new ArrayDeque<>();
        /** The name that stands before `AS (` in a WITH. */
        private String defined;
        private boolean recursive;
        private String lastWord = "";

        private SqlTables(String sql) {
            this.sql = sql;
        }

        static Set<String> of(String sql) {
            SqlTables reader = new SqlTables(sql);
            reader.run();
            return reader.tables;
        }

        private void run() {
            levels.push(new Level());
            while (skipSpace()) {
                char c = sql.charAt(at);
                Level level = levels.peek();
                if (c == '(') {
                    at++;
                    open(level);
                } else if (c == ')') {
                    at++;
                    close();
                } else if (c == ',') {
                    at++;
                    level.expectsTable = level.inFrom;
                    lastWord = ",";
                } else if (c == '\'') {
                    skipText(lastWord.equalsIgnoreCase("E") && at > 0 && Character.isLetter(sql.charAt(at - 1)));
                } else if (c == '$' && skipDollarText()) {
                    lastWord = "";
                } else if (c == '"' || c == '`' || Character.isJavaIdentifierStart(c)) {
                    name(level);
                } else if (Character.isDigit(c)) {
                    while (at < sql.length() && (Character.isLetterOrDigit(sql.charAt(at)) || sql.charAt(at) == '.')) {
                        at++;
                    }
                    lastWord = "";
                } else {
                    at++;
                    lastWord = "";
                }
            }
        }

        private void open(Level outer) {
            Level inner = new Level();
            // In the place of a table: a subquery, or joins in parentheses.
            inner.inFrom = outer.expectsTable;
            inner.expectsTable = outer.expectsTable;
            outer.expectsTable = false;
            if (outer.inWith && defined != null && (lastWord.equals("AS") || lastWord.equals("MATERIALIZED"))) {
                inner.defines = defined;
                if (recursive) {
                    outer.expressions.add(defined);
                }
                defined = null;
            }
            levels.push(inner);
            lastWord = "(";
        }

        private void close() {
            if (levels.size() > 1) {
                String defines = levels.pop().defines;
                if (defines != null) {
                    levels.peek().expressions.add(defines);
                }
            }
            lastWord = ")";
        }

        private void name(Level level) {
            boolean quoted = sql.charAt(at) == '"' || sql.charAt(at) == '`';
            String name = identifier();
            String word = quoted ? "" : name.toUpperCase(Locale.ROOT);
            if (level.expectsTable && !word.equals("ONLY") && !word.equals("LATERAL") && !END_OF_FROM.contains(word) && !word.equals("WITH")) {
                level.expectsTable = false;
                table(level, name);
            } else if (word.equals("WITH") && (level.expectsTable || !level.inFrom)) {
                level.inFrom = false;
                level.expectsTable = false;
                level.inWith = true;
                recursive = false;
            } else if (word.equals("RECURSIVE") && lastWord.equals("WITH")) {
                recursive = true;
                // The next name is as one that follows WITH.
                word = "WITH";
            } else if (level.inWith && (lastWord.equals("WITH") || lastWord.equals(","))) {
                defined = fold(name);
            } else if (word.equals("FROM") && level.query && !lastWord.equals("DISTINCT")) {
                level.inFrom = true;
                level.expectsTable = true;
            } else if (word.equals("JOIN") && level.inFrom) {
                level.expectsTable = true;
            } else if (END_OF_FROM.contains(word)) {
                level.inFrom = false;
                level.expectsTable = false;
                level.query |= word.equals("SELECT") || word.equals("DELETE");
                level.inWith &= !word.equals("SELECT");
            }
            lastWord = word;
        }

        /** A name in the place of a table, perhaps with a schema before it. */
        private void table(Level level, String first) {
            String name = first;
            boolean qualified = false;
            while (skipSpace() && sql.charAt(at) == '.') {
                at++;
                if (!skipSpace() || !(sql.charAt(at) == '"' || sql.charAt(at) == '`' || Character.isJavaIdentifierStart(sql.charAt(at)))) {
                    return;
                }
                name = identifier();
                qualified = true;
            }
            boolean function = at < sql.length() && sql.charAt(at) == '(';
            if (function) {
                return;
            }
            for (Level outer : levels) {
                if (!qualified && outer.expressions.contains(fold(name))) {
                    return;
                }
            }
            tables.add(name);
        }

        private static String fold(String name) {
            return name.toLowerCase(Locale.ROOT);
        }

        /** Past spaces and comments; false at the end. */
        private boolean skipSpace() {
            while (at < sql.length()) {
                if (sql.startsWith("--", at)) {
                    int end = sql.indexOf('\n', at);
                    at = end < 0 ? sql.length() : end;
                } else if (sql.startsWith("/*", at)) {
                    skipComment();
                } else if (Character.isWhitespace(sql.charAt(at))) {
                    at++;
                } else {
                    return true;
                }
            }
            return false;
        }

        /** Comments nest. */
        private void skipComment() {
            int depth = 0;
            do {
                boolean opens = sql.startsWith("/*", at);
                boolean closes = sql.startsWith("*/", at);
                depth += opens ? 1 : closes ? -1 : 0;
                at += opens || closes ? 2 : 1;
            } while (depth > 0 && at < sql.length());
            at = Math.min(at, sql.length());
        }

        /** A text, in which a doubled quotation mark stands for one, and in `E'…'` a backslash goes with what follows it. */
        private void skipText(boolean escapes) {
            at++;
            while (at < sql.length()) {
                boolean doubled = sql.startsWith("''", at);
                if (sql.charAt(at) == '\'' && !doubled) {
                    break;
                }
                at += doubled || escapes && sql.charAt(at) == '\\' ? 2 : 1;
            }
            at = Math.min(at + 1, sql.length());
            lastWord = "";
        }

        /** `$$…$$` or `$tag$…$tag$`; false for a parameter as `$1`. */
        private boolean skipDollarText() {
            int end = at + 1;
            while (end < sql.length() && Character.isLetterOrDigit(sql.charAt(end)) || end < sql.length() && sql.charAt(end) == '_') {
                end++;
            }
            if (end >= sql.length() || sql.charAt(end) != '$' || end > at + 1 && Character.isDigit(sql.charAt(at + 1))) {
                return false;
            }
            String tag = sql.substring(at, end + 1);
            int close = sql.indexOf(tag, end + 1);
            at = close < 0 ? sql.length() : close + tag.length();
            return true;
        }

        private String identifier() {
            char quote = sql.charAt(at);
            int from = at;
            if (quote != '"' && quote != '`') {
                while (at < sql.length() && Character.isJavaIdentifierPart(sql.charAt(at))) {
                    at++;
                }
                return sql.substring(from, at);
            }
            StringBuilder name = new StringBuilder();
            at++;
            while (at < sql.length()) {
                char c = sql.charAt(at++);
                if (c == quote) {
                    if (at == sql.length() || sql.charAt(at) != quote) {
                        break;
                    }
                    at++;
                }
                name.append(c);
            }
            return name.toString();
        }
    }

    // ---- JSON

    /**
     * RFC 8259, read and written. Objects are LinkedHashMap (of two equal names the last wins), arrays ArrayList; numbers
     * without fraction and exponent are Long or BigInteger, others BigDecimal, so that nothing is rounded. Time and memory
     * grow with the length of a text, whatever is in it.
     */
    static final class Json {
        /** Objects and arrays in one another. */
        static final int MAX_DEPTH = 200;
        /** A number's exponent, written or by its digits after the point: arithmetic on larger ones does not end. */
        static final int MAX_EXPONENT = 9_999;
        /** Characters of one number: turning digits into a number takes time by their square. */
        static final int MAX_NUMBER_CHARS = 1_000;

        private static final Object OPENED = new Object();

        private final String text;
        private int at;
        private final Deque<Object> open = new ArrayDeque<>();
        /** The name that each open container has for the member to come; an empty one for arrays. */
        private final Deque<String> names = new ArrayDeque<>();

        private Json(String text) {
            this.text = text;
        }

        /** Reads a whole text; what is no JSON is an IllegalArgumentException that says where. */
        static Object parse(String text) {
            return new Json(text).document();
        }

        private Object document() {
            // No recursion: the depth is bounded here and not by the thread's stack.
            while (true) {
                Object value = begin();
                if (value == OPENED) {
                    continue;
                }
                while (true) {
                    if (open.isEmpty()) {
                        skipSpace();
                        if (at < text.length()) {
                            throw wrong("more behind the end");
                        }
                        return value;
                    }
                    put(value);
                    skipSpace();
                    char c = next();
                    boolean inObject = open.peek() instanceof Map;
                    if (c == ',') {
                        if (inObject) {
                            readName();
                        }
                        break;
                    }
                    if (c != (inObject ? '}' : ']')) {
                        at--;
                        throw wrong(inObject ? "neither , nor }" : "neither , nor ]");
                    }
                    names.pop();
                    value = open.pop();
                }
            }
        }

        @SuppressWarnings("unchecked")
        private void put(Object value) {
            Object container = open.peek();
            if (container instanceof Map) {
                ((Map<String, Object>) container).put(names.peek(), value);
            } else {
                ((List<Object>) container).add(value);
            }
        }

        /** A value that is whole, or OPENED for a container with something in it. */
        private Object begin() {
            skipSpace();
            char c = next();
            switch (c) {
                case '{':
                case '[':
                    return open(c == '{');
                case '"':
                    return string();
                case 't':
                    return word("true", Boolean.TRUE);
                case 'f':
                    return word("false", Boolean.FALSE);
                case 'n':
                    return word("null", null);
                default:
                    at--;
                    if (c == '-' || c >= '0' && c <= '9') {
                        return number();
                    }
                    throw wrong("no value");
            }
        }

        private Object open(boolean isObject) {
            if (open.size() == MAX_DEPTH) {
                throw wrong("nested deeper than " + MAX_DEPTH);
            }
            Object container = isObject ? new LinkedHashMap<String, Object>() : new ArrayList<Object>();
            skipSpace();
            if (at < text.length() && text.charAt(at) == (isObject ? '}' : ']')) {
                at++;
                return container;
            }
            open.push(container);
            names.push("");
            if (isObject) {
                readName();
            }
            return OPENED;
        }

        private void readName() {
            skipSpace();
            if (next() != '"') {
                at--;
                throw wrong("no name");
            }
            names.pop();
            names.push(string());
            skipSpace();
            if (next() != ':') {
                at--;
                throw wrong("no : behind a name");
            }
        }

        private Object word(String word, Object value) {
            if (!text.startsWith(word, at - 1)) {
                at--;
                throw wrong("no value");
            }
            at += word.length() - 1;
            return value;
        }

        /** The rest of a string whose quotation mark is read. */
        private String string() {
            StringBuilder unescaped = null;
            int from = at;
            while (true) {
                char c = next();
                if (c == '"') {
                    String rest = text.substring(from, at - 1);
                    return unescaped == null ? rest : unescaped.append(rest).toString();
                }
                if (c < ' ') {
                    at--;
                    throw wrong("a control character in a string");
                }
                if (c == '\\') {
                    unescaped = unescaped == null ? new StringBuilder() : unescaped;
                    unescaped.append(text, from, at - 1).append(escaped());
                    from = at;
                }
            }
        }

        private char escaped() {
            char c = next();
            int simple = "\"\\/bfnrt".indexOf(c);
            if (simple >= 0) {
                return "\"\\/\b\f\n\r\t".charAt(simple);
            }
            if (c != 'u') {
                at--;
                throw wrong("an unknown escape");
            }
            // Pairs of surrogates are two of these, which is what Java's strings hold.
            int code = 0;
            for (int i = 0; i < 4; i++) {
                char digit = next();
                // Character.digit would take digits of other scripts.
                int value = digit < 128 ? Character.digit(digit, 16) : -1;
                if (value < 0) {
                    at--;
                    throw wrong("no hex digit");
                }
                code = code << 4 | value;
            }
            return (char) code;
        }

        private Object number() {
            int from = at;
            boolean whole = true;
            at += text.charAt(at) == '-' ? 1 : 0;
            if (at < text.length() && text.charAt(at) == '0') {
                at++;
            } else {
                digits();
            }
            if (at < text.length() && text.charAt(at) == '.') {
                at++;
                digits();
                whole = false;
            }
            if (at < text.length() && (text.charAt(at) == 'e' || text.charAt(at) == 'E')) {
                at++;
                at += at < text.length() && (text.charAt(at) == '+' || text.charAt(at) == '-') ? 1 : 0;
                int first = at;
                digits();
                whole = false;
                checkExponent(first);
            }
            if (at - from > MAX_NUMBER_CHARS) {
                throw wrong("a number of more than " + MAX_NUMBER_CHARS + " characters");
            }
            String number = text.substring(from, at);
            if (!whole) {
                return new BigDecimal(number);
            }
            if (number.length() <= 18) {
                return Long.valueOf(number);
            }
            BigInteger big = new BigInteger(number);
            return big.bitLength() < 64 ? (Object) big.longValue() : big;
        }

        private void digits() {
            int from = at;
            while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
                at++;
            }
            if (at == from) {
                throw wrong("no digit");
            }
        }

        private void checkExponent(int first) {
            int from = first;
            while (from < at - 1 && text.charAt(from) == '0') {
                from++;
            }
            if (at - from > 9 || Integer.parseInt(text.substring(from, at)) > MAX_EXPONENT) {
                throw wrong("an exponent beyond " + MAX_EXPONENT);
            }
        }

        private void skipSpace() {
            while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
        }

        private char next() {
            if (at == text.length()) {
                throw wrong("it ends too early");
            }
            return text.charAt(at++);
        }

        private IllegalArgumentException wrong(String what) {
            return new IllegalArgumentException("not JSON at character " + at + ": " + what);
        }

        /** Writes maps, iterables, arrays of objects, texts, numbers, truth values and null. */
        static String write(Object value) {
            StringBuilder out = new StringBuilder();
            write(out, value, 0);
            return out.toString();
        }

        private static void write(StringBuilder out, Object value, int depth) {
            if (value instanceof Map || value instanceof Iterable || value instanceof Object[]) {
                // It ends what holds itself, too.
                if (depth == MAX_DEPTH) {
                    throw new IllegalArgumentException("nested deeper than " + MAX_DEPTH);
                }
                writeContainer(out, value, depth);
            } else if (value == null || value instanceof Boolean) {
                out.append(value);
            } else if (value instanceof Float || value instanceof Double) {
                double number = ((Number) value).doubleValue();
                if (Double.isNaN(number) || Double.isInfinite(number)) {
                    throw new IllegalArgumentException("JSON has no word for " + value);
                }
                out.append(value);
            } else if (value instanceof Number) {
                out.append(value);
            } else if (value instanceof CharSequence || value instanceof Character || value instanceof Enum || value instanceof UUID) {
                writeString(out, value.toString());
            } else {
                throw new IllegalArgumentException("JSON has no word for a " + value.getClass().getName());
            }
        }

        private static void writeContainer(StringBuilder out, Object value, int depth) {
            String comma = "";
            if (value instanceof Map) {
                out.append('{');
                for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                    out.append(comma);
                    writeString(out, String.valueOf(entry.getKey()));
                    out.append(':');
                    write(out, entry.getValue(), depth + 1);
                    comma = ",";
                }
                out.append('}');
                return;
            }
            out.append('[');
            for (Object item : value instanceof Iterable ? (Iterable<?>) value : Arrays.asList((Object[]) value)) {
                out.append(comma);
                write(out, item, depth + 1);
                comma = ",";
            }
            out.append(']');
        }

        private static void writeString(StringBuilder out, String text) {
            out.append('"');
            for (int i = 0; i < text.length(); i++) {
                char c = text.charAt(i);
                boolean pair = Character.isHighSurrogate(c) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1));
                if (c == '"' || c == '\\') {
                    out.append('\\').append(c);
                } else if (pair) {
                    out.append(c).append(text.charAt(++i));
                } else if (c < ' ' || Character.isSurrogate(c)) {
                    // Half a pair has no bytes in UTF-8.
                    out.append(String.format("\\u%04x", (int) c));
                } else {
                    out.append(c);
                }
            }
            out.append('"');
        }
    }
}
