//! A node inside an application: tables from a file and made in code, asked by SQL. `cargo run --example embed`

use cachesql::{Column, DataType, Node, Table, Value};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cities = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample/cities.csv");
    let column = |name: &str, data_type, nullable| Column { name: name.into(), data_type, nullable };
    let visits = vec![column("city", DataType::Text, false), column("visits", DataType::Integer, false)];

    let node = Node::builder()
        .memory_bytes(1 << 30)
        .table(Table::from_file("cities", cities)?.key(["name"]).index(["country"]))
        .table(Table::empty("visits", visits).key(["city"]))
        .start()
        .await?;
    node.wait_ready().await;

    for city in ["東京", "大阪", "東京"] {
        let upsert = "INSERT INTO visits VALUES ($1, 1) ON CONFLICT (city) DO UPDATE SET visits = visits.visits + 1";
        node.query(upsert, vec![Value::text(city)]).await?;
    }
    let rows = node
        .query(
            "SELECT c.english, v.visits FROM cities c JOIN visits v ON v.city = c.name WHERE c.country = $1 ORDER BY 2 DESC",
            vec![Value::text("JP")],
        )
        .await?;
    for row in rows {
        println!("{}", row.iter().map(Value::to_text).collect::<Vec<_>>().join(": "));
    }
    node.shutdown().await;
    Ok(())
}
