//! Numbers with what they count, for messages.

use std::fmt::Display;

/// `1 row`, `2 rows`: for words whose plural is made by an s.
pub fn counted(number: impl Display + PartialEq + From<u8>, one: &str) -> String {
    let plural = if number == 1.into() { "" } else { "s" };
    format!("{number} {one}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!(counted(0_usize, "row"), "0 rows");
        assert_eq!(counted(1_u64, "row"), "1 row");
        assert_eq!(counted(2_usize, "value"), "2 values");
    }
}
