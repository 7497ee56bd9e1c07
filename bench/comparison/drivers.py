"""The drivers of bench/peers, and who competes on which store."""

import dataclasses
import json
import pathlib
import subprocess
import threading

# Who is compared on which store: the peer, its driver, and whether it is the floor below all.
PEERS = {
    "redis": [("interlock", "cpp"), ("hiredis", "cpp"), ("redsync", "go"), ("redisson", "java"),
              ("redisson_fair", "java"), ("redis_py", "python"), ("redlock", "node"), ("redis_semaphore", "node"),
              ("distkit", "rust"), ("rslock", "rust")],
    "redlock": [("interlock", "cpp"), ("redsync", "go"), ("redlock", "node"), ("rslock", "rust")],
    "etcd": [("interlock", "cpp"), ("grpc", "cpp"), ("etcd_mutex", "go")],
    "postgres": [("interlock", "cpp"), ("interlock_lease", "cpp"), ("libpq", "cpp"), ("sqlx", "rust")],
    "file": [("interlock", "cpp"), ("flock", "python"), ("filelock", "python"), ("portalocker", "python")],
    "memory": [("interlock", "cpp"), ("timed_mutex", "cpp"), ("shared_timed_mutex", "cpp"), ("absl", "cpp")],
}
WARM_UP, LONG_WARM_UP = 0.2, 1.0  # seconds; the latter for Java
FLOORS = {"hiredis", "grpc", "libpq"}
TITLES = {
    "interlock": "Interlock", "interlock_lease": "Interlock, mode=lease", "hiredis": "bare hiredis", "redsync": "redsync (Go)", "redisson": "Redisson (Java)",
    "redisson_fair": "Redisson fair (Java)", "redis_py": "redis-py (Python)", "redlock": "node-redlock",
    "redis_semaphore": "redis-semaphore (Node)", "distkit": "distkit (Rust)", "rslock": "rslock (Rust)",
    "grpc": "bare gRPC", "etcd_mutex": "etcd's Mutex (Go)", "libpq": "bare libpq", "sqlx": "sqlx (Rust)",
    "flock": "flock(1)", "filelock": "filelock (Python)", "portalocker": "portalocker (Python)",
    "timed_mutex": "std::timed_mutex", "shared_timed_mutex": "std::shared_timed_mutex", "absl": "absl::Mutex",
}


class Failed(Exception):
    """The driver did not do what it was asked for."""


class Cannot(Failed):
    """The peer has no such thing."""


class Driver:
    """One process of one peer."""

    def __init__(self, command, peer, settings, addresses):
        self.what = f"{peer} ({settings})"
        self.process = subprocess.Popen([*command, peer, settings, *addresses], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = []
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()

    def hear(self, seconds):
        """Its next line; who says nothing for so long is ended."""
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            self.process.wait()
            raise Failed(f"{self.what}: no answer within {seconds:.0f} s: {''.join(self.said[-3:]).strip()}")
        answer = json.loads(line)
        if "cannot" in answer:
            raise Cannot(answer["cannot"])
        if "error" in answer:
            raise Failed(f"{self.what}: {answer['error']}")
        return answer

    def tell(self, **job):
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{self.what}: it has ended") from None

    def ask(self, **job):
        self.tell(**job)
        return self.hear(job.get("seconds", 60) + 30)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        try:
            self.process.stdin.close()
            self.process.wait(3)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()


@dataclasses.dataclass
class Contender:
    """A peer with one of its settings on one store; its processes are kept from round to round."""

    peer: str
    settings: str
    command: list
    addresses: list
    words: str = ""
    version: str = ""
    only: bool = True  # there is nothing to choose
    crowd: list = dataclasses.field(default_factory=list)

    @property
    def title(self):
        return TITLES[self.peer] + ("" if self.only or self.settings == "default" else ", best")

    @property
    def key(self):
        return self.peer if self.settings == "default" else f"{self.peer}+"

    def start(self, count=1):
        """So many processes of it; new ones where they have ended."""
        self.crowd = [driver for driver in self.crowd if driver.process.poll() is None]
        new = [Driver(self.command, self.peer, self.settings, self.addresses)
               for _ in range(count - len(self.crowd))]
        for driver in new:
            ready = driver.hear(60)
            self.words, self.version = ready["settings"], ready["version"]
            self.only = not ready.get("best", True)
        # Some languages get fast only after a while.
        warm_up = LONG_WARM_UP if pathlib.Path(self.command[0]).name == "java" else WARM_UP
        for number, driver in enumerate(new):
            driver.tell(do="work", name=f"warm-up-{number}", distinct=True, workers=1, seconds=warm_up)
        for driver in new:
            driver.hear(60)
        self.crowd += new
        return self.crowd[:count]

    def fresh(self):
        """One that nobody else uses."""
        driver = Driver(self.command, self.peer, self.settings, self.addresses)
        driver.hear(60)
        return driver

    def stop(self):
        for driver in self.crowd:
            driver.process.stdin.close()
        for driver in self.crowd:
            driver.stop()
        self.crowd = []
