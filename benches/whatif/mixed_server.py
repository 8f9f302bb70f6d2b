"""Servers for mixed.py, and the steps that a load has them do."""

import os
import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
STEPS = HERE / "mixed"
WORK = pathlib.Path(os.environ.get("WALSTAT_MIXED_WORK", "/var/tmp/walstat-mixed"))
SERVERS = pathlib.Path(os.environ.get("WALSTAT_LIVE_SERVERS", "/var/tmp/walstat-live-servers"))
CLIENTS = pathlib.Path("/usr/lib/postgresql/15/bin")
ENVIRONMENT = dict(os.environ, LC_ALL="C", PGHOST=str(WORK), PGUSER="postgres",
                   PGDATABASE="postgres", PGTZ="UTC")
PSQL = [CLIENTS / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]


def number(lsn):
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def settings_of(text):
    return dict(word.split("=", 1) for word in text.split(";") if word not in ("", "-"))


def as_server(*words, **options):
    words = [str(word) for word in words]
    if os.getuid() == 0:
        words = ["runuser", "-u", "postgres", "--", *words]
    return subprocess.run(words, check=True, env=ENVIRONMENT, **options)


def sql(*commands):
    words = [word for command in commands for word in ("-c", command)]
    done = subprocess.run([*PSQL, *words], check=True, env=ENVIRONMENT, stdout=subprocess.PIPE,
                          text=True)
    return done.stdout.strip()


def next_xid():
    return int(sql("select txid_snapshot_xmax(txid_current_snapshot())"))


def insert_lsn():
    return sql("select pg_current_wal_insert_lsn()")


class Server:
    """A data directory of a release that runs or not."""

    def __init__(self, release, directory):
        self.release, self.directory, self.running = release, directory, False

    def program(self, name):
        debian = pathlib.Path(f"/usr/lib/postgresql/{self.release}/bin/{name}")
        return debian if debian.exists() else SERVERS / str(self.release) / "bin" / name

    def start(self):
        as_server(self.program("pg_ctl"), "-D", self.directory, "-w", "-t", "300", "-l",
                  self.directory / "log", "-s", "start")
        self.running = True

    def stop(self, mode="fast"):
        as_server(self.program("pg_ctl"), "-D", self.directory, "-w", "-t", "300", "-m", mode,
                  "-s", "stop")
        self.running = False

    def restart(self, mode):
        self.stop(mode)
        self.start()

    def configure(self, settings):
        with open(self.directory / "postgresql.conf", "a", encoding="ascii") as file:
            for name, value in settings.items():
                file.write(f"{name} = '{value}'\n")


def common_settings(release, segment_mb):
    return {
        "listen_addresses": "", "unix_socket_directories": WORK, "timezone": "UTC",
        "fsync": "off", "shared_buffers": "128MB", "autovacuum": "off", "jit": "off",
        "max_parallel_workers_per_gather": 0, "max_parallel_maintenance_workers": 0,
        "wal_level": "replica", "max_wal_senders": 4,
        # What asks for checkpoints is the load's settings; all WAL is kept.
        "checkpoint_timeout": "1h", "max_wal_size": "100GB", "min_wal_size": f"{2 * segment_mb}MB",
        "wal_recycle": "off",
        **({"wal_keep_size": "100GB"} if release >= 13 else {"wal_keep_segments": 100000}),
        "log_checkpoints": "on", "log_line_prefix": "%m ", "log_timezone": "UTC",
    }


def run_step(server, step, place):
    """One line of a load: a word, and what it is about."""
    word, _, rest = step.partition(" ")
    plain = {
        "sql": lambda: sql(*rest.split("; ")),
        "checkpoint": lambda: sql("checkpoint"),
        "switch": lambda: sql("select pg_switch_wal()"),
        "restart": lambda: server.restart("fast"),
        "crash": lambda: server.restart("immediate"),
        "sleep": lambda: time.sleep(float(rest)),
        "pgbench": lambda: pgbench(rest.split(), place),
        "copyin": lambda: copy_in(*rest.split()),
        "backup": lambda: backup(server, rest, place),
        "basebackup": lambda: base_backup(rest.split()),
    }
    if word not in plain:
        raise SystemExit(f"mixed.py: {step}: expected one of {', '.join(plain)}")
    plain[word]()


def pgbench(words, place):
    """pgbench TRANSACTIONS SCRIPT [clients=N] [rate=N] [checkpoint=TRANSACTIONS]

    With checkpoint somebody else asks for one after so many transactions: by the clock it would meet other
    work in each run.
    """
    options = dict(word.split("=", 1) for word in words[2:])
    command = [CLIENTS / "pgbench", "-n", "-t", words[0], "-c", options.get("clients", "1"),
               "-j", "1", f"--random-seed={1000 + place}"]
    if "rate" in options:
        command += ["-R", options["rate"]]
    if words[1] != "tpcb":
        command += ["-f", STEPS / f"{words[1]}.pgbench"]
    begun = next_xid()
    work = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    if "checkpoint" in options:
        wanted = begun + int(options["checkpoint"])
        while next_xid() < wanted and work.poll() is None:
            time.sleep(0.01)
        sql("checkpoint")
    said, _ = work.communicate()
    if work.returncode != 0:
        raise SystemExit(f"mixed.py: {command}: {said[-2000:]}")


def copy_in(name, count):
    """COPY name FROM STDIN with so many rows."""
    rows = range(10**6, 10**6 + int(count))
    lines = "".join(f"{row}\t{row:032x}\t{'c' * (row % 90)}\n" for row in rows)
    words = [CLIENTS / "psql", "-X", "-q", "-c", f"copy {name} from stdin"]
    subprocess.run(words, check=True, env=ENVIRONMENT, input=lines, text=True)


def base_backup(options):
    """pg_basebackup, without its WAL."""
    copy = WORK / "basebackup.new"
    shutil.rmtree(copy, ignore_errors=True)
    as_server(CLIENTS / "pg_basebackup", "-D", copy, "-X", "none", "--no-sync", *options,
              stderr=subprocess.DEVNULL)
    shutil.rmtree(copy)


def backup(server, inner, place):
    """A base backup by SQL around another step."""
    begin, stop = "pg_backup_start('mixed', true)", "pg_backup_stop(false)"
    if server.release < 15:
        begin, stop = "pg_start_backup('mixed', true, false)", "pg_stop_backup(false, false)"
    session = subprocess.Popen(PSQL, env=ENVIRONMENT, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    session.stdin.write(f"select {begin};\n\\echo begun\n")
    session.stdin.flush()
    while session.stdout.readline().strip() != "begun":
        if session.poll() is not None:
            raise SystemExit("mixed.py: the backup did not begin")
    if inner:
        run_step(server, inner, place)
    session.stdin.write(f"select lsn from {stop};\n")
    session.stdin.close()
    session.stdout.read()
    if session.wait() != 0:
        raise SystemExit("mixed.py: the backup did not end")
