import { yieldBetweenRows } from '@toolhost/errors/yield-to-event-loop';
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Db } from './db.ts';
import { isInWorkspace, toSqlList } from './page.ts';

/** Returns the condition that a column contains a text, ignoring the case of Latin letters. */
function contains(column: string, text: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`lower(${sql.ref(column)}) like ${`%${escapeLike(text)}%`} escape '\\'`;
}

/** Escapes a text for a `like` pattern. Only Latin letters are lowercased, as in SQLite. */
function escapeLike(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()).replaceAll(/[\\%_]/g, '\\$&');
}

/** Returns the condition that a server has a word in its slug, name, or tags. */
export function matchesServer(word: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${contains('slug', word)} or ${contains('name', word)} or ${contains('tags', word)})`;
}

/** Search terms. All words must match, in the given servers or, if undefined, in the whole workspace. */
type SearchTerms = { words: readonly string[]; slugs: readonly string[] | undefined };

type ServerMatch = { slug: string; name: string };

/** Finds servers by name, slug, and tags. Servers whose slug starts with the words come first. */
export async function findServersByWords(
  db: Db,
  workspaceId: string,
  terms: SearchTerms,
  limit: number,
): Promise<ServerMatch[]> {
  const prefixRank = sql`case when slug like ${`${escapeLike(terms.words.join('-'))}%`} escape '\\' then 0 else 1 end`;
  return terms.words
    .reduce((query, word) => query.where(matchesServer(word)), selectActiveServers(db, workspaceId, terms))
    .select(['slug', 'name'])
    .orderBy(prefixRank)
    .orderBy('slug')
    .limit(limit)
    .execute();
}

/**
 * Maximum number of servers, and of characters in their tool names, that one tool search scans. Several words may occur
 * in different tools of a server.
 */
const maxServersScanned = 1000;
const maxCharactersScanned = 3_000_000;

/**
 * Returns tool names in their searchable form: one line for each, in lower case, because converting them takes most of
 * the time of a search. A name with uppercase letters follows in its line a second time.
 */
export function toSearchableNames(names: readonly string[]): string {
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
  terms: SearchTerms,
  limit: number,
): Promise<(ServerMatch & { tool: string })[]> {
  const { words } = terms;
  const rank = sql`case when tool_names like ${`%\n${escapeLike(words.join('_'))}%`} escape '\\' then 0 else 1 end`;
  const candidates = words
    .reduce(
      (query, word) => query.where(sql<SqlBool>`(${hasTool(word)} or ${matchesServer(word)})`),
      selectActiveServers(db, workspaceId, terms).where(sql<SqlBool>`(${sql.join(words.map(hasTool), sql` or `)})`),
    )
    .select(['slug', 'name', 'tool_names'])
    .orderBy(rank)
    .orderBy('slug')
    .limit(words.length === 1 ? limit : maxServersScanned);
  const characters = sql<number>`sum(length(tool_names)) over (order by ${rank}, slug)`;
  const rows = await db
    .selectFrom(candidates.select(characters.as('characters')).as('candidates'))
    .select(['slug', 'name', 'tool_names'])
    .where('characters', '<=', maxCharactersScanned)
    .execute();
  const yieldAfterRow = yieldBetweenRows();
  const joinedWords = words.join('_');
  let matches: ToolMatch[] = [];
  for (const { slug, name, tool_names: names } of rows) {
    const server = `${slug} ${name}`.toLowerCase();
    const unmatchedWords = words.filter((word) => !server.includes(word));
    for (const line of (names ?? '').split('\n')) {
      const [lowerCaseName = '', tool = lowerCaseName] = line.split(' ');
      const hasWord = (word: string) => lowerCaseName.includes(word);
      if (unmatchedWords.length > 0 ? unmatchedWords.every(hasWord) : words.some(hasWord))
        // `>>> 0` makes -1, for no match, the largest index.
        matches.push({
          slug,
          name,
          tool,
          matchIndex: lowerCaseName.indexOf(joinedWords) >>> 0,
          length: lowerCaseName.length,
        });
      if (matches.length > maxCandidates) matches = selectBestMatches(matches, limit);
      const yielded = yieldAfterRow();
      if (yielded) await yielded;
    }
  }
  return selectBestMatches(matches, limit).map(({ slug, name, tool }) => ({ slug, name, tool }));
}

type ToolMatch = ServerMatch & { tool: string; matchIndex: number; length: number };

/** Maximum number of tools that are sorted together; more than a search returns. */
const maxCandidates = 1000;

/** Returns the best matches. A name that contains the text earlier ranks higher, then the shorter name. */
function selectBestMatches(matches: readonly ToolMatch[], limit: number): ToolMatch[] {
  return matches.toSorted((a, b) => a.matchIndex - b.matchIndex || a.length - b.length).slice(0, limit);
}

const hasTool = (word: string) => sql<SqlBool>`tool_names like ${`%${escapeLike(word)}%`} escape '\\'`;

function selectActiveServers(db: Db, workspaceId: string, { slugs }: SearchTerms) {
  const query = db.selectFrom('servers').where('deleted_at', 'is', null);
  return slugs
    ? query.where('slug', 'in', toSqlList(slugs)).where(isInWorkspace(workspaceId))
    : query.where('workspace_id', '=', workspaceId);
}

/** Returns the condition that a key has each word of a query in its name, or that its id is the query. */
export function matchesKey(query: string): RawBuilder<SqlBool> {
  const nameMatches = sql.join(
    splitSearchWords(query).map((word) => contains('name', word)),
    sql` and `,
  );
  return sql<SqlBool>`((${nameMatches}) or id = ${query})`;
}

/** Bounds the number of conditions of a search. */
const maxWords = 8;

/** Splits a query into words. Ignores words above the maximum. */
export function splitSearchWords(query: string): string[] {
  return query.toLowerCase().split(/\s+/).slice(0, maxWords);
}
