//! Times a load of a query, again and again: `load_rate URL QUERY [ROUNDS]`. For comparison with
//! `psql -c "COPY (QUERY) TO STDOUT (FORMAT binary)" > /dev/null`.

use std::time::Instant;

use cachesql_origin::{Origin, OriginConfig, OriginUrl, TableQuery, TableSource};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("URL is missing")?;
    let sql = arguments.next().ok_or("QUERY is missing")?;
    let rounds: usize = arguments.next().map_or(Ok(1), |rounds| rounds.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let origin = Origin::new(OriginConfig { url: OriginUrl::parse(&url)?, user: None, password: None })?;
        let source = TableSource::Query { sql, params: Vec::new() };
        let query = TableQuery { table: "t".to_owned(), source, types: Vec::new() };
        let description = origin.describe(&query).await?;
        for _ in 0..rounds {
            let started = Instant::now();
            let mut stream = origin.load(&query, &description.columns).await?;
            let (mut rows, mut bytes) = (0, 0);
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                rows += batch.num_rows();
                bytes += batch.get_array_memory_size();
            }
            println!("{rows} rows, {bytes} bytes in {:.3} s", started.elapsed().as_secs_f64());
        }
        Ok(())
    })
}
