import { DatabaseSync } from 'node:sqlite';

// Callers see the name of a constraint as the error message.
const schema = `
  CREATE TABLE projects (
    id          TEXT NOT NULL PRIMARY KEY,
    name        TEXT NOT NULL,
    description TEXT,
    status      TEXT NOT NULL DEFAULT 'active'
                CONSTRAINT "status is one of active, archived" CHECK (status IN ('active', 'archived'))
  ) STRICT;

  CREATE TABLE tasks (
    id          TEXT NOT NULL PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    title       TEXT NOT NULL,
    description TEXT,
    status      TEXT NOT NULL DEFAULT 'todo'
                CONSTRAINT "status is one of todo, in_progress, done" CHECK (status IN ('todo', 'in_progress', 'done')),
    priority    TEXT NOT NULL DEFAULT 'medium'
                CONSTRAINT "priority is one of low, medium, high" CHECK (priority IN ('low', 'medium', 'high')),
    assignee    TEXT,
    due_date    TEXT
                CONSTRAINT "due_date is a calendar date, YYYY-MM-DD"
                CHECK (due_date GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]' AND due_date = date(due_date))
  ) STRICT;

  CREATE INDEX tasks_of_project ON tasks (project_id);
`;

// Fixed IDs, so that the commands in README.md work unchanged.
const seed = `
  INSERT INTO projects (id, name, description, status) VALUES
    ('5f0c2b8e-3f57-4c7e-9d0a-1b6a4e2f7c01', 'Website relaunch', 'New design and faster pages', 'active'),
    ('5f0c2b8e-3f57-4c7e-9d0a-1b6a4e2f7c02', 'Office move', NULL, 'archived');

  INSERT INTO tasks (id, project_id, title, status, priority, assignee, due_date) VALUES
    ('a3d9e6f4-82b1-4e0d-b6c5-7f2d1c9e8a01', '5f0c2b8e-3f57-4c7e-9d0a-1b6a4e2f7c01',
     'Draw the new start page', 'in_progress', 'high', 'Ada', '2027-03-01'),
    ('a3d9e6f4-82b1-4e0d-b6c5-7f2d1c9e8a02', '5f0c2b8e-3f57-4c7e-9d0a-1b6a4e2f7c01',
     'Measure the loading time', 'todo', 'medium', NULL, NULL),
    ('a3d9e6f4-82b1-4e0d-b6c5-7f2d1c9e8a03', '5f0c2b8e-3f57-4c7e-9d0a-1b6a4e2f7c02',
     'Return the old keys', 'done', 'low', 'Grace', '2026-06-30');
`;

/** Opens the database and adds the sample rows if the file is new. Deleted samples do not return. */
export function openDatabase(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { enableForeignKeyConstraints: true, timeout: 5000 });
  try {
    inTransaction(database, () => {
      if (database.prepare('PRAGMA user_version').get()?.user_version !== 0) return;
      database.exec(schema);
      database.exec(seed);
      database.exec('PRAGMA user_version = 1');
    });
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

export function inTransaction<Result>(database: DatabaseSync, work: () => Result): Result {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
