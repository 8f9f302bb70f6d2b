"""Runs the SQL of a paper with DuckDB, in a folder that has the files it reads: sql.py PAPER [--renew].

Behind each block ```sql stands a block ```text with its rows, as psql shows them. Blocks that differ are told;
with --renew they are written anew.
"""

import re
import sys

import duckdb

BLOCKS = re.compile(r"^```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def shown(relation):
    """Rows as psql shows them: numbers to the right."""
    texts = relation.project("CAST(COLUMNS(*) AS VARCHAR)").fetchall()
    cells = [["" if value is None else value for value in row] for row in texts]
    widths = [max(map(len, [name, *column])) for name, *column in zip(relation.columns, *cells)]
    numeric = [not str(kind).startswith(("VARCHAR", "TIMESTAMP", "BOOLEAN")) for kind in relation.types]

    def line(row):
        fields = (
            field.rjust(width) if right else field.ljust(width) for field, width, right in zip(row, widths, numeric)
        )
        return " " + " | ".join(fields).rstrip() + "\n"

    head = " " + " | ".join(name.center(width) for name, width in zip(relation.columns, widths)).rstrip() + "\n"
    return head + "-" + "-+-".join("-" * width for width in widths) + "-\n" + "".join(map(line, cells))


def main():
    paper, renew = sys.argv[1], "--renew" in sys.argv
    with open(paper, encoding="utf-8") as file:
        text = file.read()
    database = duckdb.connect()
    database.sql("SET TimeZone = 'UTC'")
    ran, differ = 0, []

    def run(block):
        nonlocal ran
        query, told = block.groups()
        relation = database.sql(query)
        if relation is None:
            return block.group(0)
        ran += 1
        found = shown(relation)
        if found != told:
            differ.append(f"{query}shows\n{found}and not\n{told}")
        return f"```sql\n{query}```\n\n```text\n{found}```\n"

    text = BLOCKS.sub(run, text)
    if renew:
        with open(paper, "w", encoding="utf-8") as file:
            file.write(text)
    elif differ:
        sys.exit("\n".join(differ))
    print(f"{ran} questions")


if __name__ == "__main__":
    main()
