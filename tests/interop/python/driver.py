"""redis-py's Lock, driven line by line; tests/interop/run says how."""

import sys

import redis
from redis.exceptions import LockError

client = redis.Redis(port=int(sys.argv[1]))
lock = None
for line in sys.stdin:
    command, *words = line.split()
    if command == "lock":
        lock = client.lock(words[0], timeout=int(words[1]) / 1000)
        answer = "locked" if lock.acquire(blocking=False) else "busy"
    elif command == "unlock":
        try:
            lock.release()
            answer = "unlocked"
        except LockError:
            answer = "refused"
    print(answer, flush=True)
