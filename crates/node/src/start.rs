//! How a node comes up: its log, what is there of its tables, and what runs beside its callers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use cachesql_group::Drive;
use cachesql_group::disk::{Disk, VolatileDisk};
use cachesql_peer::{Network, TcpNetwork};

use crate::config::NodeConfig;
use crate::configured::{Configured, Loading, check_names, sources};
use crate::core::Core;
use crate::error::NodeError;
use crate::log::{LocalLog, Log};
use crate::node::Node;
use crate::office::{Duties, Office, notice_tables};
use crate::reload::Reload;
use crate::replica::{open_folder, start_alone, start_member};
use crate::retention;
use crate::state::State;
use crate::tasks::Tasks;
use crate::writer::Writer;

impl Node {
    /// Starts a node. It returns once the configuration is understood; tables are loaded behind it, each as soon as its
    /// turn comes, and a load that fails is tried again. A member of a group of several founds it, or is taken in, behind it too. Must
    /// be called inside a tokio runtime with time enabled.
    pub async fn start(config: NodeConfig) -> Result<Arc<Node>, NodeError> {
        let Some(data) = &config.data else {
            let disk = VolatileDisk::default();
            return match &config.cluster {
                Some(_) => Node::start_in(config, TcpNetwork, disk, Drive::Inline, "memory").await,
                None => Node::start_on(config, |state| Arc::new(LocalLog::new(state))).await,
            };
        };
        let folder = data.join(folder_name(&config.group));
        let (disk, place) = (open_folder(&folder).await?, format!("data folder {}", folder.display()));
        Node::start_in(config, TcpNetwork, disk, Drive::Thread, &place).await
    }

    /// The same on a network and a disk of the caller's; `place` names the disk in errors.
    pub async fn start_in<N: Network + Clone, D: Disk + Clone>(
        config: NodeConfig,
        network: N,
        disk: D,
        drive: Drive,
        place: &str,
    ) -> Result<Arc<Node>, NodeError> {
        check_names(&config.tables)?;
        let core = Arc::new(Core::new(&config));
        let state = Arc::new(State::new(core.clone()));
        let log = match &config.cluster {
            Some(cluster) => start_member(&config, cluster, network, disk, drive, place, state.clone()).await?,
            None => start_alone(&config, disk, place, state.clone()).await?,
        };
        let feeders = Tasks::new();
        feeders.spawn(log.compact(feeders.stop_signal()));
        let taken = config.cluster.is_none();
        Node::assemble(config, core, state, Arc::new(log), feeders, taken).await
    }

    /// The same on a log of the caller's, which applies to the given state what is agreed on.
    pub async fn start_on(
        config: NodeConfig,
        log: impl FnOnce(Arc<State>) -> Arc<dyn Log>,
    ) -> Result<Arc<Node>, NodeError> {
        check_names(&config.tables)?;
        let core = Arc::new(Core::new(&config));
        let state = Arc::new(State::new(core.clone()));
        let log = log(state.clone());
        Node::assemble(config, core, state, log, Tasks::new(), true).await
    }

    /// `leads` says that this member leads from the start, so that what is wrong with its tables is an error at once.
    async fn assemble(
        config: NodeConfig,
        core: Arc<Core>,
        state: Arc<State>,
        log: Arc<dyn Log>,
        feeders: Tasks,
        leads: bool,
    ) -> Result<Arc<Node>, NodeError> {
        let configured = Configured::without_loads(&config);
        let sources = sources(&configured)?;
        let configured = Arc::new(ArcSwap::from_pointee(configured));
        let writer_task = Tasks::new();
        let (writer, task) = Writer::new(core.clone(), state, log.clone(), config.seed);
        writer_task.spawn(task);

        let office = Arc::new(Office::new(None));
        let duties = Arc::new(Duties {
            core: core.clone(),
            writer: writer.clone(),
            log: log.clone(),
            configured: configured.clone(),
            office: office.clone(),
        });
        if leads {
            duties.take().await?;
            office.send_replace(Some(0));
        }
        let loading = Loading::new(core.clone(), writer.clone(), office.clone());
        let begun = loading.begin(Configured::without_loads(&config), sources, None, &feeders);
        configured.store(Arc::new(begun));
        let sweep = retention::sweep(
            core.clone(),
            writer.clone(),
            config.sweep_interval,
            office.subscribe(),
            feeders.stop_signal(),
        );
        feeders.spawn(sweep);
        feeders.spawn(duties.clone().run(leads, feeders.stop_signal()));
        feeders.spawn(notice_tables(core.clone(), feeders.stop_signal()));
        let reload = Reload::new(config, duties, loading);
        let has_others = reload.has_others();
        let node = Node { core, writer, log, configured, reload, has_others, feeders, writer_task };
        let node = Arc::new(node);
        node.log.serve(&node);
        Ok(node)
    }
}

/// The name of a group's folder: its own, with every byte that a file system may take otherwise written in hexadecimal.
fn folder_name(group: &str) -> String {
    let mut name = String::from("group-");
    for byte in group.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            // Capitals too: there are file systems that do not tell them apart.
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    name
}
