//! Which type a column of texts has, when nobody says: the narrowest that holds every one of them exactly.
//!
//! - BOOLEAN: `true` and `false`, or `t` and `f` as PostgreSQL and this program write them to CSV, in any case.
//! - BIGINT: whole numbers of 64 bits. A leading zero or plus makes it text: `007` is a code, not a number.
//! - DECIMAL: numbers with a point, and whole numbers beyond 64 bits, of up to 38 digits.
//! - DOUBLE: numbers with an exponent, `NaN`, `Infinity`; and numbers with a point of which some have more than 15
//!   significant digits, when each is the shortest text of a double: such columns were doubles when they were written.
//! - DATE, TIMESTAMP, TIMESTAMPTZ: ISO 8601 with four digits of year; a time needs its seconds, at most six digits of fraction.
//! - TEXT: anything else, and columns without a value.

use cachesql_types::{DataType, Value};

/// Precision of a DECIMAL whose values need no more, so that columns that grow a little keep their type.
const USUAL_PRECISION: u32 = 18;

/// What the values of a column have shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextSeen {
    booleans: bool,
    integers: bool,
    points: bool,
    exponents: bool,
    dates: bool,
    timestamps: bool,
    zoned: bool,
    others: bool,
    // Of the numbers:
    beyond_bigint: bool,
    beyond_double: bool,
    over_15_digits: bool,
    whole_digits: u32,
    scale: u32,
}

impl TextSeen {
    /// Takes a value into account.
    pub(crate) fn add(&mut self, text: &str) {
        if self.others || self.add_short_integer(text) {
            return;
        }
        match text.bytes().next() {
            Some(b'0'..=b'9' | b'-' | b'.') => {
                if !self.add_number(text) && !self.add_time(text) {
                    self.others = true;
                }
            }
            Some(b't' | b'T' | b'f' | b'F')
                if ["t", "f", "true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)) =>
            {
                self.booleans = true;
            }
            _ if matches!(text, "NaN" | "Infinity") => self.exponents = true,
            _ => self.others = true,
        }
    }

    /// The quick way for what most values are: whole numbers that 64 bits hold whatever their digits.
    fn add_short_integer(&mut self, text: &str) -> bool {
        const ALWAYS_FIT: usize = 15;
        let digits = text.as_bytes();
        let whole_digits = match digits {
            [b'0'] => 0,
            [b'1'..=b'9', rest @ ..] if rest.len() < ALWAYS_FIT && rest.iter().all(u8::is_ascii_digit) => digits.len(),
            _ => return false,
        };
        self.integers = true;
        self.whole_digits = self.whole_digits.max(u32::try_from(whole_digits).unwrap_or(0));
        true
    }

    /// Takes a value into account that is no number, boolean or time.
    pub(crate) fn add_other(&mut self) {
        self.others = true;
    }

    /// Takes a number into account; false when the text is none.
    pub(crate) fn add_number(&mut self, text: &str) -> bool {
        if text == "-Infinity" {
            self.exponents = true;
            return true;
        }
        let Some(number) = Number::of(text) else { return false };
        self.whole_digits = self.whole_digits.max(number.whole_digits);
        self.scale = self.scale.max(number.scale);
        match number.form {
            Form::Integer => {
                self.integers = true;
                self.beyond_bigint |= number.whole_digits > 18 && Value::parse(text, DataType::BigInt).is_err();
            }
            Form::Point => self.points = true,
            Form::Exponent => self.exponents = true,
        }
        let long = number.significant > 15;
        // Whole numbers say nothing about how the column was written.
        self.over_15_digits |= long && number.form == Form::Point;
        if long || number.form == Form::Exponent {
            self.beyond_double |= !is_shortest_double(text);
        }
        true
    }

    /// Takes a date or timestamp into account; false when the text is none.
    pub(crate) fn add_time(&mut self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let digits_at = |places: &[usize]| places.iter().all(|at| bytes.get(*at).is_some_and(u8::is_ascii_digit));
        if !digits_at(&[0, 1, 2, 3, 5, 6, 8, 9]) || bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
            return false;
        }
        if bytes.len() == 10 {
            let sound = Value::parse(text, DataType::Date).is_ok();
            self.dates |= sound;
            return sound;
        }
        let time = matches!(bytes.get(10), Some(b'T' | b' ')) && digits_at(&[11, 12, 14, 15, 17, 18]);
        if !time || bytes.get(13) != Some(&b':') || bytes.get(16) != Some(&b':') {
            return false;
        }
        let zoned = bytes.iter().skip(19).any(|b| matches!(b, b'Z' | b'z' | b'+' | b'-'));
        let sound = Value::parse(text, if zoned { DataType::TimestampTz } else { DataType::Timestamp }).is_ok();
        self.zoned |= sound && zoned;
        self.timestamps |= sound && !zoned;
        sound
    }

    /// The type that holds all the values exactly.
    pub(crate) fn data_type(&self) -> DataType {
        let numbers = self.integers || self.points || self.exponents;
        let times = self.dates || self.timestamps || self.zoned;
        match (self.others, self.booleans, numbers, times) {
            (false, true, false, false) => DataType::Boolean,
            (false, false, true, false) => self.number_type(),
            (false, false, false, true) => self.time_type(),
            _ => DataType::Text,
        }
    }

