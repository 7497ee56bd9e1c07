//! The driver of the peers in Rust; bench/peers/README.md says what it is told and what it answers.

mod peers;

use peers::{Held, Lock, Peer, Trouble};
use serde_json::{json, Value};
use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, Write};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MOST_TOLD: u64 = 200_000;
/// So long after the end of a job's time a wait ends.
const GRACE: Duration = Duration::from_secs(8);
const FOREVER: Duration = Duration::from_secs(86_400);

type Result<T> = std::result::Result<T, Trouble>;

struct Job {
    name: String,
    distinct: bool,
    workers: u32,
    shared: f64,
    seconds: f64,
    most: u64,
    hold: Duration,
    ttl: Duration,
    register: String,
    records: bool,
    count: u64,
}

impl Job {
    fn new(said: &Value) -> Result<Job> {
        let number = |key: &str, otherwise: f64| match said.get(key) {
            None => Ok(otherwise),
            Some(value) => value
                .as_f64()
                .filter(|number| *number >= 0.0)
                .ok_or(format!("{key} has to be a number")),
        };
        let text = |key: &str| {
            said.get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_string()
        };
        let is = |key: &str| said.get(key).and_then(Value::as_bool).unwrap_or(false);
        Ok(Job {
            name: text("name"),
            distinct: is("distinct"),
            workers: number("workers", 0.0)? as u32,
            shared: number("shared", 0.0)?,
            seconds: number("seconds", 0.0)?,
            most: number("most", 0.0)? as u64,
            hold: Duration::from_micros(number("hold_us", 0.0)? as u64),
            ttl: Duration::from_millis(number("ttl_ms", 30_000.0)? as u64),
            register: text("register"),
            records: is("records"),
            count: number("count", 0.0)? as u64,
        })
    }
}

/// Sees to it that a lock's holders are alone, or readers only.
#[derive(Default)]
struct Witness {
    register: String,
    readers: AtomicI64,
    writers: AtomicI64,
    overlaps: AtomicU64,
}

impl Witness {
    fn new(register: String) -> Arc<Witness> {
        Arc::new(Witness {
            register,
            ..Witness::default()
        })
    }

    /// The file of the one that holds the lock is there already if somebody else does.
    fn enter(&self) -> std::io::Result<bool> {
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&self.register)
        {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn watch(&self, shared: bool, hold: Duration) -> Result<()> {
        let (here, others) = match shared {
            true => (&self.readers, &self.writers),
            false => (&self.writers, &self.readers),
        };
        here.fetch_add(1, SeqCst);
        let registers = !shared && !self.register.is_empty();
        let mine = registers && self.enter()?;
        if others.load(SeqCst) > 0 || (registers && !mine) {
            self.overlaps.fetch_add(1, SeqCst);
        }
        if !hold.is_zero() {
            tokio::time::sleep(hold).await;
        }
        if mine {
            std::fs::remove_file(&self.register)?;
        }
        here.fetch_sub(1, SeqCst);
        Ok(())
    }
}

/// A work job under way.
struct Shift {
    job: Job,
    begin: Instant,
    cycles: AtomicU64,
    failed: AtomicU64,
}

#[derive(Default)]
struct Told {
    records: Vec<[u64; 4]>,
    times: Vec<u64>,
}

impl Shift {
    fn until(&self) -> Instant {
        self.begin
            + if self.job.seconds > 0.0 {
                Duration::from_secs_f64(self.job.seconds)
            } else {
                FOREVER
            }
    }

    fn over(&self) -> bool {
        Instant::now() >= self.until()
    }

    /// A peer that gives up is asked again while there is time.
    async fn wait(&self, lock: &mut Lock, shared: bool) -> Result<Option<Held>> {
        loop {
            let left = (self.until() + GRACE).saturating_duration_since(Instant::now());
            let asked = lock.acquire(shared, left.max(Duration::from_millis(1)));
            // Those that have no limit of their own are broken off.
            if let Ok(held) = tokio::time::timeout(left + Duration::from_secs(1), asked).await {
                if let Some(held) = held? {
                    return Ok(Some(held));
                }
            }
            self.failed.fetch_add(1, SeqCst);
            if self.over() {
                return Ok(None);
            }
        }
    }

    async fn worker(self: Arc<Shift>, mut lock: Lock, witness: Arc<Witness>) -> Result<Told> {
        let mut told = Told::default();
        let mut round = 0;
        while (self.job.most == 0 || round < self.job.most) && !self.over() {
            round += 1;
            let shared = self.job.shared > 0.0 && rand::random::<f64>() < self.job.shared;
            let asked = micros();
            let Some(held) = self.wait(&mut lock, shared).await? else {
                break;
            };
            let from = micros();
            witness.watch(shared, self.job.hold).await?;
            let to = micros();
            lock.release(held).await?;
            if self.cycles.fetch_add(1, SeqCst) >= MOST_TOLD {
                continue;
            }
            if self.job.records {
                told.records.push([asked, from, to, 0]);
            } else {
                told.times.push(micros() - asked);
            }
        }
        Ok(told)
    }
}

fn micros() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_micros() as u64
}

