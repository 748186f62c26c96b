//! POST, PATCH, PUT and DELETE of `/rest/{table}`.

use std::sync::Arc;

use cachesql_node::{Comparison, Filter, GroupSnapshot, OnConflict, Operand, RequestOptions, Write, WriteAnswer};
use cachesql_types::{TableSchema, Value};
use hyper::header::{CONTENT_RANGE, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};

use super::query::RestQuery;
use super::read::{count, set_applied};
use super::{encoder_of, not_one_row, returned, table_of};
use crate::http::accept::{self, RowsType};
use crate::http::answer::{REPLAYED, answer, empty, set_header};
use crate::http::body::{self, AnswerBody, Part};
use crate::http::call::{Call, set_token};
use crate::http::decode::{BodyRows, MissingColumns, RowFormat, read_rows};
use crate::http::failure::Failure;
use crate::http::long_read::off_thread;
use crate::http::prefer::{Preferences, Resolution, Return};

/// What every write reads off its request before the body.
struct Request {
    rows_type: RowsType,
    preferences: Preferences,
    options: RequestOptions,
    /// What the positions of columns were taken from.
    snapshot: GroupSnapshot,
    schema: Arc<TableSchema>,
    query: RestQuery,
}

impl Request {
    async fn read(call: &Call<'_>, name: &str) -> Result<Request, Failure> {
        let rows_type = accept::rows_type(call.headers())?;
        let preferences = Preferences::read(call.headers())?;
        let options = call.options()?;
        let snapshot = call.snapshot().await?;
        let schema = table_of(call, &snapshot, name)?.schema().clone();
        let query = RestQuery::parse(&schema, call.query())?;
        Ok(Request { rows_type, preferences, options, snapshot, schema, query })
    }

    fn returns_rows(&self) -> bool {
        self.preferences.returning == Some(Return::Representation)
    }

    async fn body_rows(&self, call: &mut Call<'_>) -> Result<BodyRows, Failure> {
        let format = RowFormat::of(call.headers())?;
        let missing = if self.preferences.missing_default { MissingColumns::Null } else { MissingColumns::Refuse };
        let body = call.read_body().await?;
        let (schema, columns) = (self.schema.clone(), self.query.body_columns.clone());
        body.decode(move |text| read_rows(&schema, format, text, columns, missing)).await
    }

    /// Refuses beforehand what would write another number of rows than the request allows.
    fn check_rows(&self, rows: u64) -> Result<(), Failure> {
        if self.rows_type == RowsType::Object && self.returns_rows() && rows != 1 {
            return Err(not_one_row(rows));
        }
        match self.preferences.row_limit() {
            Some(limit) if rows > limit => Err(Failure::new(
                StatusCode::BAD_REQUEST,
                "54000",
                "Query result exceeds max-affected preference constraint",
            )
            .with_details(format!("The query affects {rows} rows"))),
            _ => Ok(()),
        }
    }

    /// The same for the rows that a filter keeps now. A write that comes between may change them; the snapshot's rows decide.
    async fn check_filtered(&self, call: &Call<'_>, filter: Option<&Filter>) -> Result<(), Failure> {
        let single = self.rows_type == RowsType::Object && self.returns_rows();
        if !single && self.preferences.row_limit().is_none() {
            return Ok(());
        }
        let (node, name, filter) = (call.node().clone(), self.schema.name.clone(), filter.cloned());
        let count = move || {
            let snapshot = node.snapshot();
            count(&node, snapshot.table(&name).ok_or_else(|| Failure::unknown_table(&name))?, filter)
        };
        let rows = off_thread(count).await??;
        self.check_rows(rows)
    }

    /// The filter of a PATCH or DELETE, which must have one unless all rows are meant.
    fn required_filter(&mut self, verb: &str) -> Result<Option<Filter>, Failure> {
        if self.query.limit.is_some() || self.query.offset > 0 {
            return Err(Failure::unsupported(format!("{verb} with limit or offset is not supported")));
        }
        let filter = self.query.filter();
        if filter.is_none() && !self.preferences.all_rows {
            return Err(Failure::new(StatusCode::BAD_REQUEST, "21000", format!("{verb} requires a filter"))
                .with_hint("to mean all rows, send Prefer: tx=all-rows"));
        }
        Ok(filter)
    }

