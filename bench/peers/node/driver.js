// The driver of the peers in Node.js; bench/peers/README.md says what it is told and what it answers.
'use strict';

const fs = require('fs');
const readline = require('readline');
const { performance } = require('perf_hooks');
const { setTimeout: sleep } = require('timers/promises');
const Redis = require('ioredis');

const MOST_TOLD = 200_000;
const GRACE = 9; // seconds after the end of a job's time, then what still waits is left behind

class Cannot extends Error {}

// Resolved on the way of a require, as not every package lets its package.json be asked for.
function version(name) {
  const folder = require.resolve(name).split(`/${name}/`)[0];
  return `${name} ${JSON.parse(fs.readFileSync(`${folder}/${name}/package.json`)).version}`;
}

// A peer makes locks: acquire() is true when the lock is there, and false if the peer gave up.
const peers = {
  redlock: (best, clients) => {
    const Redlock = require('redlock');
    const options = best ? { retryDelay: 10, retryJitter: 5, retryCount: 100 } : {};
    const locks = new Redlock(clients, options);
    locks.on('clientError', (error) => console.error(`redlock: ${error.message}`));
    return {
      settings: best
        ? 'retry after 5 to 15 ms, 100 retries'
        : 'retry after 100 to 300 ms, 10 retries',
      lock: (name, ttl) => {
        let lock;
        return {
          acquire: async () => {
            try {
              lock = await locks.lock(name, ttl);
              return true;
            } catch (error) {
              if (error instanceof Redlock.LockError) return false;
              throw error;
            }
          },
          release: async () => {
            try {
              await lock.unlock();
            } catch (error) {
              if (!(error instanceof Redlock.LockError)) throw error;
              console.error(error.message);
            }
          },
        };
      },
    };
  },
  'redis-semaphore': (best, clients) => {
    const { Mutex } = require('redis-semaphore');
    if (clients.length > 1) throw new Error('redis_semaphore is measured on one server');
    const options = best ? { retryInterval: 2 } : {};
    return {
      settings: `retry after ${best ? 2 : 10} ms, for 10 s; renewed`,
      lock: (name, ttl) => {
        const mutex = new Mutex(clients[0], name, {
          ...options,
          lockTimeout: ttl,
          onLockLost: (error) => console.error(error.message),
        });
        return { acquire: () => mutex.tryAcquire(), release: () => mutex.release() };
      },
    };
  },
};

const micros = () => Math.round((performance.timeOrigin + performance.now()) * 1000);
const rssKb = () => Math.round(process.memoryUsage().rss / 1024);

// Makes the file of the one that holds the lock; it's there already if somebody else does.
function enter(register) {
  try {
    fs.closeSync(fs.openSync(register, 'wx'));
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function number(job, key, least, otherwise = 0) {
  const value = job[key] ?? otherwise;
  if (typeof value !== 'number' || !(value >= least)) {
    throw new Error(`${key} has to be a number of at least ${least}`);
  }
  return value;
}

const ttlOf = (job) => number(job, 'ttl_ms', 1, 30_000);

async function work(peer, job) {
  const workers = number(job, 'workers', 1);
  const seconds = number(job, 'seconds', 0);
  const most = number(job, 'most', 0);
  const hold = number(job, 'hold_us', 0) / 1000;
  if (!seconds && !most) throw new Error('a work job needs seconds or most');
  if (number(job, 'shared', 0)) throw new Cannot('it has no read/write lock');
  const answer = { cycles: 0, seconds: 0, failed: 0, overlaps: 0, rss_kb: 0, records: [] };
  const times = [];
  let busy = workers;
  let done = false;
  const begin = performance.now();
  const over = () => seconds > 0 && performance.now() - begin >= seconds * 1000;

  // A peer that gives up is asked again while there is time.
  async function wait(lock) {
    while (!(await lock.acquire())) {
      answer.failed++;
      if (over()) return false;
    }
    return true;
  }

  async function worker(lock, register) {
    for (let round = 0; (!most || round < most) && !over(); round++) {
      const asked = micros();
      if (!(await wait(lock))) break;
      if (done) return lock.release();
      const from = micros();
      const alone = register && enter(register);
      if (register && !alone) answer.overlaps++;
      if (hold) await sleep(hold);
      if (alone) fs.unlinkSync(register);
      const to = micros();
      await lock.release();
      if (++answer.cycles > MOST_TOLD) continue;
      if (job.records) answer.records.push([asked, from, to, 0]);
      else times.push(micros() - asked);
    }
    busy--;
  }

  const rounds = Array.from({ length: workers }, (_, i) => {
    const own = job.distinct ? `-${i}` : '';
    return worker(peer.lock(job.name + own, ttlOf(job)), job.register && job.register + own);
  });
  // All of them come to their end before one's error is told.
  const end = Promise.allSettled(rounds);
  const ends = await (seconds ? Promise.race([end, sleep((seconds + GRACE) * 1000, [])]) : end);
  done = true;
  const failure = ends.find(({ status }) => status === 'rejected');
  if (failure) throw failure.reason;
  answer.failed += busy;
  answer.seconds = (performance.now() - begin) / 1000;
  answer.rss_kb = rssKb();
  return job.records ? answer : { ...answer, cycle_us: times };
}

const kept = [];

async function hold(peer, job) {
  const count = number(job, 'count', 1);
  const times = [];
  const begin = performance.now();
  for (let i = 0; i < count; i++) {
    const asked = performance.now();
    const lock = peer.lock(`${job.name}-${i}`, ttlOf(job));
    if (!(await lock.acquire())) throw new Error(`${job.name}-${i} is taken`);
    kept.push(lock);
    times.push((performance.now() - asked) * 1000);
  }
  const seconds = (performance.now() - begin) / 1000;
  const last = times.slice(-100).sort((a, b) => a - b);
  return { held: count, seconds, last_us: last[last.length >> 1], rss_kb: rssKb() };
}

async function obey(peer, line) {
  try {
    const job = JSON.parse(line);
    const does = new Map([['work', work], ['hold', hold]]).get(job?.do);
    if (!does) throw new Cannot(`there is no job '${job?.do}'`);
    return await does(peer, job);
  } catch (error) {
    return error instanceof Cannot ? { cannot: error.message } : { error: error.message };
  }
}

const tell = (answer) => process.stdout.write(JSON.stringify(answer) + '\n');

async function connect([name, settings, ...addresses]) {
  const make = peers[name?.replace('_', '-')];
  if (!make || !['default', 'best'].includes(settings) || !addresses.length) {
    throw new Error('usage: driver.js redlock|redis_semaphore default|best ADDRESS...');
  }
  const clients = addresses.map((address) => new Redis(address, { lazyConnect: true }));
  for (const client of clients) {
    client.on('error', (error) => console.error(error.message));
    await client.connect();
  }
  const { settings: chosen, lock } = make(settings === 'best', clients);
  tell({
    ready: true,
    version: [name.replace('_', '-'), 'ioredis'].map(version).join(', '),
    settings: chosen,
  });
  return { lock };
}

(async () => {
  let peer;
  try {
    peer = await connect(process.argv.slice(2));
  } catch (error) {
    tell({ error: error.message });
    process.exit(1);
  }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    tell(await obey(peer, line));
  }
  process.exit(0);
})();
