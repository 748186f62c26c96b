//! What is said to a request whose head cannot be read. Hyper answers it before the door sees it, with a status alone, and has
//! no hook for more; what it writes is given the body that every other failure has.

use hyper::StatusCode;

use super::failure::Failure;

/// No answer of the door's own has this line and one of the statuses below.
const EMPTY: &[u8] = b"\r\ncontent-length: 0\r\n";

/// The answer with a body, when `answer` is one of hyper's own.
pub(crate) fn explained(answer: &[u8]) -> Option<Vec<u8>> {
    let status = answer.strip_prefix(b"HTTP/1.")?.get(2..5).filter(|status| status.starts_with(b"4"))?;
    let failure = failure(StatusCode::from_bytes(status).ok()?)?.to_json();
    let at = answer.windows(EMPTY.len()).position(|line| line == EMPTY)?;
    let (before, after) = (answer.get(..at)?, answer.get(at + EMPTY.len()..)?);
    // More than a head is not hyper's own.
    if !(after.ends_with(b"\r\n\r\n") || after == b"\r\n") {
        return None;
    }
    let headers = format!("\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: {}\r\n", failure.len());
    Some([before, headers.as_bytes(), after, &failure].concat())
}

fn failure(status: StatusCode) -> Option<Failure> {
    Some(match status {
        StatusCode::BAD_REQUEST => Failure::new(status, "08P01", "the head of the request is not HTTP/1.1")
            .with_hint("in a path and a query string, spaces are written %20 and quotation marks %22"),
        StatusCode::URI_TOO_LONG => Failure::new(status, "54000", "the path and query string are too long"),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            Failure::new(status, "54000", "the head of the request is larger than 64 KiB or has more than 100 headers")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_without_a_body_gets_one() {
        let head = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: today\r\n\r\n";
        let explained_text = explained(head.as_bytes()).map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        let text = explained_text.expect("a body");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let value: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(value["code"], "08P01");
        let length = format!("\r\ncontent-length: {}\r\n", body.len());
        assert!(
            head.starts_with("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n") && head.contains(&length),
            "{head}"
        );
        for other in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK",
            "HTTP/1.1 4",
            "",
        ] {
            assert_eq!(explained(other.as_bytes()), None, "{other}");
        }
    }
}