    /// The answer to a write: its rows when they are wanted, its number of rows in `Content-Range`.
    async fn answer(self, written: WriteAnswer, statuses: Statuses) -> Result<Response<AnswerBody>, Failure> {
        let returning = written.returning.filter(|_| self.preferences.returning == Some(Return::Representation));
        let mut response = match returning {
            Some(rows) => {
                let rows = returned::projected(rows, &self.query.columns).await?;
                let encoder =
                    encoder_of(self.rows_type, &rows.shared_columns(), &self.query.as_text, &self.preferences)?;
                let body = body::encode(vec![Part::new(rows, encoder)], 256).await?;
                answer(statuses.with_rows, self.rows_type.header(), body)
            }
            None => empty(statuses.without_rows),
        };
        let headers = response.headers_mut();
        let rows = written.affected;
        let range = match statuses.range {
            RangeForm::Total => format!("*/{rows}"),
            RangeForm::Page if rows == 0 => "*/0".to_owned(),
            RangeForm::Page => format!("0-{}/{rows}", rows.saturating_sub(1)),
        };
        set_header(headers, CONTENT_RANGE, range);
        set_applied(headers, &self.preferences);
        set_token(headers, &written.token);
        if written.replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        Ok(response)
    }
}

/// How a write answers.
struct Statuses {
    with_rows: StatusCode,
    without_rows: StatusCode,
    range: RangeForm,
}

enum RangeForm {
    /// `*/3`
    Total,
    /// `0-2/3`
    Page,
}

/// POST: new rows, or an upsert when the request prefers a resolution.
pub(crate) async fn insert(call: &mut Call<'_>, name: &str) -> Result<Response<AnswerBody>, Failure> {
    let request = Request::read(call, name).await?;
    if !request.query.filters.is_empty() {
        return Err(Failure::syntax("POST takes no filters"));
    }
    let body = request.body_rows(call).await?;
    request.check_rows(u64::try_from(body.rows.len()).unwrap_or(u64::MAX))?;
    let target = request.query.on_conflict.clone().unwrap_or_default();
    let on_conflict = match request.preferences.resolution {
        Some(Resolution::MergeDuplicates) => OnConflict::Replace { columns: target },
        Some(Resolution::IgnoreDuplicates) => OnConflict::DoNothing { columns: target },
        None => OnConflict::Refuse,
    };
    let location = location_of(&request, &body);
    let write = insertion(&request, body, on_conflict);
    let written = call.node().write(&request.snapshot, write, &request.options).await?;
    let created =
        Statuses { with_rows: StatusCode::CREATED, without_rows: StatusCode::CREATED, range: RangeForm::Total };
    let mut response = request.answer(written, created).await?;
    if let Some(location) = location {
        set_header(response.headers_mut(), LOCATION, location);
    }
    Ok(response)
}

fn insertion(request: &Request, body: BodyRows, on_conflict: OnConflict) -> Write {
    let BodyRows { columns, mut rows, .. } = body;
    // Rows that name no column are rows of NULLs; no columns would mean all of them.
    let width = request.schema.columns.len();
    let columns = if columns.is_empty() {
        rows.iter_mut().for_each(|row| row.resize(width, Value::Null));
        (0..width).collect()
    } else {
        columns
    };
    Write::Insert { table: request.schema.name.clone(), columns, rows, on_conflict, returning: request.returns_rows() }
}

