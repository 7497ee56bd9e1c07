"""Real servers for the comparison, on free loopback ports, and what their work costs them."""

import glob
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def cpu_seconds(pid):
    """Of a process and of all that it started and that still run."""
    total = 0.0
    for task in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            total += int(pathlib.Path(task).read_text().split()[0]) / 1e9
        except (OSError, IndexError):
            pass
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return total + sum(cpu_seconds(child) for child in children)


class Server:
    """A process that serves. What a kind of server can't tell is missing from its usage()."""

    def __init__(self, place, name):
        self.place = pathlib.Path(place) / name
        self.place.mkdir(parents=True)
        self.port = free_port()
        self.process = None

    def launch(self, *words, **options):
        log = open(self.place / "log", "wb")
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log,
                                        stderr=log, start_new_session=True, **options)
        if not eventually(lambda: self.process.poll() is not None or listens(self.port)) or self.process.poll() is not None:
            raise RuntimeError(f"{words[0]} does not start:\n" + (self.place / "log").read_text()[-2000:])

    def usage(self):
        return {"cpu": cpu_seconds(self.process.pid)}

    def memory(self):
        return None

    def forget(self):
        """Everything that was locked is gone."""

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Redis(Server):
    def __init__(self, place, name):
        super().__init__(place, name)
        self.launch("redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                    "--maxclients", 20000, "--dir", self.place)
        self.addresses = [f"redis://127.0.0.1:{self.port}"]
        self.line = socket.create_connection(("127.0.0.1", self.port))
        self.answers = self.line.makefile("rb")

    def call(self, *words):
        parts = [str(word).encode() for word in words]
        self.line.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        first = self.answers.readline()
        if first[:1] != b"$":
            return first[1:].strip().decode()
        return self.answers.read(int(first[1:]) + 2)[:-2].decode()

    def info(self):
        lines = self.call("INFO", "ALL").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def usage(self):
        info = self.info()
        return {**super().usage(), "commands": int(info["total_commands_processed"]) - 1,
                "messages": int(info["total_reads_processed"]) + int(info["total_writes_processed"]) - 2,
                "bytes": int(info["total_net_input_bytes"]) + int(info["total_net_output_bytes"])}

    def memory(self):
        return int(self.info()["used_memory"])

    def forget(self):
        self.call("FLUSHALL")


class Redlock:
    """Five servers that know nothing of each other."""

    def __init__(self, place, name):
        self.servers = [Redis(place, f"{name}{i}") for i in range(5)]
        self.addresses = [address for server in self.servers for address in server.addresses]

    def usage(self):
        each = [server.usage() for server in self.servers]
        return {what: sum(usage[what] for usage in each) for what in each[0]}

    def memory(self):
        return sum(server.memory() for server in self.servers)

    def forget(self):
        for server in self.servers:
            server.forget()

    def stop(self):
        for server in self.servers:
            server.stop()


class Postgres(Server):
    def __init__(self, place, name):
        super().__init__(place, name)
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        program = (lambda what: f"{programs[-1]}/{what}") if programs else (lambda what: shutil.which(what) or what)
        # PostgreSQL does not run as root.
        user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if user:
            account = pwd.getpwnam("postgres")
            os.chown(self.place, account.pw_uid, account.pw_gid)
        data = self.place / "data"
        subprocess.run([program("initdb"), "-D", data, "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust"],
                       check=True, stdout=subprocess.DEVNULL, cwd=self.place, **user)
        self.launch(program("postgres"), "-D", data, "-p", self.port, "-k", self.place,
                    "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=400", cwd=self.place, **user)
        self.addresses = [f"postgres://postgres@127.0.0.1:{self.port}/postgres"]
        if not eventually(lambda: subprocess.run([program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0):
            raise RuntimeError("PostgreSQL does not start; see its log")

    def stop(self):
        super().stop(signal.SIGINT)  # fast: does not wait for clients


class Etcd(Server):
    def __init__(self, place, name):
        super().__init__(place, name)
        peer = f"http://127.0.0.1:{free_port()}"
        self.url = f"http://127.0.0.1:{self.port}"
        self.launch("etcd", "--name", "one", "--data-dir", self.place / "data", "--listen-client-urls", self.url,
                    "--advertise-client-urls", self.url, "--listen-peer-urls", peer,
                    "--initial-advertise-peer-urls", peer, "--initial-cluster", f"one={peer}")
        self.addresses = [f"etcd://127.0.0.1:{self.port}"]
        eventually(lambda: b'"true"' in urllib.request.urlopen(f"{self.url}/health").read())

    def usage(self):
        text = urllib.request.urlopen(f"{self.url}/metrics").read().decode()
        values = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]

        def total(prefix):
            return sum(float(value) for name, value in values if name.startswith(prefix))

        return {**super().usage(), "messages": total("grpc_server_msg_received_total") + total("grpc_server_msg_sent_total"),
                "bytes": total("etcd_network_client_grpc_received_bytes_total")
                + total("etcd_network_client_grpc_sent_bytes_total")}


class Nothing:
    """For stores without a server."""

    def __init__(self, place, name):
        self.place = pathlib.Path(place) / name
        self.place.mkdir(0o700)
        self.addresses = [str(self.place)] if name == "file" else []

    def usage(self):
        return {}

    def memory(self):
        return None

    def forget(self):
        pass

    def stop(self):
        pass
