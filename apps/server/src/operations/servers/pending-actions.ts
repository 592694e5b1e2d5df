import { yieldBetweenRows } from '@toolhost/errors/yield-to-event-loop';
import { findUnmetNeeds } from '@toolhost/tool-config/secret-needs';
import { isConfigSecret } from '@toolhost/tool-config/server-config';
import { z } from 'zod';
import { findImportChecks } from '../../store/servers/imports.ts';
import { findSecretsByServer } from '../../store/servers/secrets.ts';
import { findSecretNeeds } from '../../store/servers/servers.ts';
import { operation } from '../operation.ts';
import { slugInput, toImportState } from '../shapes.ts';
import { maxSecrets } from './secrets.ts';

/** Maximum number of servers that are checked, newest first: the default quota. */
const maxChecked = 1000;
const maxServers = 100;

const listPendingActions = operation({
  name: 'listPendingActions',
  summary: 'List the pending actions of hosted servers: secrets to set and descriptions that have changed',
  description: `Servers without pending actions are omitted. The newest ${maxChecked} servers are checked, and at most ${maxServers} are returned.`,
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
          missing_secrets: z.array(z.string()).max(maxSecrets).describe('Names of secrets without a value.'),
          moved_secrets: z
            .array(z.string())
            .max(maxSecrets)
            .describe('Secrets to set again, because the tools now call other hosts than when they were set.'),
          description: z
            .enum(['changed', 'unreadable'])
            .optional()
            .describe('Result of the last check of the imported description.'),
        }),
      )
      .max(maxServers),
  }),
  async run({ db, actor }, { slug }) {
    const slugs = slug === undefined ? actor.servers : [slug];
    const servers = await findSecretNeeds(db, actor.workspaceId, slugs, maxChecked);
    const ids = servers.map(({ id }) => id);
    const secrets = await findSecretsByServer(db, actor.workspaceId, ids);
    const checks = await findImportChecks(db, actor.workspaceId, ids);
    const actions = [];
    const yieldIfDue = yieldBetweenRows();
    for (const { id, slug, needs } of servers) {
      await yieldIfDue();
      const storedSecrets = (secrets.get(id) ?? []).filter(({ name }) => !isConfigSecret(name));
      const { missing, moved } = needs ? findUnmetNeeds(needs, storedSecrets) : { missing: [], moved: [] };
      const check = checks.get(id);
      const { changed, error } = check ? toImportState(check) : {};
      const changeState = changed ? 'changed' : undefined;
      const description = error === undefined ? changeState : 'unreadable';
      actions.push({
        slug,
        missing_secrets: missing.slice(0, maxSecrets),
        moved_secrets: moved.slice(0, maxSecrets),
        ...(description !== undefined && ({ description } as const)),
      });
    }
    return {
      servers: actions
        .filter(
          (server) =>
            server.missing_secrets.length + server.moved_secrets.length > 0 || server.description !== undefined,
        )
        .slice(0, maxServers),
    };
  },
});

export const needsOperations = { listPendingActions };
