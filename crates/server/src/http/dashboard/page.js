"use strict";

const byId = (id) => document.getElementById(id);
const count = (n) => Number(n).toLocaleString();

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${n.toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`;
}

// Everything is set as text: names of tables and columns may hold anything.
function cell(row, text, className) {
  const td = document.createElement("td");
  td.textContent = text;
  if (className) td.className = className;
  row.append(td);
}

function showTables(tables) {
  const rows = tables.map((table) => {
    const row = document.createElement("tr");
    cell(row, table.name);
    cell(row, count(table.rows), "number");
    cell(row, bytes(table.bytes), "number");
    cell(row, table.key.join(", ") || "–");
    cell(row, table.indexes.map((i) => i.columns.join("+") + (i.unique ? " (unique)" : "")).join(", ") || "–");
    cell(row, table.columns.map((c) => `${c.name} ${c.type}`).join(", "), "long");
    return row;
  });
  byId("tables").replaceChildren(...rows);
  byId("no-tables").hidden = rows.length > 0;
}

function showLoads(ready) {
  const open = ready.tables.filter((t) => t.phase !== "loaded");
  const items = open.map((t) => {
    const item = document.createElement("li");
    const of = t.estimated_rows === null ? "" : ` of about ${count(t.estimated_rows)}`;
    const arrived = t.arrived_rows === null ? "" : `, ${count(t.arrived_rows)}${of} rows have arrived`;
    const served = `, ${count(t.rows)} rows are served`;
    item.textContent = `${t.table}: ${t.phase}${arrived}${served}${t.error ? ` – ${t.error}` : ""}`;
    if (t.phase === "failed") item.className = "bad";
    return item;
  });
  byId("loads").replaceChildren(...items);
  byId("loads-section").hidden = items.length === 0;
  const state = byId("state");
  state.textContent = ready.stopping ? "stopping" : ready.ready ? "ready" : "loading";
  state.className = ready.ready ? "good" : "bad";
}

function showMemory(memory) {
  byId("memory").value = memory.max > 0 ? memory.used / memory.max : 0;
  byId("memory-text").textContent = `${bytes(memory.used)} of ${bytes(memory.max)}`;
}

async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store" });
  return answer.json();
}

async function refresh() {
  try {
    const [tables, ready, metrics] = await Promise.all([get("/v1/tables"), get("/readyz"), get("/cache/metrics")]);
    showTables(tables);
    showLoads(ready);
    showMemory(metrics.data.memory);
  } catch (error) {
    byId("state").textContent = "not reachable";
    byId("state").className = "bad";
  }
  setTimeout(refresh, document.hidden ? 10000 : 2000);
}

refresh();
