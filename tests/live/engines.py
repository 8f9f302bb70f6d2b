"""What an engine makes of the Parquet file of `walstat records`: engines.py FILE ENGINE...

Standard output is JSON: for each engine and each question the rows of a GROUP BY, as text, and what it takes the
columns for.
"""

import json
import sys

QUESTIONS = {"rmgrs": ["rmgr"], "records": ["rmgr", "record"], "tables": ["database", "schema_name", "table_name"]}
SUMS = ["total_bytes", "fpi_bytes"]


def by_sql(run, file):
    """Rows from an engine that takes SQL."""
    answers = {}
    for name, keys in QUESTIONS.items():
        fields = [f"CAST({key} AS VARCHAR(99))" for key in keys] + ["CAST(count(*) AS VARCHAR(99))"]
        fields += [f"CAST(sum({column}) AS VARCHAR(99))" for column in SUMS]
        answers[name] = run(f"SELECT {', '.join(fields)} FROM {file} GROUP BY {', '.join(keys)}")
    return answers


def duckdb(file):
    import duckdb

    types = duckdb.sql(f"DESCRIBE FROM '{file}'").project("column_name, column_type").fetchall()
    return by_sql(lambda query: duckdb.sql(query).fetchall(), f"'{file}'"), dict(types)


def pyarrow(file):
    import pyarrow.parquet

    table, answers = pyarrow.parquet.read_table(file), {}
    for name, keys in QUESTIONS.items():
        grouped = table.group_by(keys).aggregate([([], "count_all")] + [(column, "sum") for column in SUMS])
        columns = [grouped[name] for name in keys + ["count_all"] + [f"{column}_sum" for column in SUMS]]
        answers[name] = [[v if v is None else str(v) for v in row] for row in zip(*(c.to_pylist() for c in columns))]
    return answers, {field.name: str(field.type) for field in table.schema}


def spark(file):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.conf.set("spark.sql.shuffle.partitions", 1)
    answers = by_sql(lambda query: [list(row) for row in session.sql(query).collect()], f"parquet.`{file}`")
    return answers, dict(session.read.parquet(file).dtypes)


def main():
    file, *engines = sys.argv[1:]
    answers = {}
    for engine in engines:
        rows, types = {"duckdb": duckdb, "pyarrow": pyarrow, "spark": spark}[engine](file)
        answers[engine] = {**rows, "types": types}
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
