//! `kca2`: the data set of the benches. Eight columns as a table of insured persons has them: a bigint key, three
//! short texts, a text of 5,000 values, an integer of 90 values, a timestamp and a decimal.
//!
//! The row of a key depends on nothing but the key, so that any number of rows, in any process, agree.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use cachesql_types::{Column, DataType, Decimal, IndexDefinition, TableSchema, Value, arrow_schema, write_timestamp};

/// Names of the columns, in order.
pub const COLUMNS: [&str; 8] = ["aac001", "aac002", "aac003", "aac004", "aab004", "akc023", "aae036", "akc264"];
/// Distinct values of `aab004`.
pub const EMPLOYERS: u64 = 5_000;
/// Distinct values of `akc023`.
pub const AGES: u64 = 90;

/// Microseconds from 1970 to 2015, where the timestamps begin.
const FIRST_MICROS: i64 = 1_420_070_400_000_000;
const TEN_YEARS_SECONDS: u64 = 10 * 365 * 86_400;

const SURNAMES: [&str; 12] = ["王", "李", "张", "刘", "陈", "杨", "赵", "黄", "周", "吴", "欧阳", "司马"];
const GIVEN: [&str; 16] =
    ["伟", "芳", "娜", "敏", "静", "丽", "强", "磊", "军", "洋", "勇", "艳", "杰", "娟", "涛", "明"];
const TRADES: [&str; 8] = ["Textile", "Foods", "Logistics", "Software", "Steel", "Pharma", "Energy", "Retail"];

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The key, from 1 on.
    pub aac001: i64,
    /// 18 characters, nearly always another.
    pub aac002: String,
    /// A name of two to four Chinese characters.
    pub aac003: String,
    /// Six digits, of a few hundred values.
    pub aac004: String,
    /// One of [`EMPLOYERS`] texts of about 25 bytes.
    pub aab004: String,
    /// 10 to 99.
    pub akc023: i32,
    /// Microseconds since 1970, whole seconds.
    pub aae036: i64,
    /// Hundredths.
    pub akc264: i64,
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let at = self.below(choices.len() as u64) as usize;
        choices.get(at).copied().unwrap_or_default()
    }
}

/// The row of a key; keys run from 1 on.
pub fn row(key: u64) -> Row {
    let mut chance = Chance(key.wrapping_mul(0xd134_2543_de82_ef95));
    let district = 110_100 + chance.below(300);
    let birth_year = 1930 + chance.below(80);
    let birth_day = 101 + chance.below(12) * 100 + chance.below(28);
    let mut aac003 = chance.of(&SURNAMES).to_owned();
    for _ in 0..=chance.below(2) {
        aac003.push_str(chance.of(&GIVEN));
    }
    let employer = chance.below(EMPLOYERS);
    let trade = TRADES.get((employer % TRADES.len() as u64) as usize).copied().unwrap_or_default();
    Row {
        aac001: key as i64,
        aac002: format!("{district}{birth_year}{birth_day:04}{:04}", chance.below(10_000)),
        aac003,
        aac004: district.to_string(),
        aab004: format!("{trade} Company No. {employer:04}"),
        akc023: 10 + chance.below(AGES) as i32,
        aae036: FIRST_MICROS + chance.below(TEN_YEARS_SECONDS) as i64 * 1_000_000,
        akc264: chance.below(5_000_000) as i64,
    }
}

impl Row {
    /// The line of a CSV file, with its end; no column needs quotes.
    pub fn write_csv(&self, out: &mut Vec<u8>) {
        let mut line = String::with_capacity(128);
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            "{},{},{},{},{},{},",
            self.aac001, self.aac002, self.aac003, self.aac004, self.aab004, self.akc023
        );
        out.extend_from_slice(line.as_bytes());
        write_timestamp(out, self.aae036, b' ');
        out.extend_from_slice(format!(",{}.{:02}\n", self.akc264 / 100, self.akc264 % 100).as_bytes());
    }

    /// Bytes of the bare values: 8 for the key, the timestamp and the decimal, 4 for the integer, the texts' own.
    pub fn raw_bytes(&self) -> usize {
        8 + self.aac002.len() + self.aac003.len() + self.aac004.len() + self.aab004.len() + 4 + 8 + 8
    }

    /// The values in column order.
    pub fn values(&self) -> Vec<Value> {
        vec![
            Value::BigInt(self.aac001),
            Value::Text(self.aac002.as_str().into()),
            Value::Text(self.aac003.as_str().into()),
            Value::Text(self.aac004.as_str().into()),
            Value::Text(self.aab004.as_str().into()),
            Value::Integer(self.akc023),
            Value::Timestamp(self.aae036),
            Value::Decimal(Decimal { unscaled: i128::from(self.akc264), scale: 2 }),
        ]
    }
}

