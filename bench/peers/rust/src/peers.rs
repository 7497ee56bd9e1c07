//! The peers: a few lines each.

use distkit::lock::{LockOptions, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use distkit::{DistkitError, DistkitRedisKey};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use rslock::{LockError, LockManager};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgAdvisoryLock, PgAdvisoryLockGuard, PgPool, PgPoolOptions};
use sqlx::Postgres;
use std::sync::Arc;
use std::time::Duration;

/// Why a job has no result.
pub enum Trouble {
    Cannot(String),
    Error(String),
}

impl<E: std::fmt::Display> From<E> for Trouble {
    fn from(error: E) -> Self {
        Trouble::Error(error.to_string())
    }
}

type Result<T> = std::result::Result<T, Trouble>;

pub enum Peer {
    Distkit {
        connection: ConnectionManager,
        best: bool,
    },
    Rslock {
        locks: LockManager,
        best: bool,
    },
    Sqlx {
        url: String,
        pool: PgPool,
        size: u32,
    },
}

pub enum Lock {
    Mutex(Arc<Mutex>),
    RwLock(Arc<RwLock>),
    Rslock {
        locks: LockManager,
        name: String,
        ttl: Duration,
    },
    Sqlx {
        lock: PgAdvisoryLock,
        connection: Option<PoolConnection<Postgres>>,
    },
}

pub enum Held {
    Mutex(MutexGuard),
    Read(RwLockReadGuard),
    Write(RwLockWriteGuard),
    Rslock(rslock::Lock),
    Sqlx(PgAdvisoryLockGuard<PoolConnection<Postgres>>),
}

