//! The `Prefer` header (RFC 7240) with the preferences that PostgREST has, and two of our own.

use hyper::HeaderMap;
use hyper::header::HeaderName;

use super::failure::Failure;

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What happens to a row that is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// It is replaced: an upsert.
    MergeDuplicates,
    /// It stays, and the new one is dropped.
    IgnoreDuplicates,
}

/// What a write answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    /// Nothing but the status.
    Minimal,
    /// Nothing, and a `Location` header.
    HeadersOnly,
    /// The rows.
    Representation,
}

/// What a request prefers. Preferences that are not known are ignored, as the RFC says, unless `handling=strict` asks
/// for an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preferences {
    /// `resolution=merge-duplicates | ignore-duplicates`.
    pub(crate) resolution: Option<Resolution>,
    /// `return=minimal | headers-only | representation`.
    pub(crate) returning: Option<Return>,
    /// `count=exact`; `planned` and `estimated` are answered exactly too, because counting is cheap here.
    pub(crate) count: bool,
    /// `missing=default`: columns that a row does not name take their default.
    pub(crate) missing_default: bool,
    /// `tx=all-rows`: PATCH and DELETE without a filter are meant.
    pub(crate) all_rows: bool,
    /// `max-affected=N`: with `handling=strict`, a write of more rows is refused.
    pub(crate) max_affected: Option<u64>,
    /// `numbers=string`: DECIMAL, and BIGINT beyond 2^53, are sent as JSON strings.
    pub(crate) numbers_as_strings: bool,
    /// What is said in `Preference-Applied`.
    pub(crate) applied: Vec<&'static str>,
    strict: bool,
}

impl Preferences {
    /// Reads all `Prefer` headers of a request. Where one preference is given twice, the first counts (RFC 7240, 2).
    pub(crate) fn read(headers: &HeaderMap) -> Result<Preferences, Failure> {
        let mut preferences = Preferences::default();
        let mut unknown: Vec<String> = Vec::new();
        for value in headers.get_all(PREFER) {
            let text = value.to_str().map_err(|_| Failure::bad_request("the Prefer header is not ASCII"))?;
            for preference in text.split([',', ';']).map(str::trim).filter(|p| !p.is_empty()) {
                if !preferences.take(preference)? {
                    unknown.push(preference.chars().take(60).collect());
                }
            }
        }
        if preferences.strict && !unknown.is_empty() {
            return Err(Failure::bad_request("Invalid preferences given with handling=strict")
                .with_details(format!("Invalid preferences: {}", unknown.join(", "))));
        }
        Ok(preferences)
    }

    /// The limit of rows that a write may touch; only binding with `handling=strict`, as in PostgREST.
    pub(crate) fn row_limit(&self) -> Option<u64> {
        self.max_affected.filter(|_| self.strict)
    }

    fn take(&mut self, preference: &str) -> Result<bool, Failure> {
        let known = match preference {
            "resolution=merge-duplicates" => {
                first(&mut self.resolution, Resolution::MergeDuplicates, "resolution=merge-duplicates")
            }
            "resolution=ignore-duplicates" => {
                first(&mut self.resolution, Resolution::IgnoreDuplicates, "resolution=ignore-duplicates")
            }
            "return=minimal" => first(&mut self.returning, Return::Minimal, "return=minimal"),
            "return=headers-only" => first(&mut self.returning, Return::HeadersOnly, "return=headers-only"),
            "return=representation" => first(&mut self.returning, Return::Representation, "return=representation"),
            "count=exact" | "count=planned" | "count=estimated" => set(&mut self.count, "count=exact"),
            "missing=default" => set(&mut self.missing_default, "missing=default"),
            "missing=null" | "tx=commit" | "handling=lenient" => return Ok(true),
            "tx=all-rows" => set(&mut self.all_rows, "tx=all-rows"),
            "tx=rollback" => {
                // Ignoring it would write what the caller wants undone.
                return Err(Failure::unsupported("Prefer: tx=rollback is not supported"));
            }
            "numbers=string" => set(&mut self.numbers_as_strings, "numbers=string"),
            "handling=strict" => set(&mut self.strict, "handling=strict"),
            _ => match preference.strip_prefix("max-affected=").map(str::parse::<u64>) {
                Some(Ok(rows)) => {
                    self.max_affected.get_or_insert(rows);
                    return Ok(true);
                }
                _ => return Ok(false),
            },
        };
        self.applied.extend(known);
        Ok(true)
    }
}

fn first<T>(slot: &mut Option<T>, value: T, name: &'static str) -> Option<&'static str> {
    if slot.is_some() {
        return None;
    }
    *slot = Some(value);
    Some(name)
}

fn set(flag: &mut bool, name: &'static str) -> Option<&'static str> {
    let fresh = !*flag;
    *flag = true;
    fresh.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn read(values: &[&str]) -> Result<Preferences, Failure> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(PREFER, HeaderValue::from_str(value).expect("header"));
        }
        Preferences::read(&headers)
    }

    #[test]
    fn preferences_come_in_one_header_or_in_several() {
        let one = read(&["return=representation, count=exact,resolution=merge-duplicates"]).expect("good");
        let several = read(&["return=representation", "count=exact", "resolution=merge-duplicates"]).expect("good");
        assert_eq!(one, several);
        assert_eq!(one.returning, Some(Return::Representation));
        assert_eq!(one.resolution, Some(Resolution::MergeDuplicates));
        assert!(one.count);
        assert_eq!(one.applied, ["return=representation", "count=exact", "resolution=merge-duplicates"]);
    }

    #[test]
    fn the_first_of_two_counts() {
        assert_eq!(read(&["return=minimal, return=representation"]).expect("good").returning, Some(Return::Minimal));
    }

    #[test]
    fn unknown_ones_are_ignored_unless_strict() {
        assert!(read(&["respond-async, wait=10"]).is_ok());
        assert!(read(&["respond-async, handling=strict"]).is_err());
        assert_eq!(read(&["max-affected=5"]).expect("good").row_limit(), None);
        assert_eq!(read(&["handling=strict, max-affected=5"]).expect("good").row_limit(), Some(5));
    }

    #[test]
    fn a_rollback_is_never_ignored() {
        assert!(read(&["tx=rollback"]).is_err());
    }
}
