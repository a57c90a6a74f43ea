-- queries, their lists of candidates, and who opened them
CREATE TABLE IF NOT EXISTS annotated(number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, query TEXT UNIQUE NOT NULL,
    text TEXT NOT NULL, facts TEXT NOT NULL, grows INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS candidates(annotated INTEGER NOT NULL, place INTEGER NOT NULL, image TEXT NOT NULL,
    path TEXT NOT NULL, PRIMARY KEY(annotated, place), UNIQUE(annotated, image)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS desk(only INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS openings(annotated INTEGER NOT NULL, person TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY(annotated, person, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS narrowings(annotated INTEGER PRIMARY KEY, place INTEGER NOT NULL);
-- audits: how each was drawn, who works at it, and which of its photos went to whom
CREATE TABLE IF NOT EXISTS audits(annotated INTEGER NOT NULL, person TEXT NOT NULL, rest INTEGER NOT NULL,
    lot REAL NOT NULL, drawn TEXT NOT NULL, seen TEXT NOT NULL, at REAL NOT NULL, number INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS audit_designs(audit INTEGER PRIMARY KEY, even TEXT NOT NULL, bands TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS audit_people(audit INTEGER NOT NULL, person TEXT NOT NULL, number INTEGER PRIMARY KEY,
    UNIQUE(audit, person));
CREATE TABLE IF NOT EXISTS audit_shares(audit INTEGER NOT NULL, image TEXT NOT NULL, person TEXT NOT NULL,
    at REAL NOT NULL, number INTEGER PRIMARY KEY, UNIQUE(audit, image, person));
CREATE TABLE IF NOT EXISTS audit_lists(audit INTEGER PRIMARY KEY, listed INTEGER NOT NULL);
-- the team: lists that several people go down, assignments, disputes, marks of whole groups, flags
CREATE TABLE IF NOT EXISTS shared_lists(query TEXT PRIMARY KEY, seed TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS list_leases(query TEXT NOT NULL, image TEXT NOT NULL, person TEXT NOT NULL,
    at REAL NOT NULL, number INTEGER PRIMARY KEY, UNIQUE(query, image, person));
CREATE TABLE IF NOT EXISTS assignments(query TEXT NOT NULL, person TEXT NOT NULL, lead TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY(query, person)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dispute_notes(number INTEGER PRIMARY KEY, query TEXT NOT NULL, image TEXT NOT NULL,
    person TEXT NOT NULL, note TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS group_marks(query TEXT NOT NULL, person TEXT NOT NULL, image TEXT NOT NULL,
    at REAL NOT NULL, PRIMARY KEY(query, person, image)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS team_rules(rule TEXT PRIMARY KEY, value TEXT NOT NULL, lead TEXT NOT NULL,
    at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS photo_flags(number INTEGER PRIMARY KEY, image TEXT NOT NULL, kind TEXT NOT NULL,
    reason TEXT NOT NULL, person TEXT NOT NULL, at REAL NOT NULL, raised INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS photo_flags_image ON photo_flags(image);
