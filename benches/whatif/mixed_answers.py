"""What walstat says for mixed.py, held against what servers wrote."""

import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from mixed_server import HERE, number, settings_of

WALSTAT = os.environ.get("WALSTAT", str(HERE.parent.parent / "target/release/walstat"))
PAGE = 8192


def say(text):
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def walstat(*words):
    """What it prints; None where it could not."""
    words = [WALSTAT, *map(str, words)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    # 4: damage, such as what a crash tears.
    if done.returncode in (0, 4):
        return done.stdout
    say(f"{' '.join(words)}: {done.returncode}: {done.stderr.strip()}")
    return None


@functools.cache
def program_digest():
    return hashlib.sha256(pathlib.Path(WALSTAT).read_bytes()).hexdigest()


def asked_once(file, about, ask):
    """What the program said; what this very program said before is not asked again."""
    about = [program_digest(), *about]
    if file.exists():
        kept = json.loads(file.read_text())
        if kept.get("asked") == about:
            return kept
    answer = ask()
    if answer is None:
        return None
    answer = {"asked": about, **answer}
    file.write_text(json.dumps(answer, indent=1))
    return answer


def ask_whatif(wal, facts, options):
    said = walstat("whatif", "-f", "json", "-s", facts["start"], "-e", facts["end"],
                   *options.split(), wal)
    return said and json.loads(said)["whatif"]


def ask_report(wal, facts):
    """The full report, and its checkpoint cycles, which the report alone does not list."""
    options = ["-f", "json", "--as", "pg_wal", "-s", facts["start"], "-e", facts["end"], wal]
    said = [walstat(*words, *options) for words in ([], ["--stats=checkpoint"])]
    if None in said:
        return None
    report, cycles = map(json.loads, said)
    return {**report, "cycles": cycles["checkpoints"]}


def ask_commits(wal, facts):
    """Where each transaction committed: a place in one run's WAL is found in another's by them."""
    said = walstat("records", "--as", "pg_wal", "-s", facts["start"], "-e", facts["end"],
                   "--record", "COMMIT", wal)
    return [line.split()[0] for line in (said or "").splitlines()[1:] if line]


def fill_bytes(directory, facts):
    """What switches left empty: zeros up to the ends of segments, but for the last."""
    start, end = number(facts["start"]), number(facts["end"])
    files = sorted(file for file in directory.iterdir() if re.fullmatch("[0-9A-F]{24}", file.name))
    size = files[0].stat().st_size
    per_log = 0x100000000 // size
    total = 0
    for file in files:
        at = (int(file.name[8:16], 16) * per_log + int(file.name[16:], 16)) * size
        if at + size <= start or at + size > end:
            continue
        data = file.read_bytes()
        used = (len(data.rstrip(b"\0")) + 7) // 8 * 8
        empty = size - max(used, start - at)
        # Less than a page may be the end of an image that goes on in the next segment.
        total += empty if empty >= PAGE else 0
    return total


def advised_settings(report, settings, release):
    """Settings that WHAT TO DO names: max_wal_size and checkpoint_timeout by its words."""
    changes = {}
    words = " ".join(text for finding in report["findings"] for text in finding["advice"])
    for finding in report["findings"]:
        if not finding.get("predicted"):
            continue
        if finding["settings"].get("wal_compression"):
            codec = codec_of(release, finding["settings"]["wal_compression"])
            changes["wal_compression"] = "on" if codec == "pglz" else codec
        if "checkpoints_apart" in finding["settings"]:
            size = re.search(r"max_wal_size = (\d+) ?([kMG]B)", words)
            if size or "max_wal_size" in words:
                changes["max_wal_size"] = "".join(size.groups()) if size else "100GB"
            if "checkpoint_timeout" in words:
                changes["checkpoint_timeout"] = "30min"
    return {name: value for name, value in changes.items() if settings.get(name) != value}


def codec_of(release, codec):
    """The servers of other releases than 15 are built without lz4 and zstd."""
    return codec if release == 15 else "pglz"


def row(load, name, options, answer):
    """One run, and one way of asking for it."""
    facts, base = load.run(name).facts(), load.run("base").facts()
    again, scenario = load.run("again"), answer["scenarios"][-1]
    repeat = "-"
    if again.is_made():
        repeat = percent(again.facts()["real_bytes"], base["real_bytes"])
    real, guess = facts["real_bytes"], scenario["predicted_bytes"]
    low, high = scenario["low_bytes"], scenario["high_bytes"]
    # An older program does not say it: what its table of record types comes to, and page headers.
    changed = sum(entry["difference_bytes"] for entry in scenario["by_record"])
    told = base["real_bytes"] - base["fill_bytes"] + round(changed * PAGE / (PAGE - 24))
    written, real_written = scenario.get("written_bytes", told), real - facts["fill_bytes"]
    return {
        "load": load.name, "release": load.release, "run": name, "option": options,
        "real_bytes": real, "real_written_bytes": real_written,
        "predicted_bytes": guess, "low_bytes": low, "high_bytes": high,
        "predicted_written_bytes": written,
        "in_range": "yes" if low <= real <= high else "no",
        "certain": "yes" if low == high or scenario["exact_bytes"] == guess else "no",
        "miss_percent": percent(guess, real),
        "written_miss_percent": percent(written, real_written),
        "range_width_percent": f"{100.0 * (high - low) / real:.4f}",
        "repeat_percent": repeat,
        "real_redo": len(facts["checkpoints"]), "predicted_redo": len(scenario["redo_points"]),
        "self_check_bytes": answer["self_check"]["difference_bytes"],
    }


def percent(value, whole):
    return f"{100.0 * (value - whole) / whole:+.4f}"


def advice_rows(load):
    """What WHAT TO DO quotes, held against the record bytes of a run under these settings."""
    if not load.run("base").is_made():
        return
    report = load.base_report()
    quotes = [(one["rule"], one["settings"], one["predicted"]) for one in report["findings"] or []
              if one.get("predicted") and one["settings"]]
    if together := report.get("advice_together"):
        quotes.append(("together", together["settings"], together["predicted"]))
    for rule, settings, predicted in quotes:
        run = advised_run(load, settings)
        if not (run and run.is_made()):
            continue
        codec, quote = quote_for(run, settings, predicted, report)
        if quote:
            yield advice_row(load, rule, run, (settings, codec), quote, report)


def advised_run(load, settings):
    """The run that has what a finding advises."""
    codec = settings.get("wal_compression")
    if "checkpoints_apart" in settings:
        return load.run("advised" if codec else "spaced")
    name = codec and codec_of(load.release, codec)
    return load.run(name) if name in load.runs else None


def quote_for(run, settings, predicted, report):
    """The codec that the run had, and the same for it where another one is quoted."""
    stored = settings_of(run.facts()["settings"]).get("wal_compression")
    codec = "pglz" if stored == "on" else stored
    if settings.get("wal_compression") in (None, codec):
        return codec, predicted
    tried = (report.get("estimates") or {}).get("scenarios") or []
    wanted = (settings.get("checkpoints_apart", 1), codec)
    same = [one for one in tried if (one["checkpoints_apart"], one["wal_compression"]) == wanted]
    return codec, same[0] if same else None


def advice_row(load, rule, run, quoted, quote, report):
    base = report["totals"]["total_bytes"]
    real = run.report()["totals"]["total_bytes"]
    low, high = quote["low_bytes"], quote["high_bytes"]
    settings, codec = quoted
    return {
        "load": load.name, "release": load.release, "rule": rule,
        "settings": run.facts()["settings"],
        "quoted_apart": settings.get("checkpoints_apart", 1),
        "quoted_codec": codec,
        "base_record_bytes": base, "real_record_bytes": real,
        "predicted_record_bytes": quote["predicted_bytes"],
        "real_change_percent": percent(real, base),
        "predicted_change_percent": f"{100.0 * quote['change_ratio']:+.4f}",
        "in_range": "yes" if low <= real <= high else "no",
        "base_redo": len(load.run("base").facts()["checkpoints"]),
        "real_redo": len(run.facts()["checkpoints"]),
    }


def why(load, name, options, answer):
    """Where a run came out otherwise than was predicted: redo points, then types of records."""
    run, base, scenario = load.run(name), load.run("base"), answer["scenarios"][-1]
    print(f"{load.name} {name}: {options}: predicted {scenario['predicted_bytes']}, "
          f"real {run.facts()['real_bytes']}; the server's log: {run.facts()['checkpoints']}")
    redo = {"real": run.commits_before(run.redo_points()),
            "predicted": base.commits_before(scenario["redo_points"]),
            "base": base.commits_before(base.redo_points())}
    print("  redo points after so many commits:",
          ", ".join(f"{whose} {commits}" for whose, commits in redo.items()))
    guessed = {entry["record"]: entry for entry in scenario["by_record"]}
    lines = []
    for record in set(base.by_record()) | set(run.by_record()) | set(guessed):
        here, there = run.by_record().get(record, {}), base.by_record().get(record, {})
        real, images, records = (here.get(key, 0) - there.get(key, 0)
                                 for key in ("total_bytes", "fpi_count", "count"))
        guess = guessed.get(record, {"difference_bytes": 0, "difference_images": 0})
        off = abs(guess["difference_bytes"] - real)
        # Predictions count padding: up to 7 bytes a record.
        if off > 7 * here.get("count", 0) or images != guess["difference_images"] or records:
            lines.append((off, f"  {record:32} bytes {real:+12} predicted "
                          f"{guess['difference_bytes']:+12}  images {images:+7} predicted "
                          f"{guess['difference_images']:+7}  records {records:+7}"))
    for _, line in sorted(lines, reverse=True)[:12]:
        print(line)
