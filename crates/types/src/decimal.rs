//! Exact decimals: an integer of at most 38 digits and a scale.

use std::cmp::Ordering;
use std::fmt;

/// `unscaled` × 10^-`scale`; at most 38 digits, 0 to 38 of them after the point.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// The digits, as an integer.
    pub unscaled: i128,
    /// How many of the digits stand after the point.
    pub scale: u8,
}

const MAX_DIGITS: u32 = 38;

impl Decimal {
    /// Reads `-12.340`, `+5`, `.5`, `1e-3`. `None` when it is not a number or has more than 38 digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (rest.get(..at)?, rest.get(at + 1..)?.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut unscaled: i128 = 0;
        for b in whole.bytes().chain(fraction.bytes()) {
            if !b.is_ascii_digit() {
                return None;
            }
            unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(b - b'0'))?;
        }
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        let unscaled = if negative { -unscaled } else { unscaled };
        Decimal { unscaled, scale: 0 }.with_scale_shift(scale)
    }

    /// Takes `unscaled` × 10^-`scale` for a scale that may be negative or too large for the digits.
    fn with_scale_shift(self, scale: i32) -> Option<Decimal> {
        let mut unscaled = self.unscaled;
        let mut scale = scale;
        while scale > 38 && unscaled != 0 && unscaled % 10 == 0 {
            unscaled /= 10;
            scale -= 1;
        }
        if unscaled == 0 {
            scale = scale.clamp(0, 38);
        }
        while scale < 0 {
            unscaled = unscaled.checked_mul(10)?;
            scale += 1;
        }
        let value = Decimal { unscaled, scale: u8::try_from(scale).ok().filter(|s| *s <= 38)? };
        (value.digits() <= MAX_DIGITS).then_some(value)
    }

    /// Number of digits without leading zeros; 1 for zero.
    pub fn digits(self) -> u32 {
        self.unscaled.unsigned_abs().checked_ilog10().unwrap_or(0) + 1
    }

    /// The same number with another scale. `None` when that would lose digits or needs more than 38.
    pub fn rescale(self, scale: u8) -> Option<Decimal> {
        let unscaled = match scale.cmp(&self.scale) {
            Ordering::Equal => self.unscaled,
            Ordering::Greater => self.unscaled.checked_mul(power_of_ten(scale - self.scale)?)?,
            Ordering::Less => {
                let divisor = power_of_ten(self.scale - scale)?;
                if self.unscaled % divisor != 0 {
                    return None;
                }
                self.unscaled / divisor
            }
        };
        let value = Decimal { unscaled, scale };
        (value.digits() <= MAX_DIGITS).then_some(value)
    }

    /// The number as an integer, when it is one and fits.
    pub fn to_i64(self) -> Option<i64> {
        i64::try_from(self.rescale(0)?.unscaled).ok()
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }
}

fn power_of_ten(exponent: u8) -> Option<i128> {
    10_i128.checked_pow(u32::from(exponent))
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal { unscaled: i128::from(value), scale: 0 }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let (a, b) = (self.unscaled, other.unscaled);
        if self.scale == other.scale {
            return a.cmp(&b);
        }
        if a.signum() != b.signum() {
            return a.signum().cmp(&b.signum());
        }
        // Bring the one of smaller scale up. When that overflows it is the larger in magnitude: it has over 38 digits then.
        if self.scale < other.scale {
            match power_of_ten(other.scale - self.scale).and_then(|p| a.checked_mul(p)) {
                Some(a) => a.cmp(&b),
                None => a.signum().cmp(&0),
            }
        } else {
            other.cmp(self).reverse()
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.unscaled.unsigned_abs().to_string();
        let scale = usize::from(self.scale);
        if self.unscaled < 0 {
            f.write_str("-")?;
        }
        if scale == 0 {
            return f.write_str(&digits);
        }
        match digits.len().checked_sub(scale) {
            Some(whole) if whole > 0 => {
                let (whole, fraction) = digits.split_at(whole);
                write!(f, "{whole}.{fraction}")
            }
            _ => write!(f, "0.{digits:0>scale$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_exactly() {
        let cases = [
            ("0", "0"),
            ("-0.00", "0.00"),
            ("12.340", "12.340"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-0.05", "-0.05"),
            ("1e3", "1000"),
            ("1.5E-3", "0.0015"),
            ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
            ("0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001"),
        ];
        for (text, expected) in cases {
            assert_eq!(Decimal::parse(text).expect(text).to_string(), expected);
        }
    }

    #[test]
    fn what_is_not_a_decimal_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "1e",
            "e5",
            "NaN",
            "1e40",
            "1e-40",
            "100000000000000000000000000000000000000",
            "1e999999999999",
        ] {
            assert!(Decimal::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn rescaling_never_rounds() {
        let value = Decimal::parse("1.50").expect("number");
        assert_eq!(value.rescale(1).expect("exact").to_string(), "1.5");
        assert!(value.rescale(0).is_none());
        assert!(value.rescale(38).is_none());
    }

    proptest! {
        #[test]
        fn order_is_that_of_the_numbers(a in -1_000_000_i128..1_000_000, s in 0_u8..6, b in -1_000_000_i128..1_000_000, t in 0_u8..6) {
            let left = a * 10_i128.pow(u32::from(6 - s));
            let right = b * 10_i128.pow(u32::from(6 - t));
            prop_assert_eq!(Decimal { unscaled: a, scale: s }.cmp(&Decimal { unscaled: b, scale: t }), left.cmp(&right));
        }

        #[test]
        fn text_round_trips(unscaled in -(10_i128.pow(37))..10_i128.pow(37), scale in 0_u8..=38) {
            let value = Decimal { unscaled, scale };
            let back = Decimal::parse(&value.to_string()).expect("own text");
            prop_assert_eq!((back.unscaled, back.scale), (unscaled, scale));
        }
    }
}
