//! PostgreSQL's plan of a query, as EXPLAIN (FORMAT JSON) tells it: how much will come, and whether it is one table's rows.

use serde_json::Value as Json;

use crate::source::Estimate;

/// The plan of one query.
pub(crate) struct Plan(Json);

/// Nodes that hand on each row of one table at most once. A key of the table is a key of their output. What joins, appends,
/// groups or calls set-returning functions is not among them.
const ROW_PRESERVING: [&str; 15] = [
    "Seq Scan",
    "Index Scan",
    "Index Only Scan",
    "Bitmap Heap Scan",
    "Tid Scan",
    "Tid Range Scan",
    "Sort",
    "Incremental Sort",
    "Limit",
    "Gather",
    "Gather Merge",
    "Materialize",
    "Subquery Scan",
    "LockRows",
    "Result",
];

/// Parts of a bitmap scan: they find rows, and return none.
const BITMAP_PARTS: [&str; 3] = ["Bitmap Index Scan", "BitmapAnd", "BitmapOr"];

impl Plan {
    /// Reads what EXPLAIN answered.
    pub(crate) fn parse(json: &str) -> Option<Plan> {
        let explained: Json = serde_json::from_str(json).ok()?;
        explained.get(0)?.get("Plan").cloned().map(Plan)
    }

    /// What the planner expects.
    pub(crate) fn estimate(&self) -> Estimate {
        let number = |name: &str| self.0.get(name).and_then(Json::as_f64).unwrap_or_default();
        let rows = number("Plan Rows").max(0.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = |value: f64| value as u64;
        Estimate { rows: whole(rows), bytes: whole(rows * number("Plan Width").max(0.0)) }
    }

    /// Whether the output is rows of one table, each at most once.
    pub(crate) fn is_single_scan(&self) -> bool {
        scans(&self.0) == Some(1)
    }
}

/// Number of table scans beneath a node; `None` when some node may multiply or mix rows.
fn scans(node: &Json) -> Option<usize> {
    let text = |name: &str| node.get(name).and_then(Json::as_str).unwrap_or_default();
    let kind = text("Node Type");
    if BITMAP_PARTS.contains(&kind) {
        return Some(0);
    }
    if !ROW_PRESERVING.contains(&kind) {
        return None;
    }
    let mut total = usize::from(node.get("Relation Name").is_some());
    let children = node.get("Plans").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    for child in children {
        // Subqueries inside expressions return values, not rows.
        let relationship = child.get("Parent Relationship").and_then(Json::as_str).unwrap_or_default();
        if !matches!(relationship, "InitPlan" | "SubPlan") {
            total += scans(child)?;
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(node: &str) -> Plan {
        Plan::parse(&format!("[{{\"Plan\": {node}}}]")).expect("a plan")
    }

    #[test]
    fn one_scan_is_told_from_joins() {
        let scan = r#"{"Node Type": "Seq Scan", "Relation Name": "t", "Plan Rows": 1000, "Plan Width": 40}"#;
        assert!(plan(scan).is_single_scan());
        assert_eq!(plan(scan).estimate(), Estimate { rows: 1000, bytes: 40_000 });
        let bitmap = r#"{"Node Type": "Sort", "Plans": [{"Node Type": "Bitmap Heap Scan", "Relation Name": "t",
            "Plans": [{"Node Type": "Bitmap Index Scan", "Index Name": "i"}]}]}"#;
        assert!(plan(bitmap).is_single_scan());
        let subplan = format!(
            r#"{{"Node Type": "Seq Scan", "Relation Name": "t",
            "Plans": [{{"Node Type": "Aggregate", "Parent Relationship": "SubPlan", "Plans": [{scan}]}}]}}"#
        );
        assert!(plan(&subplan).is_single_scan());
        let join = format!(r#"{{"Node Type": "Nested Loop", "Plans": [{scan}, {scan}]}}"#);
        assert!(!plan(&join).is_single_scan());
        assert!(!plan(r#"{"Node Type": "ProjectSet", "Plans": []}"#).is_single_scan());
        assert!(!plan(r#"{"Node Type": "Limit", "Plans": []}"#).is_single_scan());
    }
}
