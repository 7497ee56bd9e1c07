"""The driver of the peers in Python; bench/peers/README.md says what it is told and what it answers."""

import collections
import importlib.metadata
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time

MOST_TOLD = 200_000
GRACE = 8  # seconds after the end of a job's time in which a wait may still end well


class Cannot(Exception):
    pass


class Peer:
    most = None  # workers, if there is a limit
    choice = True  # whether there are settings to choose from


class RedisPy(Peer):
    def __init__(self, best, addresses):
        import redis  # here, so that a peer has only its own library in memory

        self.errors = redis.exceptions
        pool = (redis.BlockingConnectionPool if best else redis.ConnectionPool).from_url(addresses[0])
        self.most = None if best else pool.max_connections
        self.client = redis.Redis(connection_pool=pool)
        self.client.ping()
        self.options = {"sleep": 0.005, "thread_local": False} if best else {}
        self.settings = "tries every 5 ms, BlockingConnectionPool" if best else "tries every 100 ms"
        self.version = "redis-py " + importlib.metadata.version("redis")

    def lock(self, name, ttl, shared):
        if shared:
            raise Cannot("redis-py has no read/write lock")
        lock = self.client.lock(name, timeout=ttl, **self.options)

        def release():
            try:
                lock.release()
            except self.errors.LockNotOwnedError as error:
                print(f"{name}: {error}", file=sys.stderr)

        return lambda wait: lock.acquire(blocking_timeout=wait), release


class InDirectory(Peer):
    def __init__(self, addresses):
        self.directory = addresses[0]
        with open(os.path.join(self.directory, "ready"), "w"):
            pass

    def path(self, name):
        return os.path.join(self.directory, name + ".lock")


class FileLock(InDirectory):
    def __init__(self, best, addresses):
        super().__init__(addresses)
        self.options = {"poll_interval": 0.001} if best else {}
        self.settings = "tries every 1 ms" if best else "tries every 50 ms"
        self.version = "filelock " + importlib.metadata.version("filelock")

    def lock(self, name, ttl, shared):
        import filelock

        if shared:
            raise Cannot("a FileLock is never shared")
        # Whoever has the same instance has the lock already: one for each worker.
        lock = filelock.FileLock(self.path(name), **self.options)

        def acquire(wait):
            try:
                lock.acquire(timeout=-1 if wait is None else wait)
                return True
            except filelock.Timeout:
                return False

        return acquire, lock.release


class PortaLocker(InDirectory):
    def __init__(self, best, addresses):
        super().__init__(addresses)
        self.best = best
        self.settings = "blocks in flock(2)" if best else "tries every 250 ms for 5 s"
        self.version = "portalocker " + importlib.metadata.version("portalocker")

    def lock(self, name, ttl, shared):
        import portalocker

        flags = portalocker.LockFlags.SHARED if shared else portalocker.LockFlags.EXCLUSIVE
        if not self.best:
            flags |= portalocker.LockFlags.NON_BLOCKING
        lock = portalocker.Lock(self.path(name), flags=flags)

        def acquire(wait):
            try:
                lock.acquire()
                return True
            except portalocker.AlreadyLocked:
                return False

        return acquire, lock.release


class Flock(InDirectory):
    """flock(1) as in a shell's `( flock 9; … ) 9>FILE`: a process for each ask, a close to give it back."""

    choice = False

    def __init__(self, best, addresses):
        super().__init__(addresses)
        self.settings = "a process `flock DESCRIPTOR` for each ask, given back by close"
        self.version = subprocess.run(["flock", "--version"], capture_output=True, text=True).stdout.strip()

    def lock(self, name, ttl, shared):
        path = self.path(name)
        descriptor = None

        def acquire(wait):
            nonlocal descriptor
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            command = ["flock", "-s" if shared else "-x", str(descriptor)]
            if wait is not None:
                command[1:1] = ["-E", "75", "-w", f"{max(wait, 0.001):.3f}"]
            status = subprocess.run(command, pass_fds=[descriptor]).returncode
            if status == 0:
                return True
            release()
            if status != 75:
                raise OSError(f"flock {path}: status {status}")
            return False

        def release():
            os.close(descriptor)

        return acquire, release


PEERS = {"redis_py": RedisPy, "filelock": FileLock, "portalocker": PortaLocker, "flock": Flock}


class Number:
    """An atomic number."""

    def __init__(self):
        self.lock = threading.Lock()
        self.value = 0

    def add(self, by):
        with self.lock:
            self.value += by


