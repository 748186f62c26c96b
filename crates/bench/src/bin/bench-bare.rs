//! `bench-bare FILE`: a bare hyper server that answers every request with one answer, the peer of the row benches.
//! FILE holds header lines, an empty line and the body. It prints the address that it listens on.

use std::convert::Infallible;
use std::io::{self, Write};
use std::process::ExitCode;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: bench-bare FILE");
        return ExitCode::from(2);
    };
    match run(&file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-bare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str) -> io::Result<()> {
    let (headers, body) = read_answer(&std::fs::read(file)?)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(headers, body))
}

async fn serve(headers: HeaderMap, body: Bytes) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (headers, body) = (headers.clone(), body.clone());
        tokio::spawn(async move {
            let service = service_fn(move |_| {
                let mut response = Response::new(Full::new(body.clone()));
                *response.headers_mut() = headers.clone();
                async move { Ok::<_, Infallible>(response) }
            });
            // A load generator just closes its connections.
            let _ = hyper::server::conn::http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn read_answer(file: &[u8]) -> io::Result<(HeaderMap, Bytes)> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let at = file.windows(2).position(|two| two == b"\n\n").ok_or_else(|| bad("no empty line after the headers"))?;
    let (head, body) = file.split_at(at);
    let mut headers = HeaderMap::new();
    for line in String::from_utf8_lossy(head).lines() {
        let (name, value) = line.split_once(": ").ok_or_else(|| bad("a header without a colon"))?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("a header's name"))?;
        headers.append(name, HeaderValue::from_str(value).map_err(|_| bad("a header's value"))?);
    }
    Ok((headers, Bytes::copy_from_slice(body.get(2..).unwrap_or_default())))
}
