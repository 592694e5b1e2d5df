import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { yieldBetweenRows } from '../domain/work/next-turn.ts';
import type { Db } from './db.ts';
import { isOf } from './page.ts';

/** Returns the condition that a column contains a text, ignoring the case of Latin letters. */
function holds(column: string, text: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`lower(${sql.ref(column)}) like ${`%${literal(text)}%`} escape '\\'`;
}

/** Escapes a text for a `like` pattern. Only Latin letters are lowercased, as in SQLite. */
function literal(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()).replaceAll(/[\\%_]/g, '\\$&');
}

/** Returns the condition that a server has a word in its slug, name, or tags. */
export function isNamed(word: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${holds('slug', word)} or ${holds('name', word)} or ${holds('tags', word)})`;
}

/** Search terms. All words must match, in the given servers or, if undefined, in the whole workspace. */
type Wanted = { words: readonly string[]; slugs: readonly string[] | undefined };

type FoundServer = { slug: string; name: string };

/** Finds servers by name, slug, and tags. Servers whose slug starts with the words come first. */
export async function findServersByWords(
  db: Db,
  workspaceId: string,
  wanted: Wanted,
  most: number,
): Promise<FoundServer[]> {
  const begins = sql`case when slug like ${`${literal(wanted.words.join('-'))}%`} escape '\\' then 0 else 1 end`;
  return wanted.words
    .reduce((query, word) => query.where(isNamed(word)), serversOf(db, workspaceId, wanted))
    .select(['slug', 'name'])
    .orderBy(begins)
    .orderBy('slug')
    .limit(most)
    .execute();
}

/**
 * Maximum number of servers, and of characters in their tool names, that one tool search scans. Several words may occur
 * in different tools of a server.
 */
const mostLookedThrough = 1000;
const longestLookedThrough = 3_000_000;

/**
 * Returns tool names in their searchable form: one line for each, in lower case, because converting them takes most of
 * the time of a search. A name with upper-case letters follows in its line a second time.
 */
export function searchedNames(names: readonly string[]): string {
  const lines = names.map((name) => (name === name.toLowerCase() ? name : `${name.toLowerCase()} ${name}`));
  return ['', ...lines, ''].join('\n');
}

/**
 * Finds tools whose name, together with the name of their server, contains each word, at least one of them in the tool
 * name itself. Tools whose name starts with the words come first.
 */
export async function findToolsByWords(
  db: Db,
  workspaceId: string,
  wanted: Wanted,
  most: number,
): Promise<(FoundServer & { tool: string })[]> {
  const { words } = wanted;
  const rank = sql`case when tool_names like ${`%\n${literal(words.join('_'))}%`} escape '\\' then 0 else 1 end`;
  const candidates = words
    .reduce(
      (query, word) => query.where(sql<SqlBool>`(${hasTool(word)} or ${isNamed(word)})`),
      serversOf(db, workspaceId, wanted).where(sql<SqlBool>`(${sql.join(words.map(hasTool), sql` or `)})`),
    )
    .select(['slug', 'name', 'tool_names'])
    .orderBy(rank)
    .orderBy('slug')
    .limit(words.length === 1 ? most : mostLookedThrough);
  const characters = sql<number>`sum(length(tool_names)) over (order by ${rank}, slug)`;
  const rows = await db
    .selectFrom(candidates.select(characters.as('characters')).as('candidates'))
    .select(['slug', 'name', 'tool_names'])
    .where('characters', '<=', longestLookedThrough)
    .execute();
  const yieldAfterRow = yieldBetweenRows();
  const joined = words.join('_');
  let found: FoundTool[] = [];
  for (const { slug, name, tool_names: names } of rows) {
    const server = `${slug} ${name}`.toLowerCase();
    const missing = words.filter((word) => !server.includes(word));
    for (const line of (names ?? '').split('\n')) {
      const [own = '', tool = own] = line.split(' ');
      const hasWord = (word: string) => own.includes(word);
      if (missing.length > 0 ? missing.every(hasWord) : words.some(hasWord))
        found.push({ slug, name, tool, far: own.indexOf(joined) >>> 0, length: own.length });
      if (found.length > mostCompared) found = nearestOf(found, most);
      const turn = yieldAfterRow();
      if (turn) await turn;
    }
  }
  return nearestOf(found, most).map(({ slug, name, tool }) => ({ slug, name, tool }));
}

type FoundTool = FoundServer & { tool: string; far: number; length: number };

/** Maximum number of tools that are sorted together; more than a search returns. */
const mostCompared = 1000;

/** Returns the best matches. A name that contains the text earlier ranks higher, then the shorter name. */
function nearestOf(found: readonly FoundTool[], most: number): FoundTool[] {
  return found.toSorted((a, b) => a.far - b.far || a.length - b.length).slice(0, most);
}

const hasTool = (word: string) => sql<SqlBool>`tool_names like ${`%${literal(word)}%`} escape '\\'`;

function serversOf(db: Db, workspaceId: string, { slugs }: Wanted) {
  const query = db.selectFrom('servers').where('deleted_at', 'is', null);
  return slugs
    ? query.where('slug', 'in', [...slugs, '']).where(isOf(workspaceId))
    : query.where('workspace_id', '=', workspaceId);
}

/** Returns the condition that a key has each word of a query in its name, or that its id is the query. */
export function isKeyFor(query: string): RawBuilder<SqlBool> {
  const named = sql.join(
    wordsIn(query).map((word) => holds('name', word)),
    sql` and `,
  );
  return sql<SqlBool>`((${named}) or id = ${query})`;
}

const mostWords = 8;

/** Splits a query into words. Ignores words above the maximum. */
export function wordsIn(query: string): string[] {
  return query.toLowerCase().split(/\s+/).slice(0, mostWords);
}