/// The table: its key, and indexes on the text of 5,000 values and on the integer.
pub fn schema() -> TableSchema {
    let types = [
        DataType::BigInt,
        DataType::Text,
        DataType::Text,
        DataType::Text,
        DataType::Text,
        DataType::Integer,
        DataType::Timestamp,
        DataType::Decimal { precision: 12, scale: 2 },
    ];
    let columns = COLUMNS
        .iter()
        .zip(types)
        .enumerate()
        .map(|(at, (name, data_type))| Column { name: (*name).to_owned(), data_type, nullable: at != 0 })
        .collect();
    let index = |name: &str, column| IndexDefinition { name: name.to_owned(), columns: vec![column], unique: false };
    TableSchema {
        name: "kca2".to_owned(),
        columns,
        key: vec![0],
        indexes: vec![index("aab004", 4), index("akc023", 5)],
    }
}

/// The rows of keys `first..first + count`, in the layout in which loads hand on rows.
pub fn batch(first: u64, count: u64) -> Result<RecordBatch, arrow::error::ArrowError> {
    let rows: Vec<Row> = (first..first + count).map(row).collect();
    let text = |of: fn(&Row) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(of))) };
    let decimals = Decimal128Array::from_iter_values(rows.iter().map(|row| i128::from(row.akc264)));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.aac001))),
        text(|row| &row.aac002),
        text(|row| &row.aac003),
        text(|row| &row.aac004),
        text(|row| &row.aab004),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.akc023))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.aae036))),
        Arc::new(decimals.with_precision_and_scale(12, 2)?),
    ];
    RecordBatch::try_new(Arc::new(arrow_schema(&schema())), columns)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_row_depends_on_its_key_only() {
        assert_eq!(row(7), row(7));
        assert_ne!(row(7).aac002, row(8).aac002);
    }

    #[test]
    fn columns_have_the_distinct_values_they_should() {
        let rows: Vec<Row> = (1..=100_000).map(row).collect();
        assert_eq!(rows.iter().map(|row| &row.aab004).collect::<HashSet<_>>().len(), 5_000);
        assert_eq!(rows.iter().map(|row| row.akc023).collect::<HashSet<_>>().len(), 90);
        assert_eq!(rows.iter().map(|row| &row.aac004).collect::<HashSet<_>>().len(), 300);
        assert!(rows.iter().map(|row| &row.aac002).collect::<HashSet<_>>().len() > 99_000);
        assert!(rows.iter().all(|row| row.aac002.len() == 18));
    }

    #[test]
    fn the_same_row_in_all_its_forms() {
        let mut csv = Vec::new();
        Row {
            aac001: 42,
            aac002: "110100193001010000".into(),
            aac003: "王伟".into(),
            aac004: "110100".into(),
            aab004: "Steel Company No. 0004".into(),
            akc023: 33,
            aae036: FIRST_MICROS,
            akc264: 1205,
        }
        .write_csv(&mut csv);
        let line = "42,110100193001010000,王伟,110100,Steel Company No. 0004,33,2015-01-01 00:00:00,12.05\n";
        assert_eq!(String::from_utf8_lossy(&csv), line);

        let batch = batch(5, 3).expect("a batch");
        assert_eq!((batch.num_rows(), batch.num_columns()), (3, 8));
        let keys = batch.column(0).as_any().downcast_ref::<Int64Array>().expect("bigint");
        assert_eq!(keys.values(), &[5, 6, 7]);
        assert_eq!(row(5).values().len(), 8);
        assert_eq!(row(5).raw_bytes(), 8 + 18 + row(5).aac003.len() + 6 + row(5).aab004.len() + 4 + 8 + 8);
    }

    #[test]
    fn the_schema_is_one_that_a_table_takes() {
        assert_eq!(schema().check(), Ok(()));
    }
}
