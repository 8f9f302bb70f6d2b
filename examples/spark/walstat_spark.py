#!/usr/bin/env python3
"""walstat on Apache Spark: the report of an archive that is too large for one machine.

    spark-submit --master spark://... walstat_spark.py --prefix DIR-or-URL --walstat BIN [walstat options]

Standard output is what `walstat --format json [walstat options] PREFIX` prints, and nothing else, but for
`input.paths`; the exit code is walstat's, too. Counting is done by walstat itself: this only says who reads what.

    list      the driver lists the prefix and cuts the segments, in the order of their names, into runs
    map       an executor reads a run with `walstat --partial`: a partial result has some kilobytes a segment
    reduce    executors join partial results with `walstat merge --partial`, so many at a time, as a tree
    report    the driver has `walstat merge` make the report of what is left

A record that crosses from one run into the next, and a timeline whose history is elsewhere, lose nothing: partial
results keep their open ends, and every run gets all histories. A task of an executor that was lost is done again by
another. Executors need the prefix and BIN under the same paths as the driver; what is under the prefix is only read.
A prefix of a bucket (s3://, gs://) is listed by pyarrow; its objects are read by walstat itself, which needs the feature
`cloud` for that, with the credentials that executors have in their environment.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

SEGMENT = re.compile(r"[0-9A-Fa-f]{24}")
HISTORY = re.compile(r"[0-9A-Fa-f]{8}\.history")
# What walstat does not look into, and base backups beside the WAL in an archiver's tree.
PASSED_OVER = ["archive_status", "summaries", "lost+found"]
BASE_BACKUPS = [("archive", "backup"), ("wals", "base"), ("wal_005", "basebackups_005")]


def listed(prefix):
    """Directories and files below a directory, as paths relative to it."""

    def refuse(error):
        sys.exit(f"walstat_spark.py: {error.filename}: {error.strerror}")

    directories, files = [], []
    for path, below, names in os.walk(prefix, onerror=refuse, followlinks=True):
        below.sort()
        directories += [os.path.relpath(os.path.join(path, name), prefix) for name in below]
        files += [os.path.relpath(os.path.join(path, name), prefix) for name in sorted(names)]
    return directories, files


def listed_objects(prefix, endpoint):
    """The same of a bucket, without base backups beside the WAL, which are not part of it."""
    from pyarrow import fs

    if endpoint and prefix.startswith("s3://"):
        scheme, _, host = endpoint.partition("://")
        store, base = fs.S3FileSystem(endpoint_override=host, scheme=scheme), prefix.removeprefix("s3://")
    else:
        store, base = fs.FileSystem.from_uri(prefix)
    base = base.rstrip("/")
    infos = store.get_file_info(fs.FileSelector(base, recursive=True))
    files = [os.path.relpath(info.path, base) for info in infos if info.type == fs.FileType.File]
    folders = {folder for file in files for folder in above(file)}

    def is_apart(folder):
        beside, name = os.path.split(folder)
        backups = any(name == b and os.path.join(beside, wal) in folders for wal, b in BASE_BACKUPS)
        return backups or name.startswith(".") or name in PASSED_OVER

    return sorted(file for file in files if not any(map(is_apart, above(file))))


def above(file):
    """The directories that a file lies in."""
    while file := os.path.dirname(file):
        yield file


def is_a(pattern, file):
    return pattern.match(os.path.basename(file)) and not file.endswith(".backup")


def cut(files, segments):
    """Runs of so many segments. Each has all histories; the first has what is neither of both, too."""

    histories = [file for file in files if is_a(HISTORY, file)]
    wal = sorted((file for file in files if is_a(SEGMENT, file)), key=lambda file: (os.path.basename(file), file))
    others = [file for file in files if not is_a(HISTORY, file) and not is_a(SEGMENT, file)]
    runs = [wal[begin : begin + segments] for begin in range(0, len(wal), segments)] or [[]]
    runs[0] = others + runs[0]
    return [histories + run for run in runs]


def walstat(arguments, folder):
    """Runs walstat in a folder. It has a result with exit code 0, and with 4 where something is wrong with the WAL."""
    ran = subprocess.run(arguments, cwd=folder, capture_output=True)
    if ran.returncode not in (0, 4):
        raise RuntimeError(f"{' '.join(arguments)}: exit code {ran.returncode}: {ran.stderr.decode(errors='replace')}")


def written(folder, parts):
    """Partial results as files in a folder: their names, in order."""
    names = [f"part{index}" for index in range(len(parts))]
    for name, part in zip(names, parts):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(part)
    return names


class Work:
    """What executors do. Of a directory, a run is read through a tree of links like that under the prefix, with nothing
    else in it."""

    def __init__(self, binary, prefix, directories, options):
        self.binary, self.prefix, self.directories, self.options = binary, prefix, directories, options

    def partial(self, run):
        with tempfile.TemporaryDirectory() as folder:
            paths = self.objects(run, folder) if "://" in self.prefix else self.links(run, folder)
            walstat([self.binary, "--partial", *self.options, "-o", "part", *paths], folder)
            with open(os.path.join(folder, "part"), "rb") as part:
                return part.read()

    def links(self, run, folder):
        tree = os.path.basename(self.prefix) or "wal"
        for directory in ["."] + self.directories:
            os.makedirs(os.path.join(folder, tree, directory), exist_ok=True)
        for file in run:
            os.symlink(os.path.join(self.prefix, file), os.path.join(folder, tree, file))
        return [tree]

    def objects(self, run, folder):
        """Objects by their names. Of other files the report has the names alone: they lie in a directory that walstat
        expects no segments in."""
        wal = [file for file in run if is_a(SEGMENT, file) or is_a(HISTORY, file)]
        os.mkdir(os.path.join(folder, "summaries"))
        for file in set(run) - set(wal):
            open(os.path.join(folder, "summaries", os.path.basename(file)), "w").close()
        return [f"{self.prefix}/{file}" for file in wal] + ["summaries"]

    def join(self, parts):
        with tempfile.TemporaryDirectory() as folder:
            walstat([self.binary, "merge", "--partial", "-o", "joined", *written(folder, parts)], folder)
            with open(os.path.join(folder, "joined"), "rb") as joined:
                return joined.read()


def merged(work, runs, fan_in):
    """The partial results of all runs, joined until so many are left that one machine merges them."""
    from pyspark.sql import SparkSession

    context = SparkSession.builder.appName("walstat").getOrCreate().sparkContext
    parts = context.parallelize(list(enumerate(runs)), len(runs)).mapValues(work.partial)
    left = len(runs)
    while left > fan_in:
        left = -(-left // fan_in)
        numbered = parts.map(lambda part: (part[0] // fan_in, part))
        groups = numbered.groupByKey(left)
        parts = groups.mapValues(lambda group: work.join([bytes for _, bytes in sorted(group)]))
    return [bytes for _, bytes in sorted(parts.collect())]


def main():
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description="walstat on Apache Spark; other options are walstat's."
    )
    parser.add_argument("--prefix", required=True, help="a directory, mounted under the same path everywhere, or a URL")
    parser.add_argument("--endpoint", default=os.environ.get("AWS_ENDPOINT_URL"), help="of another store than Amazon's")
    parser.add_argument("--walstat", required=True, help="the program, under the same path everywhere")
    parser.add_argument(
        "-o", "--output", help="a file for the JSON: spark-submit mixes what else is said into standard output"
    )
    parser.add_argument("--run", type=int, default=64, metavar="N", help="segments a task reads (default: 64)")
    parser.add_argument("--fan-in", type=int, default=16, metavar="N", help="partial results joined at a time (16)")
    given, options = parser.parse_known_args()
    if given.run < 1 or given.fan_in < 2:
        parser.error("--run takes 1 or more, --fan-in 2 or more")
    binary = os.path.abspath(shutil.which(given.walstat) or given.walstat)
    prefix, directories = given.prefix.removeprefix("file://").rstrip("/"), []
    if "://" in prefix:
        files = listed_objects(prefix, given.endpoint)
        options += ["--endpoint", given.endpoint] if given.endpoint else []
    else:
        prefix = os.path.abspath(prefix or "/")
        if not os.path.isdir(prefix):
            sys.exit(f"walstat_spark.py: {given.prefix}: expected a directory")
        directories, files = listed(prefix)
    work = Work(binary, prefix, directories, ["--format", "json", *options])
    parts = merged(work, cut(files, given.run), given.fan_in)
    to_file = ["-o", os.path.abspath(given.output)] if given.output else []
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.flush()
        sys.exit(subprocess.run([binary, "merge", *to_file, *written(folder, parts)], cwd=folder).returncode)


if __name__ == "__main__":
    main()
