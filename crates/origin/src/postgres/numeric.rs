//! PostgreSQL's binary numeric: groups of four decimal digits, made into the integer of a DECIMAL.

use crate::postgres::decode::Fault;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const MINUS_INFINITY: u16 = 0xf000;

/// Decimal digits in a group.
const GROUP: i32 = 4;
const BASE: i128 = 10_000;

/// The number × 10^`scale`. Refused when digits would be lost, or when there are more than `precision`.
pub(crate) fn decode(bytes: &[u8], precision: u8, scale: u8) -> Result<i128, Fault> {
    let (header, groups) = bytes.split_first_chunk::<8>().ok_or(Fault::Malformed)?;
    let [n1, n2, w1, w2, s1, s2, d1, d2] = *header;
    let count = usize::from(u16::from_be_bytes([n1, n2]));
    let weight = i32::from(i16::from_be_bytes([w1, w2]));
    let sign = u16::from_be_bytes([s1, s2]);
    let display_scale = u16::from_be_bytes([d1, d2]);
    if groups.len() != count * 2 {
        return Err(Fault::Malformed);
    }
    let special = |text: &str| Fault::NotHeld { value: text.to_owned(), reason: "DECIMAL has no such value" };
    match sign {
        0 | NEGATIVE => {}
        NAN => return Err(special("NaN")),
        INFINITY => return Err(special("Infinity")),
        MINUS_INFINITY => return Err(special("-Infinity")),
        _ => return Err(Fault::Malformed),
    }
    let magnitude = magnitude(groups, weight, scale).filter(|m| digits(*m) <= u32::from(precision));
    match magnitude {
        Some(magnitude) if sign == NEGATIVE => Ok(-magnitude),
        Some(magnitude) => Ok(magnitude),
        None => Err(Fault::NotHeld {
            value: text(groups, weight, sign == NEGATIVE, display_scale),
            reason: "it has more digits than the type, before or behind the point; cast it in the query to numeric(p,s) or text",
        }),
    }
}

fn digits(magnitude: i128) -> u32 {
    magnitude.checked_ilog10().unwrap_or(0) + 1
}

/// Group `i` counts 10^(4 × (weight - i)); `None` when the result would not be exact or not fit.
fn magnitude(groups: &[u8], weight: i32, scale: u8) -> Option<i128> {
    let scale = i32::from(scale);
    let mut total: i128 = 0;
    let mut exponent = GROUP * weight + scale;
    for group in groups.as_chunks::<2>().0 {
        let group = i128::from(u16::from_be_bytes(*group));
        if exponent >= 0 {
            // All groups so far were whole ones: shift them by one more.
            total = total.checked_mul(BASE)?.checked_add(group)?;
        } else if exponent > -GROUP {
            // The group that the scale cuts: its digits behind the cut must be zeros.
            let behind = 10_i128.pow(exponent.unsigned_abs());
            if group % behind != 0 {
                return None;
            }
            let before = 10_i128.pow((GROUP + exponent).unsigned_abs());
            total = total.checked_mul(before)?.checked_add(group / behind)?;
        } else if group != 0 {
            return None;
        }
        exponent -= GROUP;
    }
    // What is left of the exponent stands for zeros that were not sent.
    let zeros = exponent + GROUP;
    if total == 0 || zeros <= 0 {
        return Some(total);
    }
    total.checked_mul(10_i128.checked_pow(zeros.unsigned_abs())?)
}

/// The number as PostgreSQL writes it, for errors; cut when it is long.
fn text(groups: &[u8], weight: i32, negative: bool, display_scale: u16) -> String {
    const MOST: usize = 200;
    let group_at = |position: i32| -> u16 {
        let index = usize::try_from(weight - position).ok();
        index.and_then(|i| groups.as_chunks::<2>().0.get(i)).map_or(0, |g| u16::from_be_bytes(*g))
    };
    let mut out = String::new();
    let mut position = weight.max(0);
    while position >= 0 && out.len() < MOST {
        out.push_str(&format!("{:04}", group_at(position)));
        position -= 1;
    }
    let whole = out.trim_start_matches('0');
    let mut out = format!("{}{}", if negative { "-" } else { "" }, if whole.is_empty() { "0" } else { whole });
    if display_scale > 0 && out.len() < MOST {
        let mut fraction = String::new();
        let wanted = usize::from(display_scale).min(MOST);
        while fraction.len() < wanted {
            fraction.push_str(&format!("{:04}", group_at(position)));
            position -= 1;
        }
        fraction.truncate(wanted);
        out.push('.');
        out.push_str(&fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `numeric_send` writes it.
    fn sent(weight: i16, sign: u16, display_scale: u16, groups: &[u16]) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&u16::try_from(groups.len()).expect("few groups").to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&display_scale.to_be_bytes());
        groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
        out
    }

    #[test]
    fn groups_become_one_integer() {
        // 12345.678 is 1 | 2345 . 6780
        assert_eq!(decode(&sent(1, 0, 3, &[1, 2345, 6780]), 38, 3), Ok(12_345_678));
        assert_eq!(decode(&sent(1, 0, 3, &[1, 2345, 6780]), 38, 10), Ok(123_456_780_000_000));
        assert_eq!(decode(&sent(0, NEGATIVE, 2, &[0, 500]), 10, 2), Ok(-5));
        assert_eq!(decode(&sent(-1, 0, 2, &[500]), 10, 2), Ok(5));
        assert_eq!(decode(&sent(0, 0, 0, &[]), 1, 0), Ok(0));
        // 10^20 is sent as its first group only.
        assert_eq!(decode(&sent(5, 0, 0, &[1]), 38, 0), Ok(10_i128.pow(20)));
        // 38 digits of nines that end inside a group.
        let mut nines = vec![9_999; 9];
        nines.push(9_900);
        assert_eq!(decode(&sent(8, 0, 2, &nines), 38, 2), Ok(10_i128.pow(38) - 1));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_text() {
        let refused = |bytes: Vec<u8>, precision, scale| match decode(&bytes, precision, scale) {
            Err(Fault::NotHeld { value, .. }) => value,
            other => panic!("not refused: {other:?}"),
        };
        assert_eq!(refused(sent(1, 0, 3, &[1, 2345, 6780]), 38, 2), "12345.678");
        assert_eq!(refused(sent(1, NEGATIVE, 3, &[1, 2345, 6780]), 7, 3), "-12345.678");
        assert_eq!(refused(sent(-2, 0, 8, &[1]), 38, 4), "0.00000001");
        assert_eq!(refused(sent(0, NAN, 0, &[]), 38, 0), "NaN");
        assert_eq!(refused(sent(0, INFINITY, 0, &[]), 38, 0), "Infinity");
        assert_eq!(refused(sent(0, MINUS_INFINITY, 0, &[]), 38, 0), "-Infinity");
        assert_eq!(refused(sent(30, 0, 0, &[1]), 38, 0), format!("1{}", "0".repeat(120)));
        assert_eq!(decode(&[0; 7], 38, 0), Err(Fault::Malformed));
        assert_eq!(decode(&sent(0, 1, 0, &[]), 38, 0), Err(Fault::Malformed));
        assert_eq!(decode(&[0, 2, 0, 0, 0, 0, 0, 0, 0, 1], 38, 0), Err(Fault::Malformed));
    }
}
