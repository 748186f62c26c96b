//! SPDX licence expressions, as crates state them, against a list of allowed licences.
//!
//! Grammar (SPDX 2.3, annex D): `OR` binds weaker than `AND`, `AND` weaker than `WITH`. Old manifests write `/` for OR.

/// Whether the expression can be fulfilled with allowed licences only. An expression that cannot be read cannot.
pub(crate) fn is_allowed(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let verdict = parser.either();
    parser.words.is_empty() && verdict == Some(true)
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    fn take(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if first.eq_ignore_ascii_case(word) => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn either(&mut self) -> Option<bool> {
        let mut verdict = self.both()?;
        while self.take("OR") {
            verdict |= self.both()?;
        }
        Some(verdict)
    }

    fn both(&mut self) -> Option<bool> {
        let mut verdict = self.one()?;
        while self.take("AND") {
            verdict &= self.one()?;
        }
        Some(verdict)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let verdict = self.either()?;
            return self.take(")").then_some(verdict);
        }
        let (id, rest) = self.words.split_first()?;
        self.words = rest;
        if self.take("WITH") {
            let (exception, rest) = self.words.split_first()?;
            self.words = rest;
            return Some((self.allowed)(&format!("{id} WITH {exception}")));
        }
        Some((self.allowed)(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(expression: &str) -> bool {
        is_allowed(expression, &|id| ["MIT", "Apache-2.0", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&id))
    }

    #[test]
    fn what_can_be_fulfilled_is_allowed() {
        for expression in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "GPL-2.0/MIT",
            "Apache-2.0 AND ISC",
            "(MIT OR GPL-3.0-only) AND ISC",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0-only",
            "GPL-3.0-only OR MIT AND ISC",
        ] {
            assert!(allowed(expression), "{expression}");
        }
    }

    #[test]
    fn what_cannot_is_not() {
        for expression in [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "(MIT OR ISC) AND GPL-3.0-only",
            "MIT WITH LLVM-exception",
            "MIT OR",
            "(MIT",
            "MIT ISC",
            "mit-like",
        ] {
            assert!(!allowed(expression), "{expression}");
        }
    }
}
