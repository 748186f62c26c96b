//! PostgreSQL's URLs: libpq's, and JDBC's, read into one description of where and how to connect.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cachesql_types::limits;

use crate::secret::Secret;
use crate::url::percent_decoded;

/// Where a PostgreSQL server is and how to talk to it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PostgresUrl {
    /// At least one; tried in order.
    pub(crate) hosts: Vec<HostPort>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) database: Option<String>,
    pub(crate) tls: TlsOptions,
    pub(crate) options: Option<String>,
    pub(crate) application_name: Option<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) target: Target,
    pub(crate) keepalives: bool,
    pub(crate) keepalives_idle: Option<Duration>,
    pub(crate) tcp_user_timeout: Option<Duration>,
    pub(crate) channel_binding: Binding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Name(String),
    /// Directory of a unix socket.
    Socket(PathBuf),
    /// None was named: the local socket where there is one, else localhost.
    Local,
}

/// What a connection must prove.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct TlsOptions {
    pub(crate) mode: TlsMode,
    pub(crate) root: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl TlsOptions {
    /// Whether the server's certificate must come from a trusted root.
    pub(crate) fn verifies(&self) -> bool {
        match self.mode {
            TlsMode::VerifyCa | TlsMode::VerifyFull => true,
            TlsMode::Require => self.root.is_some(),
            TlsMode::Disable | TlsMode::Prefer => false,
        }
    }

    /// The file of trusted roots that is named; `system` means the system's.
    pub(crate) fn root_file(&self) -> Option<&Path> {
        self.root.as_deref().filter(|path| *path != Path::new("system"))
    }

    /// The files that a connection reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let root = self.root_file().filter(|_| self.verifies());
        let own = [self.certificate.as_deref(), self.key.as_deref()].into_iter().flatten();
        root.into_iter().chain(own.filter(|_| self.mode != TlsMode::Disable))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum TlsMode {
    Disable,
    /// TLS when the server has it; nothing is verified.
    #[default]
    Prefer,
    /// TLS; nothing is verified, unless roots are given: then as `VerifyCa`, as libpq does.
    Require,
    /// TLS with a certificate from a trusted root, whatever its name.
    VerifyCa,
    /// TLS with a certificate from a trusted root for the host's name.
    VerifyFull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Target {
    #[default]
    Any,
    ReadWrite,
    ReadOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Binding {
    Disable,
    #[default]
    Prefer,
    Require,
}

const DEFAULT_PORT: u16 = 5432;

impl PostgresUrl {
    fn new() -> PostgresUrl {
        PostgresUrl {
            hosts: Vec::new(),
            user: None,
            password: None,
            database: None,
            tls: TlsOptions::default(),
            options: None,
            application_name: None,
            connect_timeout: limits::ORIGIN_CONNECT_TIMEOUT,
            target: Target::Any,
            keepalives: true,
            keepalives_idle: None,
            tcp_user_timeout: None,
            channel_binding: Binding::Prefer,
        }
    }

    /// Reads what follows `postgres://`: `[user[:password]@][host[:port][,…]][/database][?parameters]`. A parameter that libpq
    /// does not know is an error.
    pub(crate) fn parse(rest: &str) -> Result<PostgresUrl, String> {
        let mut url = PostgresUrl::new();
        let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = address.split_once('/').unwrap_or((address, ""));
        let hosts = match authority.rsplit_once('@') {
            Some((user, hosts)) => {
                let (name, password) = user.split_once(':').map_or((user, None), |(n, p)| (n, Some(p)));
                url.user = Some(percent_decoded(name)?).filter(|n| !n.is_empty());
                url.password = password.map(percent_decoded).transpose()?.map(Secret::new);
                hosts
            }
            None => authority,
        };
        url.hosts = parse_hosts(hosts)?;
        url.database = Some(percent_decoded(database)?).filter(|d| !d.is_empty());
        for (name, value) in parameter_pairs(parameters)? {
            if !url.set(&name, value)? {
                return Err(format!("the parameter {name} is not known"));
            }
        }
        url.finish()
    }

    /// Reads what follows `jdbc:postgresql:`: `//host[:port][,…]/database?parameters`, or a database alone. Parameters
    /// without a meaning here are returned by name; JDBC has dozens that speak of Java.
    pub(crate) fn parse_jdbc(rest: &str) -> Result<(PostgresUrl, Vec<String>), String> {
        let mut url = PostgresUrl::new();
        let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let database = match address.strip_prefix("//") {
            Some(address) => {
                let (hosts, database) = address.split_once('/').unwrap_or((address, ""));
                if hosts.contains('@') {
                    return Err("a JDBC URL takes the user as a parameter: ?user=…&password=…".to_owned());
                }
                url.hosts = parse_hosts(hosts)?;
                database
            }
            None => address,
        };
        if url.hosts.iter().all(|h| h.host == Host::Local) {
            // JDBC knows no unix sockets.
            url.hosts = vec![HostPort { host: Host::Name("localhost".into()), port: DEFAULT_PORT }];
        }
        url.database = Some(percent_decoded(database)?).filter(|d| !d.is_empty());
        let mut ignored = Vec::new();
        for (name, value) in parameter_pairs(parameters)? {
            if !url.set_jdbc(&name, value)? {
                ignored.push(name);
            }
        }
        Ok((url.finish()?, ignored))
    }

    fn finish(mut self) -> Result<PostgresUrl, String> {
        if self.hosts.is_empty() {
            self.hosts.push(HostPort { host: Host::Local, port: DEFAULT_PORT });
        }
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            return Err("sslcert and sslkey go together".to_owned());
        }
        Ok(self)
    }

    /// Takes one of libpq's parameters; false when it is not one.
    fn set(&mut self, name: &str, value: String) -> Result<bool, String> {
        match name {
            "host" => self.set_hosts(&value)?,
            "port" => self.set_ports(&value)?,
            "dbname" => self.database = Some(value),
            "user" => self.user = Some(value),
            "password" => self.password = Some(Secret::new(value)),
            "options" => self.options = Some(value),
            "application_name" => self.application_name = Some(value),
            "fallback_application_name" => {
                self.application_name.get_or_insert(value);
            }
            "connect_timeout" => self.connect_timeout = seconds(name, &value)?,
            "keepalives" => self.keepalives = value != "0",
            "keepalives_idle" => self.keepalives_idle = Some(seconds(name, &value)?),
            "tcp_user_timeout" => self.tcp_user_timeout = Some(millis(name, &value)?),
            "sslmode" => self.tls.mode = tls_mode(&value)?,
            "sslrootcert" => self.tls.root = Some(PathBuf::from(value)),
            "sslcert" => self.tls.certificate = Some(PathBuf::from(value)),
            "sslkey" => self.tls.key = Some(PathBuf::from(value)),
            "channel_binding" => self.channel_binding = binding(&value)?,
            "target_session_attrs" => self.target = target(&value)?,
            "client_encoding" if is_utf8(&value) => {}
            "client_encoding" => return Err("client_encoding can only be UTF8 here".to_owned()),
            // Known to libpq, and without effect here: other keepalive settings are the system's, GSS is not spoken.
            "keepalives_interval" | "keepalives_count" | "gssencmode" | "sslcompression" | "sslsni" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes one of JDBC's parameters; false when it has no meaning here.
    fn set_jdbc(&mut self, name: &str, value: String) -> Result<bool, String> {
        match name {
            "user" | "password" | "options" | "sslmode" | "sslrootcert" | "sslcert" | "sslkey" => {
                return self.set(name, value);
            }
            "ssl" if value.is_empty() || value == "true" => {
                // `ssl=true` alone means verify-full in JDBC; an sslmode beside it wins.
                if self.tls.mode == TlsMode::Prefer {
                    self.tls.mode = TlsMode::VerifyFull;
                }
            }
            "ssl" => self.tls.mode = TlsMode::Disable,
            "sslfactory" if value.ends_with("NonValidatingFactory") => self.tls.mode = TlsMode::Require,
            "channelBinding" => self.channel_binding = binding(&value)?,
            "ApplicationName" => self.application_name = Some(value),
            "connectTimeout" => self.connect_timeout = seconds(name, &value)?,
            "tcpKeepAlive" => self.keepalives = value == "true",
            "targetServerType" => self.target = target(&value)?,
            "currentSchema" => {
                // In `options` a backslash escapes; a schema may hold spaces.
                let escaped = value.replace('\\', "\\\\").replace(' ', "\\ ");
                let setting = format!("-c search_path={escaped}");
                self.options = Some(self.options.take().map_or(setting.clone(), |o| format!("{o} {setting}")));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_hosts(&mut self, value: &str) -> Result<(), String> {
        let ports: Vec<u16> = self.hosts.iter().map(|h| h.port).collect();
        self.hosts = value
            .split(',')
            .enumerate()
            .map(|(i, host)| {
                let port = ports.get(i).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
                Ok(HostPort { host: host_of(host)?, port })
            })
            .collect::<Result<_, String>>()?;
        Ok(())
    }

    fn set_ports(&mut self, value: &str) -> Result<(), String> {
        let ports = value.split(',').map(port_of).collect::<Result<Vec<u16>, String>>()?;
        if self.hosts.is_empty() {
            self.hosts.push(HostPort { host: Host::Local, port: DEFAULT_PORT });
        }
        if ports.len() != 1 && ports.len() != self.hosts.len() {
            return Err("there must be one port, or one for each host".to_owned());
        }
        for (host, port) in self.hosts.iter_mut().zip(ports.iter().cycle()) {
            host.port = *port;
        }
        Ok(())
    }
}

fn parse_hosts(hosts: &str) -> Result<Vec<HostPort>, String> {
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    hosts.split(',').map(parse_host_port).collect()
}

fn parse_host_port(text: &str) -> Result<HostPort, String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("an IPv6 address must end with ]")?;
            let port = match after {
                "" => None,
                after => Some(after.strip_prefix(':').ok_or("only a port may follow an IPv6 address")?),
            };
            (host.to_owned(), port)
        }
        None => {
            let (host, port) = text.split_once(':').map_or((text, None), |(h, p)| (h, Some(p)));
            (percent_decoded(host)?, port)
        }
    };
    let port = port.filter(|p| !p.is_empty()).map_or(Ok(DEFAULT_PORT), port_of)?;
    Ok(HostPort { host: host_of(&host)?, port })
}

fn host_of(host: &str) -> Result<Host, String> {
    if host.contains([' ', '\\', '\0']) {
        return Err("a host name cannot hold spaces or backslashes".to_owned());
    }
    Ok(match host {
        "" => Host::Local,
        path if path.starts_with('/') => Host::Socket(PathBuf::from(path)),
        name => Host::Name(name.to_owned()),
    })
}

fn port_of(port: &str) -> Result<u16, String> {
    port.parse().ok().filter(|p| *p != 0).ok_or_else(|| "a port is a number from 1 to 65535".to_owned())
}

fn parameter_pairs(parameters: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = parameters.split('&').filter(|p| !p.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((percent_decoded(name)?, percent_decoded(value)?))
        })
        .collect()
}

fn seconds(name: &str, value: &str) -> Result<Duration, String> {
    let seconds: u64 = value.trim().parse().map_err(|_| format!("{name} is a number of seconds"))?;
    // Zero means "no limit" to libpq and JDBC. Here there always is one.
    Ok(if seconds == 0 { limits::ORIGIN_CONNECT_TIMEOUT } else { Duration::from_secs(seconds.min(86_400)) })
}

fn millis(name: &str, value: &str) -> Result<Duration, String> {
    value.trim().parse().map(Duration::from_millis).map_err(|_| format!("{name} is a number of milliseconds"))
}

fn tls_mode(value: &str) -> Result<TlsMode, String> {
    Ok(match value {
        "disable" => TlsMode::Disable,
        // libpq's "allow" tries without TLS first; with it first is no weaker.
        "allow" | "prefer" => TlsMode::Prefer,
        "require" => TlsMode::Require,
        "verify-ca" => TlsMode::VerifyCa,
        "verify-full" => TlsMode::VerifyFull,
        _ => return Err("sslmode is one of disable, allow, prefer, require, verify-ca, verify-full".to_owned()),
    })
}

fn binding(value: &str) -> Result<Binding, String> {
    Ok(match value {
        "disable" => Binding::Disable,
        "prefer" => Binding::Prefer,
        "require" => Binding::Require,
        _ => return Err("channel_binding is one of disable, prefer, require".to_owned()),
    })
}

fn target(value: &str) -> Result<Target, String> {
    Ok(match value {
        "any" | "preferSecondary" | "preferPrimary" | "prefer-standby" => Target::Any,
        "read-write" | "primary" | "master" => Target::ReadWrite,
        "read-only" | "standby" | "secondary" | "slave" => Target::ReadOnly,
        _ => return Err(format!("{value:?} is not a kind of server to look for")),
    })
}

fn is_utf8(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "utf8" | "utf-8" | "unicode" | "auto")
}
