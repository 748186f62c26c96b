//! Binary values and COPY data, built by hand from PostgreSQL's documentation.

#![allow(clippy::unwrap_used)]

use super::*;
use cachesql_types::{DataType, Decimal};
use proptest::prelude::*;

fn copy_of(rows: &[&[Option<&[u8]>]]) -> Vec<u8> {
    let mut out = SIGNATURE.to_vec();
    out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0]);
    for row in rows {
        out.extend_from_slice(&i16::try_from(row.len()).unwrap().to_be_bytes());
        for field in *row {
            match field {
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                Some(bytes) => {
                    out.extend_from_slice(&i32::try_from(bytes.len()).unwrap().to_be_bytes());
                    out.extend_from_slice(bytes);
                }
            }
        }
    }
    out.extend_from_slice(&(-1_i16).to_be_bytes());
    out
}

type Rows = Vec<Vec<Option<Vec<u8>>>>;

fn read(data: &[u8], cut: usize, columns: usize) -> Result<(Rows, bool), MalformedCopy> {
    let mut reader = CopyReader::new(columns);
    let mut rows = Vec::new();
    for part in data.chunks(cut) {
        reader.feed(part, |fields| {
            rows.push(fields.map(|f| f.map(<[u8]>::to_vec)).collect());
            Ok::<_, MalformedCopy>(())
        })?;
    }
    Ok((rows, reader.is_complete()))
}

#[test]
fn copy_data_is_read_however_it_is_cut() {
    let data = copy_of(&[&[Some(b"ab"), None], &[Some(b""), Some(&[0xff; 100])], &[None, None]]);
    let expected =
        vec![vec![Some(b"ab".to_vec()), None], vec![Some(Vec::new()), Some(vec![0xff; 100])], vec![None, None]];
    for cut in 1..=data.len() {
        assert_eq!(read(&data, cut, 2), Ok((expected.clone(), true)), "cut every {cut} bytes");
    }
}

#[test]
fn broken_copy_data_is_refused() {
    let data = copy_of(&[&[Some(b"ab"), None]]);
    assert_eq!(read(&data, 1_000, 3), Err(MalformedCopy));
    assert!(!read(&data[..data.len() - 1], 1_000, 2).unwrap().1);
    assert_eq!(read(b"PGCOPY\n\xff\n\n\0aaaaaaaa", 1_000, 2), Err(MalformedCopy));
    let mut negative = data.clone();
    negative[21..25].copy_from_slice(&(-2_i32).to_be_bytes());
    assert_eq!(read(&negative, 1_000, 2), Err(MalformedCopy));
    let mut behind = data.clone();
    behind.push(0);
    assert!(!read(&behind, 1_000, 2).unwrap().1);
}

#[test]
fn dates_and_timestamps_move_to_1970() {
    assert_eq!(date(0), Ok(10_957));
    assert_eq!(date(i32::MAX), Ok(i32::MAX));
    assert_eq!(date(i32::MIN), Ok(i32::MIN));
    assert_eq!(timestamp(0), Ok(946_684_800_000_000));
    assert_eq!(timestamp(i64::MIN), Ok(i64::MIN));
    // PostgreSQL's last timestamp, 294276-12-31 23:59:59.999999.
    let last = 9_223_371_331_199_999_999;
    assert!(matches!(timestamp(last), Err(Fault::NotHeld { value, .. }) if value == "294276-12-31 23:59:59.999999"));
}

#[test]
fn values_of_a_wrong_length_are_refused() {
    for data_type in [DataType::Boolean, DataType::Integer, DataType::Double, DataType::Uuid, DataType::Timestamp] {
        let mut builder = ColumnBuilder::new(data_type);
        assert_eq!(decode(&mut builder, false, &[1, 2, 3]), Err(Fault::Malformed), "{data_type}");
    }
    let mut json = ColumnBuilder::new(DataType::Json);
    assert_eq!(decode(&mut json, true, b"\x02{}"), Err(Fault::Malformed));
}

/// A number as `numeric_send` writes it: groups of four digits around the point, without zero groups at either end.
fn numeric_sent(value: Decimal) -> Vec<u8> {
    let text = value.to_string();
    let unsigned = text.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let whole = format!("{}{whole}", "0".repeat((4 - whole.len() % 4) % 4));
    let fraction = format!("{fraction}{}", "0".repeat((4 - fraction.len() % 4) % 4));
    let digits = format!("{whole}{fraction}");
    let mut weight = i16::try_from(whole.len() / 4).unwrap() - 1;
    let mut groups: Vec<u16> = (0..digits.len() / 4).map(|i| digits[i * 4..i * 4 + 4].parse().unwrap()).collect();
    while groups.last() == Some(&0) {
        groups.pop();
    }
    while groups.first() == Some(&0) {
        groups.remove(0);
        weight -= 1;
    }
    let sign: u16 = if value.unscaled < 0 { 0x4000 } else { 0 };
    let mut out = u16::try_from(groups.len()).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&u16::from(value.scale).to_be_bytes());
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
    out
}

proptest! {
    #[test]
    fn any_decimal_survives(unscaled in -(10_i128.pow(38) - 1)..10_i128.pow(38), shift in 0_u32..38, scale in 0_u8..=38) {
        let value = Decimal { unscaled: unscaled / 10_i128.pow(shift), scale };
        prop_assert_eq!(numeric::decode(&numeric_sent(value), 38, scale), Ok(value.unscaled));
        // With another scale: the same number, or refused where `Decimal` says that it is not exact either.
        for other in [0, 10, 38] {
            let expected = value.rescale(other).map(|d| d.unscaled);
            prop_assert_eq!(numeric::decode(&numeric_sent(value), 38, other).ok(), expected);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80), cut in 1_usize..20, columns in 1_usize..4) {
        let _ = numeric::decode(&bytes, 38, 10);
        let _ = read(&bytes, cut, columns);
        let _ = read(&[copy_of(&[]).get(..19).unwrap(), bytes.as_slice()].concat(), cut, columns);
    }
}
