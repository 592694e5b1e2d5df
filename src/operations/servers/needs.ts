import { z } from 'zod';
import { unmetNeeds } from '../../domain/config/secret-needs.ts';
import { configSecrets } from '../../domain/config/server-config.ts';
import { yieldBetweenRows } from '../../domain/work/next-turn.ts';
import { findImportChecks } from '../../store/servers/imports.ts';
import { findSecretsByServer } from '../../store/servers/secrets.ts';
import { findNeeds } from '../../store/servers/servers.ts';
import { operation } from '../operation.ts';
import { importStateOf, slugInput } from '../shapes.ts';
import { mostSecrets } from './secrets.ts';

/** Maximum number of servers that are checked, newest first: the default quota. */
const mostLookedAt = 1000;
const mostServers = 100;

/** Names that a change of tool URLs does not affect. */
const apart: readonly string[] = Object.values(configSecrets);

const listNeeds = operation({
  name: 'listNeeds',
  summary: 'List the pending actions of hosted servers: secrets to set and descriptions that have changed',
  description: `Servers without pending actions are omitted. The newest ${mostLookedAt} servers are checked, and at most ${mostServers} are returned.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({ slug: slugInput.optional() }),
  output: z.object({
    servers: z
      .array(
        z.object({
          slug: z.string(),
          missing_secrets: z.array(z.string()).max(mostSecrets).describe('Names of secrets without a value.'),
          moved_secrets: z
            .array(z.string())
            .max(mostSecrets)
            .describe('Secrets to set again, because the tools now call other hosts than when they were set.'),
          description: z
            .enum(['changed', 'unreadable'])
            .optional()
            .describe('Result of the last check of the imported description.'),
        }),
      )
      .max(mostServers),
  }),
  async run({ db, actor }, { slug }) {
    const slugs = slug === undefined ? actor.servers : [slug];
    const servers = await findNeeds(db, actor.workspaceId, slugs, mostLookedAt);
    const ids = servers.map(({ id }) => id);
    const secrets = await findSecretsByServer(db, actor.workspaceId, ids);
    const checks = await findImportChecks(db, actor.workspaceId, ids);
    const found = [];
    const yieldAfterRow = yieldBetweenRows();
    for (const { id, slug, needs } of servers) {
      await yieldAfterRow();
      const stored = (secrets.get(id) ?? []).filter(({ name }) => !apart.includes(name));
      const { missing, moved } = needs ? unmetNeeds(needs, stored) : { missing: [], moved: [] };
      const check = checks.get(id);
      const { changed, error } = check ? importStateOf(check) : {};
      const description = error !== undefined ? 'unreadable' : changed ? 'changed' : undefined;
      found.push({
        slug,
        missing_secrets: missing.slice(0, mostSecrets),
        moved_secrets: moved.slice(0, mostSecrets),
        ...(description !== undefined && ({ description } as const)),
      });
    }
    return {
      servers: found
        .filter((one) => one.missing_secrets.length + one.moved_secrets.length > 0 || one.description !== undefined)
        .slice(0, mostServers),
    };
  },
});

export const needsOperations = { listNeeds };
