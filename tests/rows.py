"""Each row of what the first users asked for has a test or a running example that names it."""
import pathlib
import re
import sys

ROWS = {
    "0.6": "checkpoint coordination", "0.7": "leader election", "0.8": "compaction of a partition",
    "0.9": "task queue", "0.10": "several locks in sorted order", "0.11": "metrics and wait times",
    "0.12": "Redlock, renewal, priorities, semaphores, readers and writers",
    "1.2": "acquire with retries", "1.6": "one worker per domain",
    "3.2": "get or generate", "3.4": "falls back to memory, with a warning", "3.5": "a settings file",
    "3.6": "a token that names host and process", "3.7": "traces", "3.8": "log lines",
    "4.1": "the facade and its settings", "4.2": "acquire and release lists", "4.3": "who holds them",
    "4.4": "read a file under its lock",
}
EXAMPLES = {"0.6": "checkpoint_coordinator.cpp", "0.8": "partition_compaction.cpp", "1.6": "crawler.cpp"}

root = pathlib.Path(sys.argv[1])
named = set()
for path in (root / "tests").rglob("*"):
    if path.suffix in {".cpp", ".hpp", ".sh"}:
        for match in re.finditer(r"[Rr]ows? ([0-9., and]+)", path.read_text()):
            named.update(re.findall(r"\d+\.\d+", match.group(1)))
named.update(row for row, name in EXAMPLES.items() if (root / "examples" / name).exists())

missing = [f"{row} ({what})" for row, what in ROWS.items() if row not in named]
if missing:
    sys.exit("no test names row " + ", ".join(missing))
print(f"all {len(ROWS)} rows have a test that names them")
