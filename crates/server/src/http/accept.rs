//! What a request accepts: the media type of rows, and gzip.

use hyper::header::{ACCEPT, ACCEPT_ENCODING, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};

use super::failure::Failure;

/// A media type that rows can be answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowsType {
    /// `application/json`.
    Json,
    /// `application/vnd.pgrst.object+json`: one object, of exactly one row.
    Object,
    /// `text/csv`.
    Csv,
    /// `application/x-ndjson`.
    Lines,
    /// `application/vnd.apache.arrow.stream`.
    Arrow,
}

impl RowsType {
    /// The type's name, as it is sent.
    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            RowsType::Json => "application/json; charset=utf-8",
            RowsType::Object => "application/vnd.pgrst.object+json; charset=utf-8",
            RowsType::Csv => "text/csv; charset=utf-8",
            RowsType::Lines => "application/x-ndjson; charset=utf-8",
            RowsType::Arrow => "application/vnd.apache.arrow.stream",
        })
    }

    fn named(name: &str) -> Option<RowsType> {
        Some(match name {
            "application/json" | "*/*" | "application/*" | "application/vnd.pgrst.array+json" => RowsType::Json,
            "application/vnd.pgrst.object+json" | "application/vnd.pgrst.object" => RowsType::Object,
            "text/csv" | "text/*" => RowsType::Csv,
            "application/x-ndjson" | "application/jsonl" | "application/ndjson" => RowsType::Lines,
            "application/vnd.apache.arrow.stream" => RowsType::Arrow,
            _ => return None,
        })
    }
}

/// The type that rows are answered in: of those that the request accepts, the one it likes best; of equals the first.
/// JSON when it does not say.
pub(crate) fn rows_type(headers: &HeaderMap) -> Result<RowsType, Failure> {
    let mut best: Option<(RowsType, u32)> = None;
    let mut given = false;
    for (name, quality) in items(headers, &ACCEPT) {
        given = true;
        let Some(rows_type) = RowsType::named(&name.to_ascii_lowercase()) else { continue };
        if quality > best.map_or(0, |(_, best)| best) {
            best = Some((rows_type, quality));
        }
    }
    match best {
        Some((rows_type, _)) => Ok(rows_type),
        None if !given => Ok(RowsType::Json),
        None => Err(Failure::new(
            StatusCode::NOT_ACCEPTABLE,
            "0A000",
            "none of the media types in Accept can be answered in",
        )
        .with_hint(
            "rows are answered in application/json, application/vnd.pgrst.object+json, text/csv, application/x-ndjson, application/vnd.apache.arrow.stream",
        )),
    }
}

/// Whether the request names a type in Accept (wildcards do not count).
pub(crate) fn names(headers: &HeaderMap, wanted: &str) -> bool {
    items(headers, &ACCEPT).any(|(name, quality)| quality > 0 && name.eq_ignore_ascii_case(wanted))
}

/// Whether the answer may be compressed with gzip.
pub(crate) fn gzip(headers: &HeaderMap) -> bool {
    let mut of_star = false;
    for (name, quality) in items(headers, &ACCEPT_ENCODING) {
        if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            return quality > 0;
        }
        of_star |= name == "*" && quality > 0;
    }
    of_star
}

/// The items of a list with their qualities in thousandths (RFC 9110, 12.4.2); what is not ASCII is passed over.
fn items<'a>(headers: &'a HeaderMap, header: &HeaderName) -> impl Iterator<Item = (&'a str, u32)> {
    headers.get_all(header).iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).filter_map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().filter(|n| !n.is_empty())?;
        let quality = parts.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")));
        Some((name, quality.map_or(1000, thousandths)))
    })
}

fn thousandths(text: &str) -> u32 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    match whole {
        "1" => 1000,
        // Java's HttpURLConnection writes `.2`.
        "0" | "" => {
            let digits = fraction.bytes().chain([b'0'; 3]).take(3);
            digits.fold(0, |value, d| value * 10 + u32::from(d.wrapping_sub(b'0').min(9)))
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        [(name, HeaderValue::from_str(value).expect("header"))].into_iter().collect()
    }

    #[test]
    fn the_type_liked_best_is_taken() {
        let cases = [
            ("text/csv", Some(RowsType::Csv)),
            ("text/html, application/xhtml+xml, */*;q=0.8", Some(RowsType::Json)),
            ("text/csv;q=0.5, application/x-ndjson", Some(RowsType::Lines)),
            ("application/vnd.pgrst.object+json; nulls=stripped", Some(RowsType::Object)),
            ("application/json;q=0, text/csv;q=0.001", Some(RowsType::Csv)),
            // What HttpURLConnection sends unless told otherwise.
            ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", Some(RowsType::Json)),
            ("image/png", None),
        ];
        for (accept, expected) in cases {
            assert_eq!(rows_type(&headers(ACCEPT, accept)).ok(), expected, "{accept}");
        }
        assert_eq!(rows_type(&HeaderMap::new()), Ok(RowsType::Json));
    }

    #[test]
    fn gzip_is_used_only_when_it_is_asked_for() {
        let cases = [
            ("gzip, deflate, br", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("*", true),
            ("*, gzip;q=0", false),
        ];
        for (accept, expected) in cases {
            assert_eq!(gzip(&headers(ACCEPT_ENCODING, accept)), expected, "{accept}");
        }
        assert!(!gzip(&HeaderMap::new()));
    }
}
