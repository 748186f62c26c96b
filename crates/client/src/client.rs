//! The client's face: rows by table and column, statements, and where they go.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cachesql_types::{Token, Value};
use serde::Serialize;
use tokio::time::Instant;

use crate::builder::Builder;
use crate::core::Core;
use crate::error::Error;
use crate::follow::Follower;
use crate::node::Node;
use crate::pool::Reply;
use crate::read::{ReadWalk, Readers};
use crate::routes::Group;
use crate::rows::{Rows, read_answer};
use crate::sql_tables::StatementTables;
use crate::statement::{Comparison, Data, Statement};
use crate::write::WriteWalk;

/// A client of all groups. Clones are cheap, and share connections, sessions and what is known of nodes.
#[derive(Clone, Debug)]
pub struct Client(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    core: Arc<Core>,
    /// Ends with the last clone.
    _follower: Option<Follower>,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Rows written; 0 when none matched, which is no error.
    pub affected: u64,
    /// The place of the write in its group's log, which later reads of this client are sure to see.
    pub token: Option<Token>,
}

impl Client {
    pub(crate) fn new(core: Arc<Core>, follower: Option<Follower>) -> Client {
        Client(Arc::new(Handle { core, _follower: follower }))
    }

    /// Options, before a client is opened.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client with the routes of a file: `cachesql.properties`, or `cachesql.toml` by that ending. The file's groups and
    /// tables stay as they are; who leads is learned from the nodes.
    ///
    /// # Errors
    /// [`Error::Config`] with every problem of the file and its line.
    pub fn open(file: impl AsRef<Path>) -> Result<Client, Error> {
        Client::builder().open(file)
    }

    /// A client with the routes that a node tells. Several URLs may be given, separated by commas; the first that answers
    /// counts. The routes are followed from then on, in a task of the runtime that this is called in.
    ///
    /// # Errors
    /// [`Error::Usage`] for what is no URL, [`Error::AllFailed`] when none of the nodes tells the routes.
    pub async fn connect(urls: &str) -> Result<Client, Error> {
        Client::builder().connect(urls).await
    }

    /// Rows where the column equals the value. The column's type decides what the value means: 12345 finds the text "12345"
    /// too. NULL equals nothing.
    ///
    /// # Errors
    /// As all reads: [`Error::NoGroup`], [`Error::Refused`] (a value that the column cannot hold among others),
    /// [`Error::AllFailed`].
    pub async fn get(&self, table: &str, column: &str, value: impl Into<Value>) -> Result<Rows, Error> {
        self.read(table, Statement::compare(table, column, Comparison::Equal, &value.into())?).await
    }

