//! `POST /v1/sql` and `GET /v1/explain`.

use std::sync::Arc;

use cachesql_node::{ColumnInfo, Consistency, ExplanationPath, RequestOptions, RowStream, Rows, SqlAnswer};
use hyper::header::{AGE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use super::accept::{self, RowsType};
use super::answer::{REPLAYED, answer, json, set_header};
use super::body::{self, AnswerBody, Part, PartRows};
use super::call::{Call, set_token, whole_seconds};
use super::decode::{StatementBody, StatementsBody, read_statements};
use super::encode::json::write_string;
use super::encode::{Encoder, JsonStyle, Layout};
use super::failure::Failure;
use super::parameters::pairs;
use super::prefer::Preferences;

/// Runs one statement, or a batch that is applied as a whole or not at all.
pub(crate) async fn run(call: &mut Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    let rows_type = accept::rows_type(call.headers())?;
    let preferences = Preferences::read(call.headers())?;
    let options = call.options()?;
    let body = call.read_body().await?;
    match body.decode(read_statements).await? {
        StatementsBody::One(one) => run_one(call, one, rows_type, &preferences, options).await,
        StatementsBody::Batch(batch) => run_batch(call, batch, rows_type, &preferences, options).await,
    }
}

async fn run_one(
    call: &Call<'_>,
    body: StatementBody,
    rows_type: RowsType,
    preferences: &Preferences,
    mut options: RequestOptions,
) -> Result<Response<AnswerBody>, Failure> {
    if body.consistency.is_some() || body.token.is_some() {
        options.consistency = Consistency::parse(body.consistency.as_deref(), body.token.as_deref())?;
    }
    let style = style(preferences, body.numbers_as_strings);
    let node = call.node().clone();
    let statement = body.statement;
    let mut answered = call.door.statements().run(async move { node.sql(statement, &options).await }).await??;
    let facts = Facts::of(&answered);
    let part = match rows_type {
        RowsType::Json => json_part(call, &mut answered, style),
        _ => {
            let (columns, rows) = take_rows(call, &mut answered);
            Part::new(rows, encoder_of(rows_type, &columns, style)?)
        }
    };
    let encoded = body::encode(vec![part], 1024).await?;
    let mut response = answer(StatusCode::OK, rows_type.header(), encoded);
    facts.set_headers(response.headers_mut());
    Ok(response)
}

async fn run_batch(
    call: &Call<'_>,
    batch: Vec<StatementBody>,
    rows_type: RowsType,
    preferences: &Preferences,
    mut options: RequestOptions,
) -> Result<Response<AnswerBody>, Failure> {
    if rows_type != RowsType::Json {
        return Err(Failure::new(StatusCode::NOT_ACCEPTABLE, "0A000", "a batch is answered in application/json"));
    }
    let numbers_as_strings = batch.iter().any(|body| body.numbers_as_strings);
    let named = batch.iter().find(|body| body.consistency.is_some() || body.token.is_some());
    if let Some(body) = named {
        options.consistency = Consistency::parse(body.consistency.as_deref(), body.token.as_deref())?;
    }
    let statements = batch.into_iter().map(|body| body.statement).collect();
    let node = call.node().clone();
    let answered = call.door.statements().run(async move { node.batch(statements, &options).await }).await??;
    let style = style(preferences, numbers_as_strings);
    let mut parts: Vec<Part> = Vec::with_capacity(answered.answers.len());
    for mut one in answered.answers {
        let mut part = json_part(call, &mut one, style);
        part.head.to_mut().insert(0, if parts.is_empty() { b'[' } else { b',' });
        parts.push(part);
    }
    if let Some(last) = parts.last_mut() {
        last.tail.to_mut().push(b']');
    }
    let encoded = body::encode(parts, 1024).await?;
    let mut response = answer(StatusCode::OK, rows_type.header(), encoded);
    set_token(response.headers_mut(), &answered.token);
    Ok(response)
}

fn style(preferences: &Preferences, numbers_as_strings: bool) -> JsonStyle {
    JsonStyle { numbers_as_strings: numbers_as_strings || preferences.numbers_as_strings, ..JsonStyle::default() }
}

/// What an answer's headers say.
struct Facts {
    token: cachesql_types::Token,
    age_s: Option<u64>,
    affected: Option<u64>,
    replayed: bool,
}

impl Facts {
    fn of(answered: &SqlAnswer) -> Facts {
        Facts {
            token: answered.token.clone(),
            age_s: answered.age.map(whole_seconds),
            affected: answered.affected,
            replayed: answered.replayed,
        }
    }

    fn set_headers(&self, headers: &mut HeaderMap) {
        set_token(headers, &self.token);
        match (self.affected, self.age_s) {
            (Some(rows), _) => set_header(headers, hyper::header::CONTENT_RANGE, format!("*/{rows}")),
            (None, Some(age)) => set_header(headers, AGE, age.to_string()),
            (None, None) => {}
        }
        if self.replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
    }
}

/// Takes the rows out of an answer; one without rows has none.
fn take_rows(call: &Call<'_>, answered: &mut SqlAnswer) -> (Arc<[ColumnInfo]>, PartRows) {
    let columns = std::mem::take(&mut answered.columns);
    let rows = match answered.rows.take() {
        Some(Rows::Direct(rows)) => PartRows::Direct(rows),
        Some(Rows::Stream(rows)) => PartRows::Carried(call.door.statements().carry(rows)),
        None => PartRows::Stream(RowStream::of_batches(columns.clone(), Vec::new())),
    };
    (columns, rows)
}

/// `{"columns":[{"name","type"}],"rows":[[…]],"affected":N,"token":"…"}`; `affected` for writes alone.
fn json_part(call: &Call<'_>, answered: &mut SqlAnswer, style: JsonStyle) -> Part {
    let mut tail = Vec::with_capacity(48);
    if let Some(rows) = answered.affected {
        tail.extend_from_slice(format!(",\"affected\":{rows}").as_bytes());
    }
    tail.extend_from_slice(b",\"token\":");
    write_string(&mut tail, &answered.token.to_string());
    tail.push(b'}');
    let (columns, rows) = take_rows(call, answered);
    let mut head = Vec::with_capacity(32 + columns.len() * 40);
    head.extend_from_slice(b"{\"columns\":[");
    for (at, column) in columns.iter().enumerate() {
        head.extend_from_slice(if at == 0 { b"{\"name\":" } else { b",{\"name\":" });
        write_string(&mut head, &column.name);
        head.extend_from_slice(format!(",\"type\":\"{}\"}}", column.data_type).as_bytes());
    }
    head.extend_from_slice(b"],\"rows\":");
    let encoder = Encoder::rows(&columns, Layout::Arrays, style);
    Part { head: head.into(), rows, encoder, tail: tail.into(), head_if_empty: None }
}

fn encoder_of(rows_type: RowsType, columns: &Arc<[ColumnInfo]>, style: JsonStyle) -> Result<Encoder, Failure> {
    Ok(match rows_type {
        RowsType::Json => Encoder::rows(columns, Layout::Objects, style),
        RowsType::Lines => Encoder::rows(columns, Layout::Lines, style),
        RowsType::Csv => Encoder::rows(columns, Layout::Csv, style),
        RowsType::Arrow => return Encoder::arrow(columns),
        RowsType::Object => {
            return Err(Failure::new(StatusCode::NOT_ACCEPTABLE, "0A000", "a statement is not answered as one object"));
        }
    })
}

/// Says which path and which index would serve a statement.
pub(crate) async fn explain(call: &Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    let mut sql = None;
    for pair in pairs(call.query()) {
        let (name, value) = pair?;
        match name.as_ref() {
            "sql" if sql.is_none() => sql = Some(value),
            "sql" => return Err(Failure::bad_request("the parameter sql is given twice")),
            _ => return Err(Failure::bad_request("the only parameter is sql")),
        }
    }
    let sql = sql.ok_or_else(|| Failure::bad_request("the parameter sql is missing"))?;
    let (node, sql) = (call.node().clone(), sql.into_owned());
    let explanation = call.door.statements().run(async move { node.explain(&sql).await }).await??;
    let path = match explanation.path {
        ExplanationPath::Direct => "direct",
        ExplanationPath::DataFusion => "datafusion",
    };
    let mut out = format!("{{\"path\":\"{path}\",\"index\":").into_bytes();
    match &explanation.index {
        Some(index) => write_string(&mut out, index),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"text\":");
    write_string(&mut out, &explanation.text);
    out.push(b'}');
    Ok(json(StatusCode::OK, out))
}
