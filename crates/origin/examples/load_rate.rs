//! Times a load, again and again: `load_rate URL QUERY [ROUNDS]`, or `load_rate FILE NULL_TEXT [ROUNDS]`. For comparison with
//! `psql -c "COPY (QUERY) TO STDOUT (FORMAT binary)" > /dev/null`.

use std::time::Instant;

use cachesql_origin::{CsvOptions, FileFormat, FileSource, Origin, OriginConfig, OriginUrl, TableQuery, TableSource};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = OriginUrl::parse(&arguments.next().ok_or("URL or FILE is missing")?)?;
    let text = arguments.next().ok_or("QUERY or NULL_TEXT is missing")?;
    let rounds: usize = arguments.next().map_or(Ok(1), |rounds| rounds.parse())?;
    let source = match url.as_file() {
        Some(path) => {
            let format = match FileFormat::of_path(path).ok_or("the file is of no known kind")? {
                FileFormat::Csv(options) => FileFormat::Csv(CsvOptions { null_text: Some(text), ..options }),
                other => other,
            };
            TableSource::File(FileSource { path: path.to_owned(), format })
        }
        None => TableSource::Query { sql: text, params: Vec::new() },
    };
    let query = TableQuery { table: "t".to_owned(), source, types: Vec::new() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let origin = Origin::new(OriginConfig { url, user: None, password: None })?;
        let started = Instant::now();
        let description = origin.describe(&query).await?;
        println!("described in {:.3} s, {:?}:", started.elapsed().as_secs_f64(), description.estimate);
        for column in &description.columns {
            println!("  {} {}", column.name, column.data_type);
        }
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
