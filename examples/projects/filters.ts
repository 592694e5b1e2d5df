import { ApiError } from './errors.ts';
import { getColumn, parseText, type Table } from './tables.ts';

/** SQL fragment with the values for its placeholders. */
interface Condition {
  sql: string;
  values: string[];
}

export interface Query {
  columns: string;
  where: Condition;
  order: string;
  /** Maximum number of rows. In SQLite, -1 means no limit. */
  limit: number;
  offset: number;
}

const paging = ['order', 'limit', 'offset'];

const comparisons: ReadonlyMap<string, string> = new Map([
  ['eq', '='],
  ['neq', '<>'],
  ['gt', '>'],
  ['gte', '>='],
  ['lt', '<'],
  ['lte', '<='],
]);

/** Parses a query such as `?status=eq.active&select=id,name&order=name.desc&limit=10`. */
export function parseQuery(table: Table, search: URLSearchParams): Query {
  const filters = [...search].filter(([name]) => name !== 'select' && !paging.includes(name));
  const conditions = filters.map(([name, filter]) => parseFilter(table, name, filter));
  return {
    columns: parseSelect(table, search.get('select') ?? '*'),
    where: {
      sql: conditions.map(({ sql }) => sql).join(' AND '),
      values: conditions.flatMap(({ values }) => values),
    },
    order: parseOrder(table, search.get('order') ?? ''),
    limit: parseCount(search, 'limit') ?? -1,
    offset: parseCount(search, 'offset') ?? 0,
  };
}

/** Rejects paging parameters, because a write that ignores `limit=1` would change more rows than intended. */
export function rejectPaging(search: URLSearchParams): void {
  const pagingParameter = paging.find((name) => search.has(name));
  if (pagingParameter) throw new ApiError(400, 'PGRST109', `${pagingParameter} applies to GET only`);
}

function parseFilter(table: Table, column: string, filter: string): Condition {
  const type = getColumn(table, column);
  const [, operator = '', operand = ''] = /^([a-z]+)\.(.*)$/s.exec(filter) ?? [];
  const comparison = comparisons.get(operator);
  if (comparison) return { sql: `${column} ${comparison} ?`, values: [parseText(type, operand)] };
  switch (operator) {
    case 'like':
      // LIKE is case-insensitive in SQLite, GLOB is case-sensitive.
      return { sql: `${column} GLOB ?`, values: [toGlob(operand)] };
    case 'ilike':
      return { sql: `${column} LIKE ?`, values: [operand.replaceAll('*', '%')] };
    case 'in': {
      const values = parseList(operand).map((value) => parseText(type, value));
      return { sql: `${column} IN (${values.map(() => '?').join(', ')})`, values };
    }
    case 'is':
      if (operand === 'null') return { sql: `${column} IS NULL`, values: [] };
  }
  throw new ApiError(400, 'PGRST100', `failed to parse filter (${filter})`, {
    details: `${column} needs an operator before its value, for example eq.active`,
    hint: 'Operators: eq, neq, gt, gte, lt, lte, like, ilike, in.(a,b), is.null',
  });
}

function toGlob(pattern: string): string {
  return pattern.replace(/[[?]/g, '[$&]').replace(/%/g, '*').replace(/_/g, '?');
}

/** Parses a list such as `(a,b,"c,d")`. Inside quotes, a backslash escapes the next character. */
function parseList(operand: string): string[] {
  if (operand === '()') return [];
  const items: string[] = [];
  if (operand.startsWith('(') && operand.endsWith(')')) {
    for (const match of operand.slice(1, -1).matchAll(/(?:"((?:[^"\\]|\\.)*)"|([^",]*))(,|$)/gy)) {
      items.push(match[1]?.replace(/\\(.)/g, '$1') ?? match[2] ?? '');
      if (match[3] === '') return items;
    }
  }
  throw new ApiError(400, 'PGRST100', `failed to parse list (${operand})`, { hint: 'Write in.(a,b).' });
}

function parseSelect(table: Table, select: string): string {
  const names = select.split(',').flatMap((name) => (name.trim() === '*' ? [...table.columns.keys()] : [name.trim()]));
  for (const name of names) getColumn(table, name);
  return [...new Set(names)].join(', ');
}

function parseOrder(table: Table, order: string): string {
  const terms = order === '' ? [] : order.split(',').map((term) => parseOrderTerm(table, term.trim()));
  // Breaks ties by creation order, so that pages never overlap.
  return [...terms, 'rowid'].join(', ');
}

function parseOrderTerm(table: Table, term: string): string {
  const match = /^(\w+)(?:\.(asc|desc))?(?:\.nulls(first|last))?$/.exec(term);
  if (!match?.[1]) throw new ApiError(400, 'PGRST100', `failed to parse order (${term})`, { hint: 'Write name.desc.' });
  getColumn(table, match[1]);
  const direction = match[2] ?? 'asc';
  // PostgreSQL sorts null as the largest value, SQLite as the smallest.
  const nulls = match[3] ?? (direction === 'asc' ? 'last' : 'first');
  return `${match[1]} ${direction} NULLS ${nulls}`;
}

function parseCount(search: URLSearchParams, name: string): number | undefined {
  const text = search.get(name);
  if (text === null) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ApiError(400, 'PGRST100', `${name} takes a whole number, not "${text}"`);
}