fn rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap_or("");
    line.split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse().ok())
        .unwrap_or(0)
}

async fn work(peer: &mut Peer, job: Job) -> Result<Value> {
    if job.workers < 1 || (job.seconds == 0.0 && job.most == 0) {
        return Err("a work job needs workers, and seconds or most".into());
    }
    peer.prepare(job.workers, job.shared > 0.0).await?;
    let mut everyone = Vec::new();
    let mut witnesses = vec![Witness::new(job.register.clone())];
    for i in 0..job.workers {
        let mut name = job.name.clone();
        if job.distinct {
            name += &format!("-{i}");
            let register = if job.register.is_empty() {
                String::new()
            } else {
                format!("{}-{i}", job.register)
            };
            witnesses.push(Witness::new(register));
        }
        let lock = peer.lock(&name, job.ttl, job.shared > 0.0).await?;
        everyone.push((lock, witnesses[witnesses.len() - 1].clone()));
    }
    let shift = Arc::new(Shift {
        job,
        begin: Instant::now(),
        cycles: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let tasks: Vec<_> = everyone
        .into_iter()
        .map(|(lock, witness)| tokio::spawn(shift.clone().worker(lock, witness)))
        .collect();
    let mut ends = Vec::new();
    for task in tasks {
        ends.push(task.await?);
    }
    let seconds = shift.begin.elapsed().as_secs_f64();
    let mut all = Told::default();
    for end in ends {
        let told = end?;
        all.records.extend(told.records);
        all.times.extend(told.times);
    }
    let mut answer = json!({
        "cycles": shift.cycles.load(SeqCst),
        "seconds": seconds,
        "failed": shift.failed.load(SeqCst),
        "overlaps": witnesses.iter().map(|witness| witness.overlaps.load(SeqCst)).sum::<u64>(),
        "rss_kb": rss_kb(),
        "records": all.records,
    });
    if !shift.job.records {
        answer["cycle_us"] = json!(all.times);
    }
    Ok(answer)
}

async fn hold(peer: &mut Peer, job: Job, kept: &mut Vec<Held>) -> Result<Value> {
    if job.count < 1 {
        return Err("a hold job needs a count".into());
    }
    peer.prepare(1, false).await?;
    let begin = Instant::now();
    let mut times = Vec::new();
    for i in 0..job.count {
        let asked = Instant::now();
        let name = format!("{}-{i}", job.name);
        let mut lock = peer.lock(&name, job.ttl, false).await?;
        lock.acquire(false, FOREVER)
            .await?
            .ok_or(format!("{name} is taken"))?
            .keep(kept);
        times.push(asked.elapsed().as_secs_f64() * 1e6);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let last = times.len().min(100);
    let mut last = times.split_off(times.len() - last);
    last.sort_by(f64::total_cmp);
    Ok(
        json!({"held": job.count, "seconds": seconds, "last_us": last[last.len() / 2], "rss_kb": rss_kb()}),
    )
}

async fn obey(peer: &mut Peer, kept: &mut Vec<Held>, line: &str) -> Result<Value> {
    let said: Value = serde_json::from_str(line)?;
    let job = Job::new(&said)?;
    match said.get("do").and_then(Value::as_str) {
        Some("work") => work(peer, job).await,
        Some("hold") => hold(peer, job, kept).await,
        other => Err(Trouble::Cannot(format!(
            "there is no job '{}'",
            other.unwrap_or("")
        ))),
    }
}

fn tell(answer: Result<Value>) {
    let line = match answer {
        Ok(answer) => answer,
        Err(Trouble::Cannot(why)) => json!({ "cannot": why }),
        Err(Trouble::Error(what)) => json!({ "error": what }),
    };
    let _ = writeln!(std::io::stdout(), "{line}"); // whoever has gone doesn't need it
}

fn run() -> Result<std::convert::Infallible> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.len() < 3 || !["default", "best"].contains(&words[1].as_str()) {
        return Err("usage: driver distkit|rslock|sqlx default|best ADDRESS...".into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut peer = runtime.block_on(Peer::connect(&words[0], words[1] == "best", &words[2..]))?;
    let mut ready = json!({"ready": true, "version": peer.version(), "settings": peer.settings()});
    if !peer.has_choice() {
        ready["best"] = json!(false);
    }
    tell(Ok(ready));
    let mut kept = Vec::new();
    for line in std::io::stdin().lock().lines() {
        tell(runtime.block_on(obey(&mut peer, &mut kept, &line?)));
    }
    std::process::exit(0) // what is kept is not given back
}

fn main() {
    let Err(trouble) = run();
    tell(Err(trouble));
    std::process::exit(1);
}