    fn number_type(&self) -> DataType {
        let digits = self.whole_digits + self.scale;
        let fits_decimal = digits <= u32::from(DataType::MAX_PRECISION);
        let precision = if digits <= USUAL_PRECISION { USUAL_PRECISION } else { u32::from(DataType::MAX_PRECISION) };
        let decimal = DataType::Decimal {
            precision: u8::try_from(precision).unwrap_or(DataType::MAX_PRECISION),
            scale: u8::try_from(self.scale).unwrap_or(DataType::MAX_PRECISION),
        };
        let fits_double = !self.beyond_double;
        if !self.points && !self.exponents && !self.beyond_bigint {
            DataType::BigInt
        } else if !self.exponents && fits_decimal && !(self.over_15_digits && fits_double) {
            decimal
        } else if fits_double && (self.points || self.exponents) {
            DataType::Double
        } else {
            DataType::Text
        }
    }

    fn time_type(&self) -> DataType {
        match (self.timestamps, self.zoned) {
            (false, false) => DataType::Date,
            (true, false) => DataType::Timestamp,
            (false, true) if !self.dates => DataType::TimestampTz,
            // A time without a zone beside times with one: which instant it is cannot be known.
            _ => DataType::Text,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Integer,
    Point,
    Exponent,
}

/// How a number is written.
struct Number {
    form: Form,
    whole_digits: u32,
    scale: u32,
    significant: usize,
}

impl Number {
    /// `-?digits[.digits][e[+-]digits]`, without needless zeros in front. `None` for anything else.
    fn of(text: &str) -> Option<Number> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let whole_sound = all_digits(whole) && (whole.len() == 1 || !whole.starts_with('0'));
        let sound = (whole_sound || (whole.is_empty() && fraction.is_some()))
            && fraction.is_none_or(all_digits)
            && exponent.is_none_or(|e| all_digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
        // Minus zero is no whole number.
        if !sound || text == "-0" {
            return None;
        }
        let fraction = fraction.unwrap_or_default();
        let digits = whole.len() + fraction.len();
        let leading = whole.bytes().chain(fraction.bytes()).take_while(|b| *b == b'0').count();
        let form = match (exponent, fraction) {
            (Some(_), _) => Form::Exponent,
            (None, "") => Form::Integer,
            _ => Form::Point,
        };
        Some(Number {
            form,
            whole_digits: if whole == "0" { 0 } else { u32::try_from(whole.len()).unwrap_or(u32::MAX / 2) },
            scale: if form == Form::Exponent { 0 } else { u32::try_from(fraction.len()).unwrap_or(u32::MAX / 2) },
            significant: digits - leading,
        })
    }
}

/// Whether a number is one that a double prints: read as a double and written again, it has the same digits.
fn is_shortest_double(text: &str) -> bool {
    let Ok(double) = text.parse::<f64>() else { return false };
    double.is_finite() && normal(text) == normal(&format!("{double:e}"))
}

/// A number's digits without zeros at either end, and the power of ten of the last of them.
fn normal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent: i64 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let dropped = i64::try_from(digits.len() - kept.len()).ok()?;
    let power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(dropped)?;
    let kept = kept.trim_start_matches('0').to_owned();
    Some(if kept.is_empty() { (negative, kept, 0) } else { (negative, kept, power) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[&str]) -> String {
        let mut seen = TextSeen::default();
        values.iter().for_each(|value| seen.add(value));
        seen.data_type().to_string()
    }

    #[test]
    fn the_narrowest_type_that_holds_all() {
        let cases: [(&[&str], &str); 38] = [
            (&[], "TEXT"),
            (&["1", "-5", "0"], "BIGINT"),
            (&["9223372036854775807", "-9223372036854775808"], "BIGINT"),
            (&["9223372036854775808"], "DECIMAL(38,0)"),
            (&["99999999999999999999999999999999999999"], "DECIMAL(38,0)"),
            (&["999999999999999999999999999999999999999"], "TEXT"),
            (&["007", "1"], "TEXT"),
            (&["+1"], "TEXT"),
            (&["-0"], "TEXT"),
            (&["1.50", "2"], "DECIMAL(18,2)"),
            (&["12345678901234567890.5"], "DECIMAL(38,1)"),
            (&["10.357019999999999", "8"], "DOUBLE"),
            (&["0.1000000000000000000001"], "DECIMAL(38,22)"),
            (&["1e5", "2.5"], "DOUBLE"),
            (&["1e400"], "TEXT"),
            (&["1e5", "9007199254740993"], "TEXT"),
            (&["NaN", "-Infinity", "1"], "DOUBLE"),
            (&["1.", "2"], "TEXT"),
            (&[".5"], "DECIMAL(18,1)"),
            (&["00.5"], "TEXT"),
            (&["0", "0.12345678901234567890123456789012345678"], "DECIMAL(38,38)"),
            (&["true", "FALSE"], "BOOLEAN"),
            (&["true", "1"], "TEXT"),
            (&["t", "f"], "BOOLEAN"),
            (&["T", "F", "f"], "BOOLEAN"),
            (&["t", "False"], "BOOLEAN"),
            (&["t", "0"], "TEXT"),
            (&["t", "n"], "TEXT"),
            (&["yes", "no"], "TEXT"),
            (&["2013-01-01", "1969-12-31"], "DATE"),
            (&["2013-02-30"], "TEXT"),
            (&["2013-01-01", "2013-01-01 10:00:00"], "TIMESTAMP"),
            (&["2013-01-01T10:00:00.123456"], "TIMESTAMP"),
            (&["2013-01-01T10:00:00.1234567"], "TEXT"),
            (&["2013-01-01T10:00:00Z", "2013-01-01 10:00:00+02"], "TIMESTAMPTZ"),
            (&["2013-01-01T10:00:00Z", "2013-01-01T10:00:00"], "TEXT"),
            (&["2013-01-01", "1"], "TEXT"),
            (&["N14228", "2"], "TEXT"),
        ];
        for (values, expected) in cases {
            assert_eq!(inferred(values), expected, "{values:?}");
        }
    }
}
