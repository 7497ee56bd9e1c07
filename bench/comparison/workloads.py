"""The workloads: each runs one contender once and gives its figures."""

import dataclasses
import itertools
import os
import signal
import statistics
import time

from .drivers import Failed

CROWD, QUICK_CROWD = 16, 8
WORKERS = 64
SECONDS = 0.1  # of one run, where not said otherwise
TTL_OF_THE_DEAD = 2000  # ms


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


@dataclasses.dataclass
class Surroundings:
    store: str
    server: object
    registers: str  # a directory for them
    crowd: int = CROWD  # processes on one lock
    names: object = dataclasses.field(default_factory=itertools.count)

    def name(self):
        return f"compare-{os.getpid()}-{next(self.names)}"


def cost(before, after, cycles):
    each = {what: (after[what] - before[what]) / max(1, cycles) for what in before}
    if "cpu" in each:
        each["cpu"] *= 1e6
    return {{"cpu": "server_us"}.get(what, what): value for what, value in each.items()}


def alone(contender, around, workers=1):
    """Everybody has a lock for himself: nobody waits."""
    driver = contender.start()[0]
    before = around.server.usage()
    done = driver.ask(do="work", name=around.name(), distinct=True, workers=workers, seconds=SECONDS)
    after = around.server.usage()
    return {"median_us": statistics.median(done["cycle_us"]), "p99_us": percentile(done["cycle_us"], 0.99),
            "per_second": done["cycles"] / done["seconds"], "overlaps": done["overlaps"],
            **cost(before, after, done["cycles"])}


def many(contender, around):
    figures = alone(contender, around, WORKERS)
    return {what: figures[what] for what in ("per_second", "overlaps", "server_us") if what in figures}


def judge(answers):
    """Of processes that shared one lock: how it went from one to the other, and whether it was one."""
    records = sorted((record[1], record[2], record[0], record[3], who)
                     for who, answer in enumerate(answers) for record in answer["records"])
    if len(records) < 2:
        raise Failed(f"only {len(records)} holds: there is nothing to compare")
    overlaps = sum(answer["overlaps"] for answer in answers)
    gaps = []
    changes = 0
    until = newest = 0
    last = None
    for begin, end, _, fence, who in records:
        overlaps += 0 < fence <= newest
        if last is not None and who != last:
            changes += 1
            gaps.append(max(0, begin - until))
        until, newest, last = max(until, end), max(newest, fence), who
    span = (until - records[0][0]) / 1e6
    waits = [begin - asked for begin, _, asked, _, _ in records]
    cycles = [len(answer["records"]) for answer in answers]
    held = sum(end - begin for begin, end, *_ in records) / 1e6
    return {"cycles": len(records), "handoffs_per_second": changes / span, "per_second": len(records) / span,
            "handoff_us": statistics.median(gaps) if gaps else 0.0,
            "jain": sum(cycles) ** 2 / (len(cycles) * sum(count * count for count in cycles)),
            "longest_over_mean": max(waits) / max(1.0, statistics.fmean(waits)),
            "over_ideal": 100 * (span / held - 1) if held else 0.0,
            "failed": sum(answer["failed"] for answer in answers), "overlaps": overlaps}


def crowded(contender, around, hold_us, seconds):
    """Processes on one lock; threads, where it ends with the process."""
    threads = around.store == "memory"
    drivers = contender.start(1 if threads else around.crowd)
    around.server.forget()
    job = {"do": "work", "name": around.name(), "workers": around.crowd if threads else 1, "seconds": seconds,
           "hold_us": hold_us, "records": True}
    if not threads:
        job["register"] = os.path.join(around.registers, job["name"])
    before = around.server.usage()
    for driver in drivers:
        driver.tell(**job)
    answers = [driver.hear(seconds + 30) for driver in drivers]
    after = around.server.usage()
    figures = judge(answers if not threads else split(answers[0], around.crowd))
    if threads:
        figures["overlaps"] = answers[0]["overlaps"]
    return {**figures, **cost(before, after, figures["cycles"])}


def split(answer, crowd):
    """The records of the workers of one process: each worker's come one after the other in time."""
    workers, last = [], None
    for record in answer["records"]:
        if last is None or record[0] < last:
            workers.append({"records": [], "overlaps": 0, "failed": 0})
        workers[-1]["records"].append(record)
        last = record[2]
    return workers + [{"records": [], "overlaps": 0, "failed": 0}] * (crowd - len(workers))


def hot(contender, around):
    # In memory, that is long enough for a hundred thousand records.
    return crowded(contender, around, 0, SECONDS / 4 if around.store == "memory" else 2 * SECONDS)


def busy(contender, around):
    return crowded(contender, around, 5000, 2 * SECONDS)


