//! `bench-tpch FOLDER SCALE`: the tables of TPC-H as CSV files with headers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use tpchgen::csv::{CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(folder), Some(scale)) = (arguments.first(), arguments.get(1).and_then(|scale| scale.parse::<f64>().ok()))
    else {
        eprintln!("usage: bench-tpch FOLDER SCALE");
        return ExitCode::from(2);
    };
    match write(Path::new(folder), scale) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-tpch: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path, scale: f64) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let table = |name: &str| folder.join(format!("{name}.csv"));
    let part = (1, 1);
    lines(
        &table("nation"),
        NationCsv::header(),
        NationGenerator::new(scale, part.0, part.1).into_iter().map(NationCsv::new),
    )?;
    lines(
        &table("region"),
        RegionCsv::header(),
        RegionGenerator::new(scale, part.0, part.1).into_iter().map(RegionCsv::new),
    )?;
    lines(&table("part"), PartCsv::header(), PartGenerator::new(scale, part.0, part.1).into_iter().map(PartCsv::new))?;
    lines(
        &table("supplier"),
        SupplierCsv::header(),
        SupplierGenerator::new(scale, part.0, part.1).into_iter().map(SupplierCsv::new),
    )?;
    lines(
        &table("customer"),
        CustomerCsv::header(),
        CustomerGenerator::new(scale, part.0, part.1).into_iter().map(CustomerCsv::new),
    )?;
    lines(
        &table("partsupp"),
        PartSuppCsv::header(),
        PartSuppGenerator::new(scale, part.0, part.1).into_iter().map(PartSuppCsv::new),
    )?;
    lines(
        &table("orders"),
        OrderCsv::header(),
        OrderGenerator::new(scale, part.0, part.1).into_iter().map(OrderCsv::new),
    )?;
    lines(
        &table("lineitem"),
        LineItemCsv::header(),
        LineItemGenerator::new(scale, part.0, part.1).into_iter().map(LineItemCsv::new),
    )
}

fn lines<T: std::fmt::Display>(path: &Path, header: &str, rows: impl Iterator<Item = T>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(out, "{header}")?;
    for row in rows {
        writeln!(out, "{row}")?;
    }
    out.flush()
}
