//! One connection to a PostgreSQL server: opening it, and seeing that nothing of it stays when it is dropped.

use cachesql_types::limits;
use tokio::task::JoinHandle;
use tokio_postgres::config::{ChannelBinding, SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error};

use crate::error::{OriginError, chain};
use crate::origin::OriginConfig;
use crate::postgres::tls::Tls;
use crate::postgres::url::{Binding, Host, PostgresUrl, Target, TlsMode};

/// An open connection. Dropping it closes it, without a goodbye.
pub(crate) struct Session {
    pub(crate) client: Client,
    connection: ConnectionTask,
    tls: Tls,
}

/// The task that moves a connection's bytes; it ends with this.
struct ConnectionTask(JoinHandle<()>);

impl Session {
    /// Connects, within the URL's time limit.
    pub(crate) async fn open(config: &OriginConfig, url: &PostgresUrl) -> Result<Session, OriginError> {
        let origin = config.url.to_string();
        let tls = Tls::new(&url.tls).map_err(|reason| OriginError::Tls { origin: origin.clone(), reason })?;
        let settings = settings(config, url);
        // tokio-postgres limits the TCP connection only; the handshakes behind it may hang as well. Each host has its turn.
        let limit = url.connect_timeout.saturating_mul(u32::try_from(url.hosts.len()).unwrap_or(1));
        let connected = tokio::time::timeout(limit, settings.connect(tls.clone())).await;
        let (client, connection) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(connect_error(origin, &error)),
            Err(_) => {
                return Err(OriginError::Connect { origin, reason: format!("no answer within {} s", limit.as_secs()) });
            }
        };
        let connection = ConnectionTask(tokio::spawn(async move {
            if let Err(error) = connection.await {
                // Whoever waits for an answer is told as well.
                tracing::debug!(error = %chain(&error), "a connection to PostgreSQL ended");
            }
        }));
        Ok(Session { client, connection, tls })
    }

    /// Says goodbye, once the transaction has ended.
    pub(crate) async fn close(self) {
        self.end(false).await;
    }

    /// Ends the transaction and says goodbye, so that the server has nothing to complain of in its log.
    pub(crate) async fn roll_back(self) {
        self.end(true).await;
    }

    async fn end(self, roll_back: bool) {
        let Session { client, connection: mut task, .. } = self;
        let goodbye = async {
            if roll_back {
                let _ = client.batch_execute("ROLLBACK").await;
            }
            drop(client);
            let _ = (&mut task.0).await;
        };
        let _ = tokio::time::timeout(limits::ORIGIN_CLOSE_TIMEOUT, goodbye).await;
    }

    /// Asks the server to stop what this connection is doing, then closes it.
    pub(crate) async fn cancel(self) {
        let token = self.client.cancel_token();
        let cancelled = token.cancel_query(self.tls.clone());
        // When the server does not take the request, closing the connection still ends the statement, only later.
        let _ = tokio::time::timeout(limits::ORIGIN_CONNECT_TIMEOUT, cancelled).await;
        self.roll_back().await;
    }
}

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn settings(config: &OriginConfig, url: &PostgresUrl) -> Config {
    let mut settings = Config::new();
    for host in &url.hosts {
        match &host.host {
            Host::Name(name) => settings.host(name),
            Host::Socket(directory) => settings.host_path(directory),
            Host::Local => match local_socket(host.port) {
                Some(directory) => settings.host_path(directory),
                None => settings.host("localhost"),
            },
        };
        settings.port(host.port);
    }
    if let Some(user) = config.user.as_ref().or(url.user.as_ref()) {
        settings.user(user);
    }
    if let Some(password) = config.password.as_ref().or(url.password.as_ref()) {
        settings.password(password.expose());
    }
    if let Some(database) = &url.database {
        settings.dbname(database);
    }
    if let Some(options) = &url.options {
        settings.options(options);
    }
    if let Some(timeout) = url.tcp_user_timeout {
        settings.tcp_user_timeout(timeout);
    }
    settings
        .application_name(url.application_name.as_deref().unwrap_or("cachesql"))
        .connect_timeout(url.connect_timeout)
        .keepalives(url.keepalives)
        .keepalives_interval(limits::ORIGIN_KEEPALIVE_INTERVAL)
        .keepalives_retries(limits::ORIGIN_KEEPALIVE_RETRIES)
        .keepalives_idle(url.keepalives_idle.unwrap_or(limits::ORIGIN_KEEPALIVE_IDLE))
        .ssl_mode(match url.tls.mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        })
        .channel_binding(match url.channel_binding {
            Binding::Disable => ChannelBinding::Disable,
            Binding::Prefer => ChannelBinding::Prefer,
            Binding::Require => ChannelBinding::Require,
        })
        .target_session_attrs(match url.target {
            Target::Any => TargetSessionAttrs::Any,
            Target::ReadWrite => TargetSessionAttrs::ReadWrite,
            Target::ReadOnly => TargetSessionAttrs::ReadOnly,
        });
    settings
}

fn local_socket(port: u16) -> Option<&'static str> {
    let present = |directory: &&str| std::path::Path::new(directory).join(format!(".s.PGSQL.{port}")).exists();
    ["/var/run/postgresql", "/tmp"].into_iter().find(present)
}

fn connect_error(origin: String, error: &Error) -> OriginError {
    let reason = match error.as_db_error() {
        Some(db) => db.message().to_owned(),
        None => chain(error),
    };
    let refused = [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION];
    let text = error.to_string();
    if error.code().is_some_and(|code| refused.contains(code)) || text.starts_with("authentication error") {
        return OriginError::Authentication { origin, reason };
    }
    if reason.contains("password missing") {
        return OriginError::Authentication { origin, reason: "the origin asks for a password".to_owned() };
    }
    if text.contains("TLS") {
        return OriginError::Tls { origin, reason };
    }
    OriginError::Connect { origin, reason }
}

/// An error of a statement.
pub(crate) fn query_error(table: &str, error: &Error) -> OriginError {
    match error.as_db_error() {
        Some(db) => {
            let detail = db.detail().map(|d| format!(": {d}")).unwrap_or_default();
            OriginError::Query {
                table: table.to_owned(),
                sqlstate: Some(db.code().code().to_owned()),
                message: format!("{}{detail}", db.message()),
            }
        }
        None if error.is_closed() || error.to_string().contains("communicating") => {
            OriginError::Lost { table: table.to_owned(), reason: chain(error) }
        }
        None => OriginError::Query { table: table.to_owned(), sqlstate: None, message: chain(error) },
    }
}