def reading(contender, around):
    driver = contender.start()[0]
    around.server.forget()
    before = around.server.usage()
    done = driver.ask(do="work", name=around.name(), workers=WORKERS, shared=0.95, seconds=2 * SECONDS)
    after = around.server.usage()
    return {"per_second": done["cycles"] / done["seconds"], "p99_us": percentile(done["cycle_us"], 0.99),
            "overlaps": done["overlaps"], **cost(before, after, done["cycles"])}


def waiters(count):
    def run(contender, around):
        driver = contender.start()[0]
        around.server.forget()
        name = around.name()
        before = around.server.usage()
        register = {} if around.store == "memory" else {"register": os.path.join(around.registers, name)}
        done = driver.ask(do="work", name=name, workers=count, seconds=SECONDS, **register)
        after = around.server.usage()
        if not done["cycles"]:
            raise Failed("nobody got it in time")
        return {"us": 1e6 * done["seconds"] / done["cycles"], "client_kb": done["rss_kb"],
                "overlaps": done["overlaps"], **cost(before, after, done["cycles"])}

    return run


def held(count):
    def run(contender, around):
        driver = contender.fresh()
        try:
            around.server.forget()
            before = around.server.memory()
            empty = driver.ask(do="work", name=around.name(), workers=1, most=1, seconds=5)
            done = driver.ask(do="hold", name=around.name(), count=count, ttl_ms=120_000, seconds=0)
            figures = {"us": done["last_us"], "client_bytes": 1024 * (done["rss_kb"] - empty["rss_kb"]) / count}
            if before is not None:
                figures["server_bytes"] = (around.server.memory() - before) / count
            return figures
        finally:
            driver.kill()
            around.server.forget()

    return run


def death(contender, around):
    """From kill -9 of the holder to the next one's grant."""
    name = around.name()
    holder, heir = contender.fresh(), contender.fresh()
    try:
        holder.ask(do="hold", name=name, count=1, ttl_ms=TTL_OF_THE_DEAD)
        heir.tell(do="work", name=f"{name}-0", workers=1, most=1, seconds=60, ttl_ms=TTL_OF_THE_DEAD, records=True)
        time.sleep(0.5)
        killed = time.time()
        holder.process.send_signal(signal.SIGKILL)
        holder.process.wait()
        begin = heir.hear(60)["records"][0][1] / 1e6
        return {"seconds": max(0.0, begin - killed), "overlaps": int(begin < killed)}
    finally:
        holder.kill()
        heir.kill()


@dataclasses.dataclass(frozen=True)
class Workload:
    key: str
    title: str
    run: object
    metric: str  # the one that counts
    unit: str
    better: str  # "lower" or "higher"
    settings: str = "both"  # or "best": only that, where there is a choice
    stores: tuple = ("redis", "redlock", "etcd", "postgres", "file", "memory")
    rounds: int = 0  # 0: as many as usual
    together: bool = False  # they only wait, and may do so at the same time
    size: int = 0


def workloads(quick):
    # It takes a while to start them.
    crowd, settings = (QUICK_CROWD, "best") if quick else (CROWD, "both")
    yield Workload("cycle", "one worker, nobody else: a cycle", alone, "median_us", "us", "lower")
    yield Workload("many", f"{WORKERS} workers, a lock each, one process: cycles", many, "per_second", "/s", "higher")
    yield Workload("hot", f"{crowd} processes, one lock, no hold: handoffs", hot, "handoffs_per_second", "/s", "higher", settings=settings)
    yield Workload("busy", f"{crowd} processes, one lock, held 5 ms: time over ideal", busy, "over_ideal", "%", "lower", settings=settings)
    yield Workload("reading", f"{WORKERS} workers, one lock, 95% reads: cycles", reading, "per_second", "/s", "higher")
    for count in (1, 128) if quick else (1, 32, 1024):
        yield Workload(f"waiters-{count}", f"{count:,} on one lock, one process: a handoff", waiters(count), "us", "us", "lower",
                       settings="best", size=count)
    slow, fast = ("etcd", "postgres"), ("redis", "file", "memory")
    for count, stores in ((1, slow + fast), (1000, slow + fast), (10_000, slow), (100_000, fast)):
        if not quick or count <= 1000:
            yield Workload(f"held-{count}", f"{count:,} locks held: one more", held(count), "us", "us", "lower", rounds=1, size=count,
                           settings="best", stores=stores)
    yield Workload("death", f"kill -9 of the holder to the next grant, ttl {TTL_OF_THE_DEAD / 1000:g} s", death, "seconds", "s", "lower",
                   rounds=1 if quick else 3, together=True, settings="best",
                   stores=("redis", "redlock", "etcd", "postgres", "file"))