    /// Rows where the column is less than the value.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn less(&self, table: &str, column: &str, value: impl Into<Value>) -> Result<Rows, Error> {
        self.read(table, Statement::compare(table, column, Comparison::Less, &value.into())?).await
    }

    /// Rows where the column is more than the value.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn more(&self, table: &str, column: &str, value: impl Into<Value>) -> Result<Rows, Error> {
        self.read(table, Statement::compare(table, column, Comparison::More, &value.into())?).await
    }

    /// Rows where the column is between two values, both included.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn range(
        &self,
        table: &str,
        column: &str,
        from: impl Into<Value>,
        to: impl Into<Value>,
    ) -> Result<Rows, Error> {
        self.read(table, Statement::range(table, column, &from.into(), &to.into())?).await
    }

    /// Rows that equal as many values in the columns of an index, which is named by them: `A+B`.
    ///
    /// # Errors
    /// As [`Client::get`], and [`Error::Usage`] when there are not as many values as columns.
    pub async fn composite(&self, table: &str, index: &str, values: &[Value]) -> Result<Rows, Error> {
        self.read(table, Statement::composite(table, index, values)?).await
    }

    /// The answer to a statement; one that writes goes to the leader, as [`Client::update`] does.
    ///
    /// The tables that it names decide the group. Tables of two groups are asked of a node that holds both, if there is one.
    ///
    /// # Errors
    /// As [`Client::get`] or [`Client::update`], and [`Error::TwoGroups`].
    pub async fn query(&self, sql: &str) -> Result<Rows, Error> {
        self.query_with(sql, &[]).await
    }

    /// The same, with values for `$1`, `$2`, … in their exact types.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub async fn query_with(&self, sql: &str, values: &[Value]) -> Result<Rows, Error> {
        let core = &*self.0.core;
        let deadline = core.deadline();
        let about = StatementTables::of(sql);
        let (readers, table) = self.readers(&about, deadline).await?;
        let body = Statement::of_sql(sql, values)?.body();
        let reply = match about.writes {
            true => WriteWalk::new(core, readers.group, table, body, deadline).run().await?,
            false => ReadWalk::new(core, table, body, deadline).run(readers).await?,
        };
        answer(&reply)
    }

    /// Puts one row: the column has the value, and `data` are its other columns, as a struct, a map or `()`. Rows that had
    /// the value before are replaced whole, so that columns which are not named become NULL.
    ///
    /// # Errors
    /// As all writes: [`Error::NoGroup`], [`Error::Refused`], [`Error::WriteFailed`], and [`Error::OutcomeUnknown`] when it
    /// may have been applied; [`Error::Usage`] for data that is no object.
    pub async fn insert(
        &self,
        table: &str,
        column: &str,
        value: impl Into<Value>,
        data: &(impl Serialize + ?Sized),
    ) -> Result<Written, Error> {
        let value = value.into();
        let removed = Statement::delete(table, column, &value)?;
        let put = Statement::insert(table, column, &value, &Data::of(data)?)?;
        // All or nothing: nobody sees the row gone, and one that is refused leaves the old one.
        self.write(table, Statement::batch([removed, put])).await
    }

    /// Sets columns in the rows where the column equals the value; `None` in `data` is NULL.
    ///
    /// # Errors
    /// As [`Client::insert`].
    pub async fn update(
        &self,
        table: &str,
        column: &str,
        value: impl Into<Value>,
        data: &(impl Serialize + ?Sized),
    ) -> Result<Written, Error> {
        match Statement::update(table, column, &value.into(), &Data::of(data)?)? {
            Some(statement) => self.write(table, statement.body()).await,
            None => Err(Error::Usage(format!("update of {table}: data names no column"))),
        }
    }

    /// Removes the rows where the column equals the value.
    ///
    /// # Errors
    /// As [`Client::insert`].
    pub async fn delete(&self, table: &str, column: &str, value: impl Into<Value>) -> Result<Written, Error> {
        self.write(table, Statement::delete(table, column, &value.into())?.body()).await
    }

    /// The newest token that this client has of a table's group, which its next read sends; `None` before the first answer.
    pub fn token(&self, table: &str) -> Option<Token> {
        self.0.core.routes().group_of(table).and_then(|group| group.session.token())
    }

    /// Forgets what this client has written and seen. Reads promise to show at least that; nodes that lost it (all restarted
    /// without a disk) can never keep the promise, and refuse until it is taken back.
    pub fn forget_session(&self) {
        self.0.core.sessions.forget();
    }

    async fn read(&self, table: &str, statement: Statement) -> Result<Rows, Error> {
        let core = &*self.0.core;
        let deadline = core.deadline();
        let group = core.group_of(table, deadline).await?;
        let walk = ReadWalk::new(core, Some(table.to_owned()), statement.body(), deadline);
        answer(&walk.run(Readers::of(group)).await?)
    }

    async fn write(&self, table: &str, body: Bytes) -> Result<Written, Error> {
        let core = &*self.0.core;
        let deadline = core.deadline();
        let group = core.group_of(table, deadline).await?;
        let reply = WriteWalk::new(core, group, Some(table.to_owned()), body, deadline).run().await?;
        let rows = answer(&reply)?;
        Ok(Written { affected: rows.affected().unwrap_or(0), token: rows.token().cloned() })
    }

    /// Who answers a statement, and a table that stands for its group.
    async fn readers(&self, about: &StatementTables, deadline: Instant) -> Result<(Readers, Option<String>), Error> {
        let core = &*self.0.core;
        let mut found: Vec<(&str, Arc<Group>)> = Vec::new();
        let mut unknown = None;
        for table in &about.tables {
            match core.group_of(table, deadline).await {
                Ok(group) => {
                    if !found.iter().any(|(_, known)| known.name == group.name) {
                        found.push((table, group));
                    }
                }
                Err(error) => unknown = unknown.or(Some(error)),
            }
        }
        match found.as_slice() {
            [] => self.only_group(about, unknown).map(|group| (Readers::of(group), None)),
            [(table, group)] => Ok((Readers::of(group.clone()), Some((*table).to_owned()))),
            [(first_table, first), (second_table, second), ..] => {
                let members = in_all(&found);
                if members.is_empty() || about.writes {
                    return Err(Error::TwoGroups {
                        first_table: (*first_table).to_owned(),
                        first_group: first.name.clone(),
                        second_table: (*second_table).to_owned(),
                        second_group: second.name.clone(),
                    });
                }
                Ok((Readers { group: first.clone(), members, several: true }, Some((*first_table).to_owned())))
            }
        }
    }

    /// The group of a statement that names no table that is there: the only one, if that is not a guess.
    fn only_group(&self, about: &StatementTables, unknown: Option<Error>) -> Result<Arc<Group>, Error> {
        let routes = self.0.core.routes();
        match (routes.only(), unknown) {
            (Some(group), None) => Ok(group.clone()),
            (Some(group), Some(_)) if about.creates => Ok(group.clone()),
            (_, Some(error)) => Err(error),
            (None, None) if routes.is_empty() => Err(Error::NoGroups),
            (None, None) => Err(Error::NoGroup { table: "(the statement names none)".to_owned() }),
        }
    }
}

/// Nodes that are members of every one of the groups.
fn in_all(groups: &[(&str, Arc<Group>)]) -> Vec<Arc<Node>> {
    let is_member = |node: &Arc<Node>, group: &Group| group.members.iter().any(|member| Arc::ptr_eq(member, node));
    let first = groups.first().map(|(_, group)| group.members.as_slice()).unwrap_or_default();
    first.iter().filter(|node| groups.iter().all(|(_, group)| is_member(node, group))).cloned().collect()
}

fn answer(reply: &Reply) -> Result<Rows, Error> {
    read_answer(&reply.body).map_err(|message| Error::Answer { node: reply.node.clone(), message })
}
