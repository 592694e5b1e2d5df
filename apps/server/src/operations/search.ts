import { outcomes } from '@toolhost/errors/errors';
import { z } from 'zod';
import { findApiKeys } from '../store/api-keys.ts';
import { callIdPrefix } from '../store/calls/call-writer.ts';
import { findCall } from '../store/calls/calls.ts';
import { findServersByWords, findToolsByWords, splitSearchWords } from '../store/search.ts';
import { operation } from './operation.ts';
import { queryInput, slugInput, time, toIsoTime } from './shapes.ts';

const maxResults = 200;

export const search = operation({
  name: 'search',
  summary: 'Find servers, tools, and API keys by words in their names, or a call by its ID',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    query: queryInput.describe('Words that must all match, or an ID.'),
    slug: slugInput.optional(),
    limit: z.int().min(1).max(maxResults).default(10).describe('Maximum number of results of each kind.'),
  }),
  output: z.object({
    servers: z.array(z.object({ slug: z.string(), name: z.string() })).max(maxResults),
    tools: z
      .array(
        z.object({ server: z.string().describe('Slug of the server.'), server_name: z.string(), tool: z.string() }),
      )
      .max(maxResults),
    keys: z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          works: z.boolean().describe('True if the key is neither revoked nor expired.'),
        }),
      )
      .max(maxResults)
      .describe(
        'Matching API keys; empty for a search in one server, or with a credential that is limited to some servers.',
      ),
    calls: z
      .array(z.object({ id: z.string(), server: z.string(), tool: z.string(), outcome: z.enum(outcomes), at: time }))
      .max(1),
  }),
  async run({ db, actor, now, serving }, { query, slug, limit }) {
    const { workspaceId } = actor;
    const searchWords = splitSearchWords(query);
    const slugs = slug === undefined ? actor.servers : [slug];
    await serving?.flushCalls();
    const call = await findCall(db, workspaceId, query.startsWith(callIdPrefix) ? query : callIdPrefix + query);
    const tools = await findToolsByWords(db, workspaceId, { words: searchWords, slugs }, limit);
    const keys = slugs ? [] : (await findApiKeys(db, workspaceId, { limit, after: undefined, query })).rows;
    return {
      servers: await findServersByWords(db, workspaceId, { words: searchWords, slugs }, limit),
      tools: tools.map((match) => ({ server: match.slug, server_name: match.name, tool: match.tool })),
      keys: keys.map(({ id, name, revokedAt, expiresAt }) => ({
        id,
        name,
        works: revokedAt === undefined && (expiresAt === undefined || expiresAt > now()),
      })),
      calls:
        call && (!slugs || slugs.includes(call.slug))
          ? [{ id: call.id, server: call.slug, tool: call.tool, outcome: call.outcome, at: toIsoTime(call.started_at) }]
          : [],
    };
  },
});
