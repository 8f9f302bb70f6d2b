#!/usr/bin/env python3
"""Holds `walstat whatif` against real servers under mixed loads.

Each load is a sequence of steps (mixed/NAME.steps): pieces of pgbench, COPY, vacuum, index builds,
requested checkpoints, base backups, restarts and crashes. A server goes through it once as the
base, once more under the same settings ("again"), and once under each other setting. The WAL of
the base is asked what the others would write, and the answer is compared with what they wrote.

    benches/whatif/mixed.py [--ask-again | --only-run] [LOAD...]   default: all of mixed-loads.tsv
    benches/whatif/mixed.py --why LOAD [RUN...]                     what came out otherwise

Prints the rows of docs/whatif-mixed.tsv, and leaves those of docs/whatif-mixed-advice.tsv in
advice.tsv. A run that is there already is not made again; --ask-again makes none, and asks what is
there; --only-run asks nothing. What is written goes to WALSTAT_MIXED_WORK (default
/var/tmp/walstat-mixed) and stays there: the WAL of the base as it is, that of other runs packed.
Servers: Debian's in /usr/lib/postgresql, others in WALSTAT_LIVE_SERVERS (tests/live/servers.sh).
"""

import bisect
import json
import os
import re
import shutil
import subprocess
import sys
import time

import mixed_answers as answers
from mixed_server import (CLIENTS, ENVIRONMENT, HERE, STEPS, WORK, Server, as_server,
                          common_settings, insert_lsn, number, run_step, settings_of, sql)

# The runs whose settings the base's own report names: all that is advised, and without the codec.
ADVISED = {"advised": ("wal_compression", "max_wal_size", "checkpoint_timeout"),
           "spaced": ("max_wal_size", "checkpoint_timeout")}

# What is decided when a cluster is made.
OF_CLUSTER = ("segment_mb", "initdb")


def table(name):
    lines = (HERE / name).read_text().splitlines()
    keys = lines[0].split("\t")
    return [dict(zip(keys, line.split("\t"))) for line in lines[1:] if line]


def pack(directory, file):
    subprocess.run(f"tar -C '{directory}' -cf - . | zstd -q -1 -f -o '{file}.new'", shell=True,
                   check=True)
    os.rename(f"{file}.new", file)
    shutil.rmtree(directory)


class Run:
    """One way through the steps of a load."""

    def __init__(self, load, name, settings):
        self.load, self.name, self.settings = load, name, settings
        self.home = load.home / name

    def file(self, kind):
        return self.load.home / f"{self.name}.{kind}"

    def is_made(self):
        return self.file("json").exists()

    def facts(self):
        return json.loads(self.file("json").read_text())

    def report(self):
        return json.loads(self.file("report.json").read_text())

    def by_record(self):
        return {f"{entry['rmgr']}/{entry['record']}": entry for entry in self.report()["records"]}

    def redo_points(self):
        return [cycle["redo_lsn"] for cycle in self.report()["cycles"] if cycle["redo_lsn"]]

    def commits_before(self, lsns):
        """How many transactions had committed before each place."""
        ends = [number(lsn) for lsn in self.file("commits").read_text().split()]
        return [bisect.bisect_left(ends, number(lsn)) for lsn in lsns]

    def make(self):
        if self.is_made():
            return
        answers.say(f"{self.load.name} {self.name} {self.settings}")
        shutil.rmtree(self.home, ignore_errors=True)
        asked = settings_of(self.settings)
        self.load.unpack_begin(self.home, asked)
        server = Server(self.load.release, self.home)
        server.configure(settings_of(self.load.settings))
        began = time.time()
        try:
            facts = self.go(server, {key: asked[key] for key in asked if key not in OF_CLUSTER})
            server.stop()
        finally:
            if server.running:
                server.stop("immediate")
        self.keep({"settings": self.settings, **facts, "seconds": round(time.time() - began, 1)})

    def go(self, server, settings):
        """The steps; from where to where the range goes, and where each step ended."""
        steps = self.load.steps()
        if "start" not in steps:
            steps = ["checkpoint", "start", *steps]
            server.configure(settings)
            settings = {}
        server.start()
        marks = []
        for place, step in enumerate(steps):
            if step == "start":
                # What comes before the range is the base's: the other settings begin here.
                server.configure(settings)
                sql("select pg_reload_conf()", "select pg_sleep(0.1)")
                start, logged = insert_lsn(), (self.home / "log").stat().st_size
            else:
                run_step(server, step, place)
            marks.append((step, insert_lsn()))
        time.sleep(0.2)
        log = (self.home / "log").read_bytes()[logged:].decode(errors="replace")
        self.file("log").write_text(log)
        return {"start": start, "end": marks[-1][1], "marks": marks,
                "checkpoints": re.findall("checkpoint starting: (.*)", log)}

    def keep(self, facts):
        """What the run came to; its WAL, that of the base unpacked."""
        wal = self.file("wal")
        shutil.rmtree(wal, ignore_errors=True)
        wal.mkdir()
        (self.home / "pg_wal").rename(wal / "pg_wal")
        shutil.rmtree(wal / "pg_wal/archive_status", ignore_errors=True)
        shutil.rmtree(self.home)
        facts["real_bytes"] = number(facts["end"]) - number(facts["start"])
        facts["fill_bytes"] = answers.fill_bytes(wal / "pg_wal", facts)
        report = answers.ask_report(wal / "pg_wal", facts)
        self.file("report.json").write_text(json.dumps(report))
        commits = answers.ask_commits(wal / "pg_wal", facts)
        self.file("commits").write_text("\n".join(commits))
        if self.name != "base":
            pack(wal, self.file("wal.tar.zst"))
        self.file("json").write_text(json.dumps(facts, indent=1))