/// Nothing, if the peer gave up: the lock was not free in time, or the server did not answer in time.
fn unless_late<T>(asked: std::result::Result<T, DistkitError>) -> Result<Option<T>> {
    match asked {
        Ok(done) => Ok(Some(done)),
        Err(DistkitError::LockError(distkit::lock::LockError::Timeout { .. })) => Ok(None),
        Err(DistkitError::RedisError(error)) if error.is_timeout() => {
            eprintln!("distkit: {error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

async fn pool(url: &str, size: u32) -> Result<PgPool> {
    // A server that has no connection left is asked again until then.
    let patience = Duration::from_secs(10);
    Ok(PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(patience)
        .connect(url)
        .await?)
}

impl Peer {
    pub async fn connect(name: &str, best: bool, addresses: &[String]) -> Result<Peer> {
        match name {
            "distkit" => {
                let client = redis::Client::open(addresses[0].as_str())?;
                // It would try for long to reach what isn't there.
                client.get_multiplexed_async_connection().await?;
                let mut config = ConnectionManagerConfig::new();
                if best {
                    config = config.set_response_timeout(Some(Duration::from_secs(5)));
                }
                let connection = ConnectionManager::new_with_config(client, config).await?;
                Ok(Peer::Distkit { connection, best })
            }
            "rslock" => {
                let mut clients = Vec::new();
                for address in addresses {
                    let client = redis::Client::open(address.as_str())?;
                    client.get_multiplexed_async_connection().await?;
                    clients.push(client);
                }
                let mut locks = LockManager::from_clients(clients);
                if best {
                    locks.set_retry(300, Duration::from_millis(10));
                }
                Ok(Peer::Rslock { locks, best })
            }
            "sqlx" => {
                let url = addresses[0].clone();
                Ok(Peer::Sqlx {
                    pool: pool(&url, 1).await?,
                    url,
                    size: 1,
                })
            }
            _ => Err(Trouble::Error(format!("no peer here is called '{name}'"))),
        }
    }

    pub fn version(&self) -> &'static str {
        match self {
            Peer::Distkit { .. } => concat!(
                "distkit ",
                env!("VERSION_DISTKIT"),
                ", redis-rs ",
                env!("VERSION_REDIS")
            ),
            Peer::Rslock { .. } => concat!(
                "rslock ",
                env!("VERSION_RSLOCK"),
                ", redis-rs ",
                env!("VERSION_REDIS")
            ),
            Peer::Sqlx { .. } => concat!("sqlx ", env!("VERSION_SQLX")),
        }
    }

    pub fn settings(&self) -> &'static str {
        match self {
            Peer::Distkit { best: false, .. } => {
                "tries every 50 ms; renewed; answers within 500 ms"
            }
            Peer::Distkit { best: true, .. } => "tries every 2 ms; renewed; answers within 5 s",
            Peer::Rslock { best: false, .. } => "retry after 0 to 200 ms, 3 tries",
            Peer::Rslock { best: true, .. } => "retry after 0 to 10 ms, 300 tries",
            Peer::Sqlx { .. } => "waits in pg_advisory_lock, a connection per worker",
        }
    }

    pub fn has_choice(&self) -> bool {
        !matches!(self, Peer::Sqlx { .. })
    }

    /// Does before the clock starts what so many workers need.
    pub async fn prepare(&mut self, workers: u32, shared: bool) -> Result<()> {
        if let Peer::Sqlx {
            url,
            pool: old,
            size,
        } = self
        {
            if *size != workers {
                let previous = old.clone();
                tokio::spawn(async move { previous.close().await });
                (*old, *size) = (pool(url, workers).await?, workers);
            }
        }
        if shared && !matches!(self, Peer::Distkit { .. }) {
            return Err(Trouble::Cannot("it has no shared lock".into()));
        }
        Ok(())
    }

    pub async fn lock(&self, name: &str, ttl: Duration, shared: bool) -> Result<Lock> {
        Ok(match self {
            Peer::Distkit { connection, best } => {
                let key = DistkitRedisKey::try_from(name.replace(':', "-"))?;
                let mut options = LockOptions::builder(key, connection.clone()).ttl(ttl);
                if *best {
                    options = options.retry_interval(Duration::from_millis(2));
                }
                match shared {
                    true => Lock::RwLock(RwLock::new(options.build())),
                    false => Lock::Mutex(Mutex::new(options.build())),
                }
            }
            Peer::Rslock { locks, .. } => Lock::Rslock {
                locks: locks.clone(),
                name: name.into(),
                ttl,
            },
            Peer::Sqlx { pool, .. } => Lock::Sqlx {
                lock: PgAdvisoryLock::new(name),
                connection: Some(pool.acquire().await?),
            },
        })
    }
}

impl Lock {
    /// Nothing, if the peer gave up; who can be told how long to wait is told.
    pub async fn acquire(&mut self, shared: bool, wait: Duration) -> Result<Option<Held>> {
        Ok(match self {
            Lock::Mutex(lock) => {
                unless_late(lock.try_lock_with_timeout(wait).await)?.map(Held::Mutex)
            }
            Lock::RwLock(lock) if shared => {
                unless_late(lock.try_read_with_timeout(wait).await)?.map(Held::Read)
            }
            Lock::RwLock(lock) => {
                unless_late(lock.try_write_with_timeout(wait).await)?.map(Held::Write)
            }
            Lock::Rslock { locks, name, ttl } => match locks.lock(name.as_str(), *ttl).await {
                Ok(held) => Some(Held::Rslock(held)),
                Err(LockError::Unavailable | LockError::TtlExceeded) => None,
                Err(error) => return Err(error.into()),
            },
            Lock::Sqlx { lock, connection } => {
                let connection = connection.take().ok_or("its wait was broken off before")?;
                Some(Held::Sqlx(lock.acquire(connection).await?))
            }
        })
    }

    pub async fn release(&mut self, held: Held) -> Result<()> {
        match held {
            Held::Mutex(guard) => drop(unless_late(guard.release().await)?),
            Held::Read(guard) => drop(unless_late(guard.release().await)?),
            Held::Write(guard) => drop(unless_late(guard.release().await)?),
            Held::Rslock(lock) => lock.release().await,
            Held::Sqlx(guard) => {
                let back = guard.release_now().await?;
                if let Lock::Sqlx { connection, .. } = self {
                    *connection = Some(back);
                }
            }
        }
        Ok(())
    }
}

impl Held {
    /// For good: a session of PostgreSQL keeps its locks, and gives its connection back for the next.
    pub fn keep(self, kept: &mut Vec<Held>) {
        match self {
            Held::Sqlx(guard) => drop(guard.leak()),
            other => kept.push(other),
        }
    }
}
