//! Pages: the `Range` header (RFC 7233's form, counting rows), and `Content-Range`.

use hyper::header::{HeaderMap, HeaderName, RANGE};
use hyper::{Method, StatusCode};

use crate::http::failure::Failure;

const RANGE_UNIT: HeaderName = HeaderName::from_static("range-unit");

/// Which rows of a result are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Rows to leave out at the front.
    pub(crate) offset: u64,
    /// Most rows; `None` for all.
    pub(crate) limit: Option<u64>,
}

impl Page {
    /// The page that `limit`, `offset` and the `Range` header of a GET ask for together.
    pub(crate) fn of(method: &Method, headers: &HeaderMap, limit: Option<u64>, offset: u64) -> Result<Page, Failure> {
        let page = Page { offset, limit };
        let header = headers.get(RANGE).filter(|_| matches!(*method, Method::GET | Method::HEAD));
        let Some((first, last)) = header.and_then(|v| v.to_str().ok()).and_then(|v| range(headers, v)) else {
            return Ok(page);
        };
        if last.is_some_and(|last| last < first) {
            return Err(not_satisfiable().with_details("the last row of the range is before its first"));
        }
        let end = match (limit.map(|l| offset.saturating_add(l)), last.map(|l| l.saturating_add(1))) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let offset = offset.max(first);
        match end {
            Some(end) if end < offset => Err(not_satisfiable()),
            _ => Ok(Page { offset, limit: end.map(|end| end.saturating_sub(offset)) }),
        }
    }
}

/// Reads `0-9`, `10-`, with or without a unit of rows. Other units are not for us, and ignored as RFC 9110 wants.
fn range(headers: &HeaderMap, text: &str) -> Option<(u64, Option<u64>)> {
    if headers.get(RANGE_UNIT).is_some_and(|unit| unit != "items" && unit != "rows") {
        return None;
    }
    let text = text.strip_prefix("items=").or_else(|| text.strip_prefix("rows=")).unwrap_or(text);
    let (first, last) = text.trim().split_once('-')?;
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let last = if last.is_empty() { None } else { Some(number(last)?) };
    Some((number(first)?, last))
}

fn not_satisfiable() -> Failure {
    Failure::new(StatusCode::RANGE_NOT_SATISFIABLE, "PGRST103", "Requested range not satisfiable")
}

/// The `Content-Range` of a page that has `rows` rows, of `total` when they were counted.
pub(crate) fn content_range(offset: u64, rows: u64, total: Option<u64>) -> String {
    let total = total.map_or_else(|| "*".to_owned(), |t| t.to_string());
    match offset.saturating_add(rows).checked_sub(1) {
        Some(last) if rows > 0 => format!("{offset}-{last}/{total}"),
        _ => format!("*/{total}"),
    }
}

/// The status of such a page: 206 when the total is known and this is not all of it, 416 when it begins behind the last row.
pub(crate) fn page_status(offset: u64, rows: u64, total: Option<u64>) -> Result<StatusCode, Failure> {
    match total {
        Some(total) if offset > total => Err(not_satisfiable()
            .with_details(format!("An offset of {offset} was requested, but there are only {total} rows."))),
        Some(total) if rows < total => Ok(StatusCode::PARTIAL_CONTENT),
        _ => Ok(StatusCode::OK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn page(range: &str, limit: Option<u64>, offset: u64) -> Result<(u64, Option<u64>), Failure> {
        let headers = [(RANGE, HeaderValue::from_str(range).expect("header"))].into_iter().collect();
        Page::of(&Method::GET, &headers, limit, offset).map(|p| (p.offset, p.limit))
    }

    #[test]
    fn a_range_and_a_limit_are_both_kept() {
        assert_eq!(page("0-9", None, 0), Ok((0, Some(10))));
        assert_eq!(page("10-", None, 0), Ok((10, None)));
        assert_eq!(page("items=5-5", None, 0), Ok((5, Some(1))));
        assert_eq!(page("0-9", Some(3), 2), Ok((2, Some(3))));
        assert_eq!(page("5-9", Some(100), 7), Ok((7, Some(3))));
        assert_eq!(page("bytes=0-9", Some(3), 2), Ok((2, Some(3))));
        assert_eq!(page("a-b", None, 0), Ok((0, None)));
        assert_eq!(page("9-0", None, 0).expect_err("backwards").status, StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(page("20-29", Some(5), 0).expect_err("beyond").status, StatusCode::RANGE_NOT_SATISFIABLE);
    }

    #[test]
    fn statuses_and_ranges_are_postgrests() {
        let cases = [
            (0, 3, None, 200, "0-2/*"),
            (0, 3, Some(3), 200, "0-2/3"),
            (0, 2, Some(3), 206, "0-1/3"),
            (2, 1, Some(3), 206, "2-2/3"),
            (3, 0, Some(3), 206, "*/3"),
            (0, 0, Some(0), 200, "*/0"),
            (0, 0, None, 200, "*/*"),
        ];
        for (offset, rows, total, status, range) in cases {
            assert_eq!(page_status(offset, rows, total).expect("satisfiable").as_u16(), status);
            assert_eq!(content_range(offset, rows, total), range);
        }
        assert!(page_status(4, 0, Some(3)).is_err());
    }
}