class Load:
    """A row of mixed-loads.tsv."""

    def __init__(self, row, changes):
        self.name, self.release, self.scale = row["load"], int(row["release"]), row["scale"]
        self.segment_mb, self.initdb = row["segment_mb"], row["initdb"]
        self.settings, self.file = row["settings"], row["steps"]
        self.runs, self.changes = row["runs"].split(","), changes
        self.home = WORK / self.name

    def steps(self):
        lines = (STEPS / f"{self.file}.steps").read_text().splitlines()
        return [line for line in lines if line and not line.startswith("#")]

    def prepare(self, segment_mb, initdb):
        """The packed cluster that runs begin with."""
        begin = WORK / f"begin-{self.release}-{self.scale}-{segment_mb}{initdb}.tar.zst"
        if begin.exists():
            return begin
        answers.say(f"{self.name}: {begin.name}")
        directory = WORK / "begin.new"
        shutil.rmtree(directory, ignore_errors=True)
        server = Server(self.release, directory)
        options = [option for option in initdb.split(";") if option != "-"]
        as_server(server.program("initdb"), "-D", directory, "-E", "UTF8", "--locale=C",
                  "-U", "postgres", "-A", "trust", "--no-sync", f"--wal-segsize={segment_mb}",
                  *options, stdout=subprocess.DEVNULL)
        server.configure(common_settings(self.release, int(segment_mb)))
        server.start()
        try:
            subprocess.run([CLIENTS / "pgbench", "-q", "-i", "-s", self.scale], check=True,
                           env=ENVIRONMENT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            tables = (STEPS / "tables.sql").read_text().split(";\n")
            sql(*filter(str.strip, tables))
            sql("vacuum freeze", "analyze", "checkpoint", "checkpoint")
        finally:
            server.stop()
        (directory / "log").unlink()
        pack(directory, begin)
        return begin

    def unpack_begin(self, directory, asked):
        begin = self.prepare(asked.get("segment_mb", self.segment_mb),
                             asked.get("initdb", self.initdb))
        directory.mkdir(parents=True)
        subprocess.run(f"zstd -q -d -c '{begin}' | tar -C '{directory}' -xpf -", shell=True,
                       check=True)

    def make(self):
        self.home.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            shutil.chown(self.home, "postgres")
        for name in ("base", "again", *self.runs):
            if name == "advised":
                for each in ADVISED:
                    self.make_advised(each)
            else:
                self.run(name).make()

    def run(self, name):
        known = name in ("base", "again", *ADVISED)
        return Run(self, name, "" if known else self.changes[name][0]["change"])

    def make_advised(self, name):
        """Under what WHAT TO DO of the base's report advises; anew where that was another thing."""
        changes = answers.advised_settings(self.base_report(), settings_of(self.settings),
                                           self.release)
        settings = ";".join(f"{key}={changes[key]}" for key in ADVISED[name] if key in changes)
        run = Run(self, name, settings)
        if run.is_made() and run.facts()["settings"] != settings:
            run.file("json").unlink()
        if settings:
            run.make()

    def wal(self):
        return self.home / "base.wal/pg_wal"

    def base_report(self):
        """The base's report, by the program of today."""
        facts = self.run("base").facts()
        return answers.asked_once(self.home / "base.today.json", [facts["end"]],
                                  lambda: answers.ask_report(self.wal(), facts))

    def asked(self, only=(), stored=False):
        """Each run that was made, with each way of asking for it and what the program says, or
        said when it was asked last."""
        for name in self.runs:
            if name in ADVISED or only and name not in only or not self.run(name).is_made():
                continue
            for place, entry in enumerate(self.changes[name]):
                size = settings_of(self.settings).get("max_wal_size", "100GB")
                options = entry["options"].replace("BASE_MAX_WAL_SIZE", size)
                file = self.home / f"{name}.{place}.answer.json"
                answer = json.loads(file.read_text()) if stored else self.ask(options, file)
                if answer:
                    yield name, options, answer

    def ask(self, options, file):
        facts = self.run("base").facts()
        return answers.asked_once(file, [options, facts["end"]],
                                  lambda: answers.ask_whatif(self.wal(), facts, options))


def write_table(rows, file):
    for place, row in enumerate(rows):
        if place == 0:
            print("\t".join(row), file=file)
        print("\t".join(map(str, row.values())), file=file, flush=True)


def main():
    flags = {word for word in sys.argv[1:] if word.startswith("--")}
    names = [word for word in sys.argv[1:] if not word.startswith("--")]
    if flags - {"--ask-again", "--only-run", "--why"}:
        sys.exit(__doc__)
    changes = {}
    for entry in table("mixed-runs.tsv"):
        changes.setdefault(entry["id"], []).append(entry)
    loads = [Load(row, changes) for row in table("mixed-loads.tsv")]
    if "--why" in flags:
        for load in loads:
            if load.name == names[0]:
                for asked in load.asked(names[1:], stored=True):
                    answers.why(load, *asked)
        return
    loads = [load for load in loads if not names or load.name in names]
    WORK.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        shutil.chown(WORK, "postgres")
    if "--ask-again" not in flags:
        for load in loads:
            load.make()
    if "--only-run" in flags:
        return
    rows = (answers.row(load, *asked) for load in loads for asked in load.asked())
    write_table(rows, sys.stdout)
    with open(WORK / "advice.tsv", "w", encoding="ascii") as file:
        write_table((row for load in loads for row in answers.advice_rows(load)), file)


if __name__ == "__main__":
    main()
