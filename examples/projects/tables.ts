import { ApiError } from './errors.ts';

type ColumnType = 'uuid' | 'text' | 'date';

/** Only source of identifiers in SQL. Names that are not listed here never reach a statement. */
export interface Table {
  readonly name: string;
  readonly columns: ReadonlyMap<string, ColumnType>;
}

export const tables: readonly Table[] = [
  {
    name: 'projects',
    columns: new Map<string, ColumnType>([
      ['id', 'uuid'],
      ['name', 'text'],
      ['description', 'text'],
      ['status', 'text'],
    ]),
  },
  {
    name: 'tasks',
    columns: new Map<string, ColumnType>([
      ['id', 'uuid'],
      ['project_id', 'uuid'],
      ['title', 'text'],
      ['description', 'text'],
      ['status', 'text'],
      ['priority', 'text'],
      ['assignee', 'text'],
      ['due_date', 'date'],
    ]),
  },
];

export function getTable(name: string): Table {
  const table = tables.find((candidate) => candidate.name === name);
  if (table) return table;
  throw new ApiError(404, 'PGRST205', `Could not find the table '${name}'`, { hint: 'The tables: projects, tasks.' });
}

export function getColumn(table: Table, name: string): ColumnType {
  const type = table.columns.get(name);
  if (type) return type;
  throw new ApiError(400, '42703', `column ${table.name}.${name} does not exist`, {
    hint: `The columns: ${[...table.columns.keys()].join(', ')}.`,
  });
}

/** Checks a text against the column type, as PostgreSQL does for filters and stored values. */
export function parseText(type: ColumnType, text: string): string {
  if (type === 'uuid') {
    if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text.toLowerCase();
    throw new ApiError(400, '22P02', `invalid input syntax for type uuid: "${text}"`);
  }
  if (type === 'date' && !isCalendarDate(text)) {
    throw new ApiError(400, '22007', `invalid input syntax for type date: "${text}"`, { hint: 'Write YYYY-MM-DD.' });
  }
  return text;
}

function isCalendarDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  // Date converts 30 February to March, so the result must equal the input.
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/** Converts an object of a request body to pairs of column and value. */
export function parseRow(table: Table, body: unknown): Map<string, string | null> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ApiError(400, 'PGRST102', 'A row is a JSON object', { hint: 'POST also takes an array of objects.' });
  }
  return new Map(
    Object.entries(body).map(([name, value]: [string, unknown]) => [name, parseValue(table, name, value)]),
  );
}

function parseValue(table: Table, name: string, value: unknown): string | null {
  const type = getColumn(table, name);
  if (value === null) return null;
  if (typeof value === 'string') return parseText(type, value);
  throw new ApiError(400, '22P02', `column "${name}" takes a string or null, not ${JSON.stringify(value)}`);
}
