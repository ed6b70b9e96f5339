//! A store as SQL text.

use std::fmt::Write as _;
use std::path::Path;

use rusqlite::Connection;

/// Returns the statements that make a store, with the marks of its file.
pub(crate) fn write(db: &Connection) -> String {
    let mark = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    let mut text = String::from("-- A store that an earlier release has written. Do not change it.\n");
    for name in ["application_id", "user_version"] {
        writeln!(text, "PRAGMA {name} = {};", mark(name)).unwrap();
    }
    let objects =
        strings(db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid");
    for sql in objects {
        writeln!(text, "{sql};").unwrap();
    }
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%' ORDER BY name = 'sqlite_sequence', rowid";
    for table in strings(db, tables) {
        if table == "sqlite_sequence" {
            writeln!(text, "DELETE FROM sqlite_sequence;").unwrap();
        }
        let columns = strings(db, &format!("SELECT name FROM pragma_table_info('{table}')"));
        let values: Vec<_> = columns.iter().map(|column| format!("quote({column})")).collect();
        for row in strings(db, &format!("SELECT {} FROM {table}", values.join(" || ', ' || "))) {
            writeln!(text, "INSERT INTO {table} ({}) VALUES ({row});", columns.join(", ")).unwrap();
        }
    }
    text
}

/// Makes a store of the statements.
pub(crate) fn read(path: &Path, text: &str) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(&format!("PRAGMA foreign_keys = OFF; BEGIN; {text} COMMIT;")).unwrap();
}

/// Returns the tables, indexes and triggers of a store, in the order of their names.
pub(crate) fn schema(path: &Path) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    strings(
        &db,
        "SELECT name || ': ' || coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name",
    )
}

fn strings(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