/// Where a single new row is, for `return=headers-only`: `/rest/t?id=eq.5`.
fn location_of(request: &Request, body: &BodyRows) -> Option<String> {
    if request.preferences.returning != Some(Return::HeadersOnly) || request.schema.key.is_empty() {
        return None;
    }
    let [row] = body.rows.as_slice() else { return None };
    let conditions = request.schema.key.iter().map(|column| {
        let value = row.get(body.columns.iter().position(|c| c == column)?)?;
        let name = &request.schema.columns.get(*column)?.name;
        Some(format!("{}=eq.{}", percent_encoded(name), percent_encoded(&value.to_text())))
    });
    let conditions = conditions.collect::<Option<Vec<_>>>()?;
    Some(format!("/rest/{}?{}", percent_encoded(&request.schema.name), conditions.join("&")))
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// PATCH: new values in the rows that the filter keeps.
pub(crate) async fn update(call: &mut Call<'_>, name: &str) -> Result<Response<AnswerBody>, Failure> {
    let mut request = Request::read(call, name).await?;
    let filter = request.required_filter("PATCH")?;
    let body = request.body_rows(call).await?;
    let Ok([row]) = <[Vec<Value>; 1]>::try_from(body.rows) else {
        return Err(Failure::syntax("PATCH takes one object"));
    };
    let set: Vec<(usize, Value)> = body.columns.into_iter().zip(row).collect();
    request.check_filtered(call, filter.as_ref()).await?;
    let changed = Statuses { with_rows: StatusCode::OK, without_rows: StatusCode::NO_CONTENT, range: RangeForm::Page };
    if set.is_empty() {
        let snapshot = call.node().snapshot();
        let nothing =
            WriteAnswer { affected: 0, returning: None, token: call.node().token(&snapshot), replayed: false };
        return request.answer(nothing, changed).await;
    }
    let write = Write::Update { table: request.schema.name.clone(), set, filter, returning: request.returns_rows() };
    let written = call.node().write(&request.snapshot, write, &request.options).await?;
    request.answer(written, changed).await
}

/// DELETE: the rows that the filter keeps go.
pub(crate) async fn delete(call: &Call<'_>, name: &str) -> Result<Response<AnswerBody>, Failure> {
    let mut request = Request::read(call, name).await?;
    let filter = request.required_filter("DELETE")?;
    request.check_filtered(call, filter.as_ref()).await?;
    let write = Write::Delete { table: request.schema.name.clone(), filter, returning: request.returns_rows() };
    let written = call.node().write(&request.snapshot, write, &request.options).await?;
    let gone = Statuses { with_rows: StatusCode::OK, without_rows: StatusCode::NO_CONTENT, range: RangeForm::Total };
    request.answer(written, gone).await
}

/// PUT: one row by its key, new or replaced whole.
pub(crate) async fn put(call: &mut Call<'_>, name: &str) -> Result<Response<AnswerBody>, Failure> {
    let request = Request::read(call, name).await?;
    let key = request.schema.key.clone();
    if key.is_empty() {
        return Err(Failure::unsupported(format!("table {} has no primary key to PUT by", request.schema.name)));
    }
    let named = key_of_filters(&request)?;
    let body = request.body_rows(call).await?;
    let Ok([row]) = <[Vec<Value>; 1]>::try_from(body.rows) else {
        return Err(Failure::syntax("PUT takes one object"));
    };
    // A PUT replaces the whole row: columns that are not named become NULL.
    let mut whole = vec![Value::Null; request.schema.columns.len()];
    for (column, value) in body.columns.iter().zip(row) {
        if let Some(cell) = whole.get_mut(*column) {
            *cell = value;
        }
    }
    let same = named.iter().all(|(column, value)| whole.get(*column).is_some_and(|v| v == value));
    if !same {
        return Err(Failure::new(
            StatusCode::BAD_REQUEST,
            "22023",
            "Payload values do not match URL in primary key column(s)",
        ));
    }
    let columns = (0..whole.len()).collect();
    let write = Write::Insert {
        table: request.schema.name.clone(),
        columns,
        rows: vec![whole],
        on_conflict: OnConflict::Replace { columns: key },
        returning: request.returns_rows(),
    };
    let written = call.node().write(&request.snapshot, write, &request.options).await?;
    let done = Statuses { with_rows: StatusCode::OK, without_rows: StatusCode::NO_CONTENT, range: RangeForm::Total };
    request.answer(written, done).await
}

/// The key that a PUT names: `eq` on every column of the primary key, and nothing else.
fn key_of_filters(request: &Request) -> Result<Vec<(usize, Value)>, Failure> {
    let refused = || {
        Failure::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "0A000",
            "Filters must include all and only primary key columns with 'eq' operators",
        )
    };
    let named = request.query.filters.iter().map(|filter| match filter {
        Filter::Compare { column, op: Comparison::Equal, operand: Operand::Value(value) } => {
            Some((*column, value.clone()))
        }
        _ => None,
    });
    let named = named.collect::<Option<Vec<_>>>().ok_or_else(refused)?;
    let mut columns: Vec<usize> = named.iter().map(|(column, _)| *column).collect();
    let mut key = request.schema.key.clone();
    columns.sort_unstable();
    key.sort_unstable();
    let paged = request.query.limit.is_some() || request.query.offset > 0;
    if columns == key && !paged { Ok(named) } else { Err(refused()) }
}
