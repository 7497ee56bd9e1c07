// node-redlock or redis-semaphore over ioredis, driven line by line; tests/interop/run says how.
'use strict';

const readline = require('readline');
const Redis = require('ioredis');

const client = new Redis({ port: Number(process.argv[2]) });

const neighbours = {
  redlock: () => {
    const Redlock = require('redlock');
    const locks = new Redlock([client], { retryCount: 0 });
    let lock;
    return {
      lock: async (key, ttl) => {
        lock = await locks.lock(key, ttl);
        return true;
      },
      unlock: () => lock.unlock(),
    };
  },
  semaphore: () => {
    const { Mutex } = require('redis-semaphore');
    let mutex;
    return {
      // It puts "mutex:" before the name itself.
      lock: (key, ttl) => {
        mutex = new Mutex(client, key.replace(/^mutex:/, ''), {
          lockTimeout: ttl,
          refreshInterval: 0,
        });
        return mutex.tryAcquire();
      },
      unlock: () => mutex.release(),
    };
  },
};

const neighbour = neighbours[process.argv[3]]();

async function obey([command, ...words]) {
  try {
    if (command === 'lock') {
      return (await neighbour.lock(words[0], Number(words[1]))) ? 'locked' : 'busy';
    }
    await neighbour.unlock();
    return 'unlocked';
  } catch (error) {
    return command === 'lock' ? 'busy' : 'refused';
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(await obey(line.split(' ')));
  }
  client.disconnect();
})();