class Witness:
    """Sees to it that a lock's holders are alone, or readers only."""

    def __init__(self, register, counts):
        self.register, self.counts = register, counts
        self.readers, self.writers = Number(), Number()
        self.overlaps = Number()

    def watch(self, shared, hold):
        met, mine = False, False
        if self.counts:
            here, others = (self.readers, self.writers) if shared else (self.writers, self.readers)
            here.add(1)
            met = others.value > 0
        if self.register and not shared:
            try:
                os.close(os.open(self.register, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                mine = True
            except FileExistsError:
                met = True
        if met:
            self.overlaps.add(1)
        if hold:
            time.sleep(hold)
        if mine:
            os.unlink(self.register)
        if self.counts:
            here.add(-1)


def micros():
    return time.time_ns() // 1000


def rss_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def number(job, key, least, otherwise=0):
    value = job.get(key, otherwise)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < least:
        raise ValueError(f"{key} has to be a number of at least {least}")
    return value


def ttl_of(job):
    return number(job, "ttl_ms", 1, 30_000) / 1000


def work(peer, job):
    workers, most = int(number(job, "workers", 1)), int(number(job, "most", 0))
    seconds, part, hold = number(job, "seconds", 0), number(job, "shared", 0), number(job, "hold_us", 0) / 1e6
    if not seconds and not most:
        raise ValueError("a work job needs seconds or most")
    if peer.most and workers > peer.most:
        raise Cannot(f"its pool has {peer.most} connections, and more threads at once get an error")
    name, register, distinct = job["name"], job.get("register"), job.get("distinct", False)
    told = itertools.count()
    failed, cycles = Number(), Number()
    records, times, errors = collections.deque(), collections.deque(), []
    left = Number()

    def locks(of):
        return {shared: peer.lock(of, ttl_of(job), shared) for shared in ([False, True] if part else [False])}

    def witness(worker=""):
        return Witness(register and f"{register}{worker}", part > 0)

    if distinct:
        each = [(locks(f"{name}-{i}"), witness(f"-{i}")) for i in range(workers)]
    else:
        everyone = witness()
        each = [(locks(name), everyone) for i in range(workers)]

    begin = time.monotonic()
    until = begin + seconds if seconds else None

    def over():
        return until is not None and time.monotonic() >= until

    def wait(acquire):
        while True:
            if acquire(until and max(until + GRACE - time.monotonic(), 0)):
                return True
            failed.add(1)
            if over():
                return False

    def rounds(mine, seen):
        for _ in range(most) if most else itertools.count():
            if over():
                return
            shared = part > 0 and random.random() < part
            acquire, release = mine[shared]
            asked = micros()
            if not wait(acquire):
                return
            from_ = micros()
            seen.watch(shared, hold)
            to = micros()
            release()
            cycles.add(1)
            if next(told) < MOST_TOLD:
                if job.get("records"):
                    records.append((asked, from_, to, 0))
                else:
                    times.append(micros() - asked)

    def worker(*mine):
        try:
            rounds(*mine)
        except Exception as error:
            errors.append(error)
        left.add(1)

    threads = [threading.Thread(target=worker, args=mine, daemon=True) for mine in each]
    for thread in threads:
        thread.start()
    # What blocks in the kernel can't be called back: it is left behind.
    for thread in threads:
        thread.join(until and max(until + GRACE + 1 - time.monotonic(), 0))
    took = time.monotonic() - begin
    if errors:
        raise errors[0]
    failed.add(workers - left.value)
    answer = {
        "cycles": cycles.value,
        "seconds": round(took, 6),
        "failed": failed.value,
        "overlaps": sum(seen.overlaps.value for seen in {id(seen): seen for _, seen in each}.values()),
        "rss_kb": rss_kb(),
        "records": list(records),
    }
    if not job.get("records"):
        answer["cycle_us"] = list(times)
    return answer


kept = []


def hold(peer, job):
    times = []
    begin = time.perf_counter()
    for i in range(int(number(job, "count", 1))):
        asked = time.perf_counter()
        lock = peer.lock(f"{job['name']}-{i}", ttl_of(job), False)
        if not lock[0](None):
            raise TimeoutError(f"{job['name']}-{i} is taken")
        kept.append(lock)
        times.append((time.perf_counter() - asked) * 1e6)
    return {
        "held": len(times),
        "seconds": round(time.perf_counter() - begin, 6),
        "last_us": round(statistics.median(times[-100:]), 1),
        "rss_kb": rss_kb(),
    }


def obey(peer, line):
    try:
        job = json.loads(line)
        if not isinstance(job, dict):
            raise ValueError("a job is an object")
        does = {"work": work, "hold": hold}.get(job.get("do"))
        if not does:
            raise Cannot(f"there is no job {job.get('do')!r}")
        return does(peer, job)
    except Cannot as error:
        return {"cannot": str(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def tell(answer):
    print(json.dumps(answer, separators=(",", ":")), flush=True)


def main():
    words = sys.argv[1:]
    if len(words) < 3 or words[0] not in PEERS or words[1] not in ("default", "best"):
        tell({"error": f"usage: driver.py {'|'.join(PEERS)} default|best ADDRESS"})
        sys.exit(1)
    try:
        peer = PEERS[words[0]](words[1] == "best", words[2:])
    except Exception as error:
        tell({"error": f"{words[2]}: {error}"})
        sys.exit(1)
    ready = {"ready": True, "version": peer.version, "settings": peer.settings}
    if not peer.choice:
        ready["best"] = False
    tell(ready)
    for line in sys.stdin:
        tell(obey(peer, line))


main()
