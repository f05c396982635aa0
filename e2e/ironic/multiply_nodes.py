"""Copies the newest node of an Ironic on SQLite up to a number of nodes: `multiply_nodes.py DATABASE COUNT`.

Creating ten thousand nodes through the API takes much longer than the measurement. The copies are rows like the first
node's, with unique names and identities.
"""
import sqlite3
import sys
import uuid

database, count = sys.argv[1], int(sys.argv[2])
with sqlite3.connect(database, timeout=30) as connection:
    connection.row_factory = sqlite3.Row
    first = connection.execute("SELECT * FROM nodes ORDER BY id DESC LIMIT 1").fetchone()
    if first is None:
        sys.exit("there is no node to copy")
    missing = count - connection.execute("SELECT count(*) FROM nodes").fetchone()[0]
    columns = [column for column in first.keys() if column != "id"]
    own = {"uuid": lambda _: str(uuid.uuid4()), "name": lambda number: f"copy~{first['id']}-{number}"}
    rows = (
        [own[column](number) if column in own else first[column] for column in columns]
        for number in range(missing)
    )
    marks = ", ".join("?" for _ in columns)
    connection.executemany(f"INSERT INTO nodes ({', '.join(columns)}) VALUES ({marks})", rows)
print(f"{max(missing, 0)} copies of {first['name']}")
