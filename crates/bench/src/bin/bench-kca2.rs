//! `bench-kca2 ROWS`: the data set as a CSV file with a header, on standard output.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use cachesql_bench::kca2;

fn main() -> ExitCode {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse::<u64>().ok());
    let Some(rows) = rows else {
        eprintln!("usage: bench-kca2 ROWS");
        return ExitCode::from(2);
    };
    match write(rows) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-kca2: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(rows: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    writeln!(out, "{}", kca2::COLUMNS.join(","))?;
    let mut line = Vec::with_capacity(256);
    for key in 1..=rows {
        line.clear();
        kca2::row(key).write_csv(&mut line);
        out.write_all(&line)?;
    }
    out.flush()
}
