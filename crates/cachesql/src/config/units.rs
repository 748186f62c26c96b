//! Durations and sizes as people write them: `"10m"`, `"1h30m"`, `"8GiB"`.

use std::time::Duration;

const DURATION_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZE_UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Reads a duration: whole numbers, each with a unit (`ms`, `s`, `m`, `h`, `d`), largest unit first.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total_ms = 0_u64;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = leading_number(rest)?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(end)?;
        let (_, unit_ms) = DURATION_UNITS.iter().find(|(name, _)| *name == unit.trim())?;
        if *unit_ms >= smallest {
            return None;
        }
        smallest = *unit_ms;
        total_ms = total_ms.checked_add(number.checked_mul(*unit_ms)?)?;
        rest = next;
    }
    (smallest != u64::MAX).then(|| Duration::from_millis(total_ms))
}

/// Reads a size in bytes: one whole number with a unit (`B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB`, `TiB`), in any case.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = leading_number(text.trim())?;
    let (_, bytes) = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    number.checked_mul(*bytes)
}

fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

/// A number and its noun: `1 row`, `2 rows`. `one` is the singular of a noun whose plural ends in `s`.
pub fn show_count(count: impl TryInto<u64>, one: &str) -> String {
    // No count is beyond 64 bits.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Writes a duration so that [`parse_duration`] reads it back: the largest unit that divides it.
pub fn write_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    let fits = |unit: &u64| ms != 0 && ms.is_multiple_of(u128::from(*unit));
    match DURATION_UNITS.iter().rev().find(|(_, unit)| fits(unit)) {
        Some((name, unit)) => format!("{}{name}", ms / u128::from(*unit)),
        None => format!("{ms}ms"),
    }
}

/// Writes a size so that [`parse_size`] reads it back: the largest binary unit that divides it.
pub fn write_size(bytes: u64) -> String {
    let binary = SIZE_UNITS.iter().rev().filter(|(name, _)| name.ends_with("iB"));
    match binary.into_iter().find(|(_, unit)| bytes != 0 && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

/// Writes a size for people, rounded to a tenth: `1.5 GiB`.
pub fn show_size(bytes: u64) -> String {
    let binary = SIZE_UNITS.iter().rev().filter(|(name, _)| name.ends_with("iB"));
    match binary.into_iter().find(|(_, unit)| bytes >= *unit) {
        // A figure for people: a tenth of a unit is all that is shown of it.
        #[allow(clippy::cast_precision_loss)]
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        let cases = [
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("2d", 172_800_000),
            (" 5 s ", 5_000),
            ("0s", 0),
            ("1m 30s", 90_000),
        ];
        for (text, ms) in cases {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
            assert_eq!(parse_duration(&write_duration(Duration::from_millis(ms))), Some(Duration::from_millis(ms)));
        }
        for text in
            ["", "10", "m", "10x", "-1s", "1.5h", "30s1m", "1m1m", "99999999999999999999s", "9999999999999999d", "十m"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        assert_eq!(write_duration(Duration::from_secs(90)), "90s");
    }

    #[test]
    fn sizes_are_read_and_written() {
        let cases = [("8GiB", 8 << 30), ("64 mib", 64 << 20), ("1kB", 1000), ("0B", 0), ("512B", 512)];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
            assert_eq!(parse_size(&write_size(bytes)), Some(bytes), "{text}");
        }
        for text in ["", "8", "GiB", "8 G", "-1B", "1.5GiB", "99999999999TiB", "8GiBx"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        assert_eq!(show_size(1_610_612_736), "1.5 GiB");
        assert_eq!(show_size(12), "12 B");
    }

    #[test]
    fn counts_agree_with_their_nouns() {
        let shown = [0_u64, 1, 2].map(|n| show_count(n, "row"));
        assert_eq!(shown, ["0 rows", "1 row", "2 rows"]);
        assert_eq!(show_count(1_usize, "different value"), "1 different value");
    }
}
