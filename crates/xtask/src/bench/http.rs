//! A small HTTP/1.1 client for the benches: one connection, one request at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};

pub(crate) struct Connection {
    address: String,
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Connection {
    pub(crate) fn open(address: &str) -> Outcome<Self> {
        let stream = TcpStream::connect(address).context(|| address.to_owned())?;
        stream.set_nodelay(true).context(|| address.to_owned())?;
        stream.set_read_timeout(Some(Duration::from_secs(120))).context(|| address.to_owned())?;
        Ok(Self { address: address.to_owned(), stream: BufReader::with_capacity(1 << 16, stream) })
    }

    pub(crate) fn get(&mut self, path: &str) -> Outcome<Answer> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address), b"")
    }

    pub(crate) fn post_json(&mut self, path: &str, body: &str) -> Outcome<Answer> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.ask(&head, body.as_bytes())
    }

    fn ask(&mut self, head: &str, body: &[u8]) -> Outcome<Answer> {
        let request = [head.as_bytes(), body].concat();
        self.stream.get_mut().write_all(&request).context(|| self.address.clone())?;
        let answer = read_answer(&mut self.stream).context(|| self.address.clone())?;
        if answer.status == 200 {
            return Ok(answer);
        }
        let first = head.lines().next().unwrap_or_default();
        Err(Failure::new(format!("{first}: {} {}", answer.status, String::from_utf8_lossy(&answer.body))))
    }
}

fn read_answer(stream: &mut impl BufRead) -> std::io::Result<Answer> {
    let bad = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).ok_or_else(|| bad("no status"))?;
    let mut answer = Answer { status, headers: Vec::new(), body: Vec::new() };
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        answer.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    if answer.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        loop {
            line.clear();
            stream.read_line(&mut line)?;
            let size = line.trim().split(';').next().unwrap_or_default();
            let size = u64::from_str_radix(size, 16).map_err(|_| bad("a chunk's size"))?;
            stream.take(size).read_to_end(&mut answer.body)?;
            line.clear();
            stream.read_line(&mut line)?;
            if size == 0 {
                return Ok(answer);
            }
        }
    }
    let length = answer.header("content-length").and_then(|value| value.parse::<u64>().ok());
    let length = length.ok_or_else(|| bad("neither a length nor chunks"))?;
    stream.take(length).read_to_end(&mut answer.body)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_with_a_length_and_in_chunks_are_read() {
        let text = "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\ncontent-length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\
            Transfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1;x=y\r\nf\r\n0\r\n\r\n";
        let mut stream = text.as_bytes();
        let first = read_answer(&mut stream).expect("an answer");
        assert_eq!(
            (first.status, first.body.as_slice(), first.header("Content-type")),
            (200, &b"abc"[..], Some("a/b"))
        );
        assert_eq!(read_answer(&mut stream).expect("an answer").body, b"def");
        assert!(stream.is_empty());
    }
}
