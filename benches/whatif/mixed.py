#!/usr/bin/env python3
"""Holds `walstat whatif` against real servers under mixed loads.

Each load is a sequence of steps (mixed/NAME.steps): pieces of pgbench, COPY, vacuum, index builds,
requested checkpoints, base backups, restarts and crashes. A server goes through it once as the base,
once more under the same settings ("again"), and once under each other setting. The WAL of the base is
asked what the others would write, and the answer is compared with what they wrote.

    benches/whatif/mixed.py [--ask-again] [--only-run] [LOAD...]   default: all of mixed-loads.tsv
    benches/whatif/mixed.py --why LOAD RUN                          record types that came out otherwise

Prints the rows of docs/whatif-mixed.tsv. A run that is there already is not made again; --ask-again
makes none, and asks what is there. What is written goes to WALSTAT_MIXED_WORK (default
/var/tmp/walstat-mixed) and stays there: the WAL of the base as it is, that of other runs packed.
Servers: Debian's in /usr/lib/postgresql, others in WALSTAT_LIVE_SERVERS (tests/live/servers.sh).
"""

import bisect
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
STEPS = HERE / "mixed"
WORK = pathlib.Path(os.environ.get("WALSTAT_MIXED_WORK", "/var/tmp/walstat-mixed"))
SERVERS = pathlib.Path(os.environ.get("WALSTAT_LIVE_SERVERS", "/var/tmp/walstat-live-servers"))
WALSTAT = os.environ.get("WALSTAT", str(HERE.parent.parent / "target/release/walstat"))
CLIENTS = pathlib.Path("/usr/lib/postgresql/15/bin")
ENVIRONMENT = dict(os.environ, LC_ALL="C", PGHOST=str(WORK), PGUSER="postgres", PGDATABASE="postgres",
                   PGTZ="UTC")

COLUMNS = ["load", "release", "run", "option", "real_bytes", "real_written_bytes", "predicted_bytes",
           "low_bytes", "high_bytes", "predicted_written_bytes", "in_range", "certain", "miss_percent",
           "written_miss_percent", "range_width_percent", "repeat_percent", "real_redo", "predicted_redo",
           "self_check_bytes"]
ADVICE_COLUMNS = ["load", "release", "rule", "settings", "quoted_apart", "quoted_codec", "base_record_bytes", "real_record_bytes",
                  "predicted_record_bytes", "real_change_percent", "predicted_change_percent",
                  "in_range", "base_redo", "real_redo"]

# The runs whose settings the base's own report names.
ADVISED = ("advised", "spaced")
SPACING = ("max_wal_size", "checkpoint_timeout")

PAGE = 8192
# What is decided when a cluster is made.
OF_CLUSTER = ("segment_mb", "initdb")


def table(name):
    lines = (HERE / name).read_text().splitlines()
    keys = lines[0].split("\t")
    return [dict(zip(keys, line.split("\t"))) for line in lines[1:] if line and line[0] != "#"]


def number(lsn):
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def as_server(*words, **options):
    words = [str(word) for word in words]
    if os.getuid() == 0:
        words = ["runuser", "-u", "postgres", "--", *words]
    return subprocess.run(words, check=True, env=ENVIRONMENT, **options)


