//! How a client is opened, with options that code gives. They count before what a file says.

use std::path::Path;
use std::time::Duration;

use crate::address::Address;
use crate::chance::{Chance, from_the_system};
use crate::client::Client;
use crate::config::{self, Consistency, Settings, bearer};
use crate::core::{Core, Options, Source};
use crate::error::Error;
use crate::follow::Follower;
use crate::limits;
use crate::policy::Policy;
use crate::wire::Wire;

/// Options of a client; [`Client::builder`] begins one.
#[derive(Debug, Default)]
pub struct Builder {
    settings: Settings,
    /// What was given and cannot be used.
    problem: Option<String>,
    without_request_ids: bool,
    seed: Option<u64>,
}

impl Builder {
    /// Which member of a group a read asks first; [`Policy::Seed`] unless given.
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.settings.policy = Some(policy);
        self
    }

    /// What reads see; [`Consistency::Session`] unless given.
    pub fn consistency(mut self, consistency: Consistency) -> Builder {
        self.settings.consistency = Some(consistency);
        self
    }

    /// Time to connect to one node; zero for no limit but the deadline. [`limits::CONNECT_TIMEOUT`] unless given.
    pub fn connect_timeout(mut self, time: Duration) -> Builder {
        self.settings.connect_timeout = Some(time);
        self
    }

    /// Time for one node's answer; zero for no limit but the deadline. [`limits::READ_TIMEOUT`] unless given. Below the
    /// deadline, it leaves time for the next node.
    pub fn read_timeout(mut self, time: Duration) -> Builder {
        self.settings.read_timeout = Some(time);
        self
    }

    /// Time for a whole call, whatever nodes do. [`limits::DEADLINE`] unless given.
    pub fn deadline(mut self, time: Duration) -> Builder {
        self.settings.deadline = Some(time);
        self
    }

    /// The token that nodes are shown.
    pub fn token(mut self, token: &str) -> Builder {
        self.settings.authorization = bearer(token);
        if self.settings.authorization.is_none() {
            self.problem = Some("token: empty, or with characters that a header cannot carry".to_owned());
        }
        self
    }

    /// Whether writes carry an id, which is the default. Without one, a write whose outcome is not known is not tried again.
    pub fn request_ids(mut self, carried: bool) -> Builder {
        self.without_request_ids = !carried;
        self
    }

    /// The seed of all choices among nodes; from the system unless given. Ids of writes do not come from it: they stay
    /// different between clients of one seed.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = Some(seed);
        self
    }

    /// A client with the routes of a file, as [`Client::open`].
    ///
    /// # Errors
    /// [`Error::Config`] with every problem of the file and its line.
    pub fn open(mut self, file: impl AsRef<Path>) -> Result<Client, Error> {
        let configured = config::read(file.as_ref())?;
        self.settings = self.settings.or(configured.settings.clone());
        let core = Core::new(self.options()?, Source::File);
        core.take_file(&configured);
        Ok(Client::new(core, None))
    }

    /// A client with the routes that a node tells, as [`Client::connect`].
    ///
    /// # Errors
    /// [`Error::Usage`] for what is no URL, [`Error::AllFailed`] when none of the nodes tells the routes.
    pub async fn connect(self, urls: &str) -> Result<Client, Error> {
        let address = |text: &str| text.parse::<Address>().map_err(|error| Error::Usage(format!("url: {error}")));
        let texts = urls.split(',').map(str::trim).filter(|text| !text.is_empty());
        let seeds = texts.map(address).collect::<Result<Vec<_>, _>>()?;
        if seeds.is_empty() {
            return Err(Error::Usage("url: no URL is given".into()));
        }
        let core = Core::new(self.options()?, Source::Cluster(seeds));
        let until = core.deadline();
        core.reload(until).await.map_err(|last| Error::AllFailed { last })?;
        let follower = Follower::begin(&core);
        Ok(Client::new(core, Some(follower)))
    }

    fn options(&self) -> Result<Options, Error> {
        if let Some(problem) = &self.problem {
            return Err(Error::Usage(problem.clone()));
        }
        let settings = self.settings.clone();
        let limited =
            |given: Option<Duration>, usual| Some(given.unwrap_or(usual)).filter(|time: &Duration| !time.is_zero());
        Ok(Options {
            policy: settings.policy.unwrap_or_default(),
            consistency: settings.consistency.unwrap_or_default(),
            deadline: settings.deadline.unwrap_or(limits::DEADLINE),
            wire: Wire {
                connect_timeout: limited(settings.connect_timeout, limits::CONNECT_TIMEOUT),
                read_timeout: limited(settings.read_timeout, limits::READ_TIMEOUT),
                authorization: settings.authorization,
            },
            request_ids: !self.without_request_ids,
            chance: Chance::new(self.seed.unwrap_or_else(from_the_system)),
        })
    }
}
