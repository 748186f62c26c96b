"""DuckDB as a peer: one JSON request a line in, one JSON answer a line out."""

import json
import sys
import time

import duckdb

connection = duckdb.connect()
for line in sys.stdin:
    request = json.loads(line)
    if "tables" in request:
        for table in request["tables"]:
            connection.execute(table["create"])
            connection.execute(f"COPY {table['name']} FROM '{table['file']}' (FORMAT csv, HEADER)")
        answer = {"version": duckdb.__version__}
    else:
        started = time.perf_counter()
        rows = connection.execute(request["sql"]).fetchall()
        answer = {"ms": (time.perf_counter() - started) * 1e3, "rows": len(rows)}
    print(json.dumps(answer), flush=True)