def sql(*commands):
    words = [CLIENTS / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
    for command in commands:
        words += ["-c", command]
    done = subprocess.run(words, check=True, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


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
        as_server(self.program("pg_ctl"), "-D", self.directory, "-w", "-t", "300", "-m", mode, "-s",
                  "stop")
        self.running = False

    def configure(self, settings):
        with open(self.directory / "postgresql.conf", "a", encoding="ascii") as file:
            for name, value in settings:
                file.write(f"{name} = '{value}'\n")


def common_settings(release, segment_mb):
    settings = [
        ("listen_addresses", ""), ("unix_socket_directories", WORK), ("fsync", "off"),
        ("shared_buffers", "128MB"), ("autovacuum", "off"), ("checkpoint_timeout", "1h"),
        ("max_wal_size", "100GB"), ("min_wal_size", f"{2 * segment_mb}MB"), ("wal_level", "replica"),
        ("max_wal_senders", "4"), ("max_parallel_workers_per_gather", "0"),
        ("max_parallel_maintenance_workers", "0"), ("log_checkpoints", "on"), ("timezone", "UTC"),
        ("wal_recycle", "off"), ("jit", "off"), ("log_line_prefix", "%m "), ("log_timezone", "UTC"),
    ]
    keep = ("wal_keep_size", "100GB") if release >= 13 else ("wal_keep_segments", "100000")
    return settings + [keep]


def pairs(text):
    return [tuple(word.split("=", 1)) for word in text.split(";") if word not in ("", "-")]


class Run:
    """One way through the steps of a load."""

    def __init__(self, load, name, settings):
        self.load, self.name, self.settings = load, name, settings
        self.home = load.home / name
        self.result = load.home / f"{name}.json"

    def is_made(self):
        return self.result.exists()

    def facts(self):
        return json.loads(self.result.read_text())

    def make(self):
        if self.is_made():
            return
        began = time.time()
        say(f"{self.load.name} {self.name} {self.settings}")
        shutil.rmtree(self.home, ignore_errors=True)
        asked = pairs(self.settings)
        self.load.unpack_begin(self.home, {name: value for name, value in asked if name in OF_CLUSTER})
        server = Server(self.load.release, self.home)
        settings = [(name, value) for name, value in asked if name not in OF_CLUSTER]
        steps = self.load.steps()
        server.configure(pairs(self.load.settings))
        if "start" not in steps:
            steps = ["checkpoint", "start", *steps]
            server.configure(settings)
            settings = []
        try:
            server.start()
            marks, start = [], None
            for place, step in enumerate(steps):
                if step == "start":
                    # What comes before the range is the base's: the other settings begin here.
                    server.configure(settings)
                    sql("select pg_reload_conf()", "select pg_sleep(0.1)")
                    start = insert_lsn()
                    log_from = (self.home / "log").stat().st_size
                else:
                    run_step(server, step, place)
                marks.append((step, insert_lsn()))
            end = marks[-1][1]
            time.sleep(0.2)
            log = (self.home / "log").read_bytes()[log_from:].decode(errors="replace")
            server.stop()
        finally:
            if server.running:
                server.stop("immediate")
        self.keep(start, end, marks, log, time.time() - began)

    def keep(self, start, end, marks, log, seconds):
        wal = self.load.home / f"{self.name}.wal"
        shutil.rmtree(wal, ignore_errors=True)
        wal.mkdir()
        (self.home / "pg_wal").rename(wal / "pg_wal")
        shutil.rmtree(wal / "pg_wal/archive_status", ignore_errors=True)
        (self.load.home / f"{self.name}.log").write_text(log)
        shutil.rmtree(self.home)
        facts = {
            "settings": self.settings, "start": start, "end": end, "marks": marks,
            "seconds": round(seconds, 1), "real_bytes": number(end) - number(start),
            "fill_bytes": fill_bytes(wal / "pg_wal", start, end),
            "checkpoints": re.findall(r"(?:checkpoint|restartpoint) starting: (.*)", log),
        }
        report = ask_report(wal / "pg_wal", start, end)
        (self.load.home / f"{self.name}.report.json").write_text(json.dumps(report))
        keep_commits(wal / "pg_wal", start, end, self.load.home / f"{self.name}.commits")
        self.result.write_text(json.dumps(facts, indent=1))
        if self.name != "base":
            subprocess.run(f"tar -C '{wal}' -cf - pg_wal | zstd -q -1 -f -o '{wal}.tar.zst'",
                           shell=True, check=True)
            shutil.rmtree(wal)


def keep_commits(wal, start, end, file):
    """Where each transaction committed: a place in one run's WAL is found in another's by them."""
    words = [WALSTAT, "records", "--as", "pg_wal", "-s", start, "-e", end, "--record", "COMMIT", str(wal)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    lines = (line.split()[:2] for line in done.stdout.splitlines()[1:])
    file.write_text("".join(f"{words[0]}\t{words[1]}\n" for words in lines if len(words) == 2))


def transactions_before(load, name, lsns):
    """How many transactions of a run had committed before each place."""
    file = load.home / f"{name}.commits"
    if not file.exists():
        return None
    ends = [number(line.split("\t")[0]) for line in file.read_text().splitlines()]
    return [bisect.bisect_left(ends, number(lsn)) for lsn in lsns]


def fill_bytes(directory, start, end):
    """What switches left empty: zeros up to the ends of segments, but for the last."""
    files = sorted(file for file in directory.iterdir() if re.fullmatch("[0-9A-F]{24}", file.name))
    size = files[0].stat().st_size
    per_log = 0x100000000 // size
    total = 0
    for file in files:
        at = (int(file.name[8:16], 16) * per_log + int(file.name[16:], 16)) * size
        if at + size <= number(start) or at + size > number(end):
            continue
        data = file.read_bytes()
        used = (len(data.rstrip(b"\0")) + 7) // 8 * 8
        empty = size - max(used, number(start) - at)
        # Less than a page may be the end of an image that goes on in the next segment.
        total += empty if empty >= PAGE else 0
    return total


class Load:
    """A row of mixed-loads.tsv."""

    def __init__(self, row):
        self.name, self.release = row["load"], int(row["release"])
        self.scale, self.segment_mb = int(row["scale"]), int(row["segment_mb"])
        self.initdb, self.settings, self.file = row["initdb"], row["settings"], row["steps"]
        self.runs = row["runs"].split(",")
        self.home = WORK / self.name

    def steps(self):
        lines = (STEPS / f"{self.file}.steps").read_text().splitlines()
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]

    def begin(self, segment_mb, initdb):
        return WORK / f"begin-{self.release}-{self.scale}-{segment_mb}{initdb}.tar.zst"

    def prepare(self, segment_mb, initdb):
        """The cluster that runs begin with."""
        begin = self.begin(segment_mb, initdb)
        if begin.exists():
            return begin
        say(f"{self.name}: {begin.name}")
        directory = WORK / "begin.new"
        shutil.rmtree(directory, ignore_errors=True)
        server = Server(self.release, directory)
        options = [] if initdb == "-" else initdb.split(";")
        as_server(server.program("initdb"), "-D", directory, "-E", "UTF8", "--locale=C", "-U", "postgres",
                  "-A", "trust", "--no-sync", f"--wal-segsize={segment_mb}", *options,
                  stdout=subprocess.DEVNULL)
        server.configure(common_settings(self.release, segment_mb))
        server.start()
        try:
            subprocess.run([CLIENTS / "pgbench", "-q", "-i", "-s", str(self.scale)], check=True,
                           env=ENVIRONMENT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            for statement in (STEPS / "tables.sql").read_text().split(";\n"):
                if statement.strip():
                    sql(statement)
            sql("vacuum freeze", "analyze", "checkpoint", "checkpoint")
        finally:
            server.stop()
        (directory / "log").unlink()
        subprocess.run(f"tar -C '{directory}' -cf - . | zstd -q -1 -f -o '{begin}.new'",
                       shell=True, check=True)
        shutil.rmtree(directory)
        os.rename(f"{begin}.new", begin)
        return begin

    def unpack_begin(self, directory, cluster):
        begin = self.prepare(int(cluster.get("segment_mb", self.segment_mb)),
                             cluster.get("initdb", self.initdb))
        directory.mkdir(parents=True)
        subprocess.run(f"zstd -q -d -c '{begin}' | tar -C '{directory}' -xpf -", shell=True,
                       check=True)

    def make(self):
        self.home.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            shutil.chown(self.home, "postgres")
        self.run("base").make()
        self.run("again").make()
        for name in self.runs:
            if name == "-":
                continue
            if name == "advised":
                self.make_advised("advised", ("wal_compression", *SPACING))
                self.make_advised("spaced", SPACING)
            else:
                self.run(name).make()

    def run(self, name):
        settings = ""
        if name not in ("base", "again", *ADVISED):
            settings = RUNS[name][0]["change"]
        return Run(self, name, settings)

    def make_advised(self, name, heeded):
        """What WHAT TO DO of the base's report advises, as its own words have it."""
        if self.run(name).is_made():
            return
        changes = advised_settings(self.base_report(), dict(pairs(self.settings)), self.release)
        settings = ";".join(f"{key}={changes[key]}" for key in heeded if key in changes)
        if settings:
            Run(self, name, settings).make()

    def wal(self):
        return self.home / "base.wal/pg_wal"

    def base_report(self):
        """The base's report, by the program of today."""
        facts = self.run("base").facts()
        file, about = self.home / "base.today.json", [program_digest(), facts["end"]]
        if file.exists() and (kept := json.loads(file.read_text()))["asked"] == about:
            return kept
        report = {"asked": about, **ask_report(self.wal(), facts["start"], facts["end"])}
        file.write_text(json.dumps(report))
        return report

    def answer(self, options, name):
        """What the program says; what the same program said before is not asked again."""
        file, about = self.home / name, [program_digest(), options, self.run("base").facts()["end"]]
        if file.exists():
            kept = json.loads(file.read_text())
            if kept.get("asked") == about:
                return kept
        answer = self.ask(options)
        if answer:
            file.write_text(json.dumps({"asked": about, **answer}, indent=1))
        return answer

    def ask(self, options):
        facts = self.run("base").facts()
        words = [WALSTAT, "whatif", "-f", "json", "-s", facts["start"], "-e", facts["end"],
                 *options.split(), str(self.wal())]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, 4):
            say(f"{self.name}: {' '.join(words)}: {done.returncode}: {done.stderr.strip()}")
            return None
        return json.loads(done.stdout)["whatif"]


@functools.cache
def program_digest():
    return hashlib.sha256(pathlib.Path(WALSTAT).read_bytes()).hexdigest()


def ask_report(wal, start, end):
    """The full report, and its checkpoint cycles, which the report alone does not list."""
    options = ["-f", "json", "--as", "pg_wal", "-s", start, "-e", end, str(wal)]
    found = []
    for words in ([], ["--stats=checkpoint"]):
        done = subprocess.run([WALSTAT, *words, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode not in (0, 4):
            raise SystemExit(f"mixed.py: {wal}: {words}: {done.returncode}: {done.stderr.strip()}")
        found.append(json.loads(done.stdout))
    report, cycles = found
    return {**report, "cycles": {key: value for key, value in cycles.items() if "checkpoint" in key}}


def advised_settings(report, settings, release):
    """Settings that the findings name: max_wal_size and checkpoint_timeout by their words, the codec."""
    quoting = [finding for finding in report.get("findings") or [] if finding.get("predicted")]
    changes = {}
    words = " ".join(text for finding in report["findings"] for text in finding["advice"])
    for finding in quoting:
        named = finding["settings"]
        if named.get("wal_compression"):
            # The servers of other releases are built without lz4 and zstd.
            changes["wal_compression"] = named["wal_compression"] if release == 15 else "on"
        if "checkpoints_apart" in named:
            size = re.search(r"max_wal_size = (\d+ ?[kMG]B)", words)
            if size:
                changes["max_wal_size"] = size[1].replace(" ", "")
            elif "max_wal_size" in words:
                changes["max_wal_size"] = "100GB"
            if "checkpoint_timeout" in words:
                changes["checkpoint_timeout"] = "30min"
    return {name: value for name, value in changes.items() if settings.get(name) != value}


def run_step(server, step, place):
    word, _, rest = step.partition(" ")
    if word == "pgbench":
        pgbench(rest.split(), place)
    elif word == "sql":
        sql(*rest.split("; "))
    elif word == "checkpoint":
        sql("checkpoint")
    elif word == "switch":
        sql("select pg_switch_wal()")
    elif word == "restart":
        server.stop()
        server.start()
    elif word == "crash":
        server.stop("immediate")
        server.start()
    elif word == "copyin":
        copy_in(*rest.split())
    elif word == "sleep":
        time.sleep(float(rest))
    elif word == "backup":
        backup(server, rest, place)
    elif word == "basebackup":
        copy = WORK / "basebackup.new"
        shutil.rmtree(copy, ignore_errors=True)
        as_server(CLIENTS / "pg_basebackup", "-D", copy, "-X", "none", "--no-sync", *rest.split(),
                  stderr=subprocess.DEVNULL)
        shutil.rmtree(copy)
    else:
        raise SystemExit(f"mixed.py: {step}: expected a step")


def pgbench(words, place):
    """pgbench TRANSACTIONS SCRIPT [clients=N] [rate=N] [checkpoint=SECONDS]

    With checkpoint somebody else asks for one after so many seconds.
    """
    options = dict(word.split("=", 1) for word in words[2:])
    command = [CLIENTS / "pgbench", "-n", "-t", words[0], "-c", options.get("clients", "1"), "-j", "1",
               f"--random-seed={1000 + place}"]
    if "rate" in options:
        command += ["-R", options["rate"]]
    if words[1] != "tpcb":
        command += ["-f", STEPS / f"{words[1]}.pgbench"]
    work = subprocess.Popen([str(word) for word in command], env=ENVIRONMENT, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    if "checkpoint" in options:
        time.sleep(float(options["checkpoint"]))
        sql("checkpoint")
    said, _ = work.communicate()
    if work.returncode != 0:
        raise SystemExit(f"mixed.py: {command}: {said[-2000:]}")


def copy_in(name, count):
    """COPY name FROM STDIN with so many rows."""
    lines = "".join(f"{row}\t{row:032x}\t{'c' * (row % 90)}\n" for row in range(10**6, 10**6 + int(count)))
    words = [CLIENTS / "psql", "-X", "-q", "-c", f"copy {name} from stdin"]
    subprocess.run(words, check=True, env=ENVIRONMENT, input=lines, text=True)


def backup(server, inner, place):
    """A base backup by SQL around another step."""
    begin, stop = (("pg_backup_start('mixed', true)", "pg_backup_stop(false)") if server.release >= 15 else
                   ("pg_start_backup('mixed', true, false)", "pg_stop_backup(false, false)"))
    words = [CLIENTS / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
    session = subprocess.Popen(words, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
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


def say(text):
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def rows(load):
    """A row for each run and each way of asking for it."""
    base = load.run("base")
    if not base.is_made():
        return []
    base_bytes = base.facts()["real_bytes"]
    again = load.run("again")
    repeat = 100.0 * (again.facts()["real_bytes"] - base_bytes) / base_bytes if again.is_made() else None
    found = []
    for name in load.runs:
        if name in ADVISED or not load.run(name).is_made():
            continue
        for asked in RUNS[name]:
            options = asked["options"].replace("BASE_MAX_WAL_SIZE", base_max_wal_size(load))
            answer = load.answer(options, f"{name}.{RUNS[name].index(asked)}.answer.json")
            if answer:
                found.append(row(load, name, options, answer, repeat))
    return found


def base_max_wal_size(load):
    return dict(pairs(load.settings)).get("max_wal_size", "100GB")


def row(load, name, options, answer, repeat):
    facts = load.run(name).facts()
    scenario = answer["scenarios"][-1]
    real = facts["real_bytes"]
    low, high, guess = scenario["low_bytes"], scenario["high_bytes"], scenario["predicted_bytes"]
    certain = low == high or scenario["exact_bytes"] == guess
    real_written = real - facts["fill_bytes"]
    # An older program does not say it: what its table of record types comes to.
    changed = sum(entry["difference_bytes"] for entry in scenario["by_record"])
    base = load.run("base").facts()
    headers = PAGE / (PAGE - 24)
    written = scenario.get("written_bytes",
                           base["real_bytes"] - base["fill_bytes"] + round(changed * headers))
    return dict(zip(COLUMNS, [
        load.name, load.release, name, options, real, real_written, guess, low, high,
        written, "yes" if low <= real <= high else "no",
        "yes" if certain else "no", f"{100.0 * (guess - real) / real:+.4f}",
        f"{100.0 * (written - real_written) / real_written:+.4f}",
        f"{100.0 * (high - low) / real:.4f}", "-" if repeat is None else f"{repeat:+.4f}",
        len(facts["checkpoints"]), len(scenario["redo_points"]),
        answer["self_check"]["difference_bytes"]]))


def record_bytes(report):
    return report["totals"]["total_bytes"]


def advice_rows(load):
    """What WHAT TO DO quotes, held against the record bytes of a run under these settings."""
    if not load.run("base").is_made():
        return []
    report = load.base_report()
    rows = (report.get("estimates") or {}).get("scenarios") or []
    own = "on" if load.release != 15 else None
    found = []
    for finding in report["findings"] or []:
        named = finding["settings"]
        if not finding.get("predicted") or not named:
            continue
        run = advised_run(load, named, own)
        if run and run.is_made():
            found.append(advice_row(load, finding["rule"], run, named, rows, report))
    together = report.get("advice_together")
    if together and load.run("advised").is_made():
        found.append(advice_row(load, "together", load.run("advised"), together["settings"], rows, report))
    return [one for one in found if one]


def advised_run(load, named, own):
    """The run that has what a finding advises."""
    spaced, codec = "checkpoints_apart" in named, named.get("wal_compression")
    if spaced and codec:
        return load.run("advised")
    if spaced:
        return load.run("spaced")
    names = [name for name in load.runs if name == ("pglz" if own else codec)]
    return load.run(names[0]) if names else None


def advice_row(load, rule, run, named, rows, report):
    codec = named.get("wal_compression")
    if codec and load.release != 15:
        # Of another release than was advised for: quoted where pglz is the release's codec.
        codec = "pglz"
    apart = named.get("checkpoints_apart", 1)
    quotes = [one for one in rows
              if one["checkpoints_apart"] == apart and one["wal_compression"] == codec]
    base, real = record_bytes(report), record_bytes(json.loads(
        (load.home / f"{run.name}.report.json").read_text()))
    if not quotes:
        return None
    quote = quotes[0]
    return dict(zip(ADVICE_COLUMNS, [
        load.name, load.release, rule, run.facts()["settings"], apart, codec, base, real,
        quote["predicted_bytes"], f"{100.0 * (real - base) / base:+.2f}",
        f"{100.0 * quote['change_ratio']:+.2f}",
        "yes" if quote["low_bytes"] <= real <= quote["high_bytes"] else "no",
        len(load.run("base").facts()["checkpoints"]), len(run.facts()["checkpoints"])]))


def by_record(load, name):
    report = json.loads((load.home / f"{name}.report.json").read_text())
    return {f"{entry['rmgr']}/{entry['record']}": entry for entry in report["records"]}


def why(load, name):
    """Where a run's record types differ from the base's otherwise than was predicted."""
    base, real = by_record(load, "base"), by_record(load, name)
    for place, asked in enumerate(RUNS[name]):
        file = load.home / f"{name}.{place}.answer.json"
        if not file.exists():
            continue
        scenario = json.loads(file.read_text())["scenarios"][-1]
        guessed = {entry["record"]: entry for entry in scenario["by_record"]}
        print(f"{load.name} {name}: {asked['options']}: predicted {scenario['predicted_bytes']}, "
              f"{len(scenario['redo_points'])} redo points; real {load.run(name).facts()['real_bytes']}, "
              f"checkpoints {load.run(name).facts()['checkpoints']}")
        redo = [cycle["redo_lsn"] for cycle in real_cycles(load, name)]
        print(f"  redo points after so many commits: real {transactions_before(load, name, redo)}, "
              f"predicted {transactions_before(load, 'base', scenario['redo_points'])}, base "
              f"{transactions_before(load, 'base', [c['redo_lsn'] for c in real_cycles(load, 'base')])}")
        lines = []
        for label in sorted(set(base) | set(real) | set(guessed)):
            one = lambda table, key: (table.get(label) or {}).get(key, 0)
            bytes_real = padded(real.get(label)) - padded(base.get(label))
            bytes_guess = one(guessed, "difference_bytes")
            images_real = one(real, "fpi_count") - one(base, "fpi_count")
            images_guess = one(guessed, "difference_images")
            counts = one(real, "count") - one(base, "count")
            if abs(bytes_guess - bytes_real) > 8 * max(1, one(real, "count") // 1000):
                lines.append((abs(bytes_guess - bytes_real),
                              f"  {label:32} bytes {bytes_real:+12} predicted {bytes_guess:+12}  images "
                              f"{images_real:+7} predicted {images_guess:+7}  records {counts:+7}"))
        for _, line in sorted(lines, reverse=True)[:12]:
            print(line)


def real_cycles(load, name):
    report = json.loads((load.home / f"{name}.report.json").read_text())
    return [cycle for cycle in report["cycles"]["checkpoints"] if cycle["redo_lsn"]]


def padded(entry):
    if not entry:
        return 0
    return entry.get("total_bytes", 0)


RUNS = {}
for entry in table("mixed-runs.tsv"):
    RUNS.setdefault(entry["id"], []).append(entry)


def write_table(columns, all_rows, file):
    print("\t".join(columns), file=file)
    for one in all_rows:
        print("\t".join(str(one[column]) for column in columns), file=file, flush=True)


def main():
    words = sys.argv[1:]
    if words[:1] == ["--why"]:
        loads = {row["load"]: Load(row) for row in table("mixed-loads.tsv")}
        for name in words[2:] or [run for run in loads[words[1]].runs if run in RUNS]:
            why(loads[words[1]], name)
        return
    flags = {word for word in words if word.startswith("--")}
    names = [word for word in words if not word.startswith("--")]
    loads = [Load(row) for row in table("mixed-loads.tsv") if not names or row["load"] in names]
    WORK.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        shutil.chown(WORK, "postgres")
    if "--ask-again" not in flags:
        for load in loads:
            load.make()
    if "--only-run" in flags:
        return
    write_table(COLUMNS, (one for load in loads for one in rows(load)), sys.stdout)
    advice = [one for load in loads for one in advice_rows(load)]
    with open(WORK / "advice.tsv", "w", encoding="ascii") as file:
        write_table(ADVICE_COLUMNS, advice, file)


if __name__ == "__main__":
    main()
