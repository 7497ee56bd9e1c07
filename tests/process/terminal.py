"""A person at a terminal: starts programs in one, types, and reads until something shows up."""
import os, pty, select, signal, sys, time

class Terminal:
    def __init__(self, *command, **environment):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # What a shell says of its jobs is in the user's language.
            os.environ.update({"TERM": "xterm", "PS1": "$ ", "LC_MESSAGES": "C", **environment})
            if "LC_ALL" in os.environ:
                os.environ["LANG"] = os.environ["LC_CTYPE"] = os.environ.pop("LC_ALL")
            os.execvp(command[0], command)

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def until(self, text, what=None):
        """Waits for the text; forgets what came up to it, and returns that."""
        end = time.monotonic() + 20
        while text not in self.seen:
            if time.monotonic() > end or not self.read(0.1):
                sys.exit(f"FAILED: {what or repr(text) + ' never showed up'}: {self.seen[-2000:]!r}")
        before, self.seen = self.seen.split(text, 1)
        return before

    def end(self):
        """Reads to the end; returns the exit status."""
        deadline = time.monotonic() + 20
        while self.read(0.1):
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                sys.exit(f"FAILED: it does not end: {self.seen[-2000:]!r}")
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) and not select.select([self.fd], [], [], 0)[0]:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

def check(condition, *what):
    if not condition: sys.exit(f"FAILED: {what}")

interlock = os.environ["INTERLOCK"]
