import { z } from 'zod';
import { listGrants } from '../store/grants.ts';
import { listSecrets } from '../store/secrets.ts';
import { connectionChecks } from './connection-checks.ts';
import { operation, servingOf } from './operation.ts';
import { getServer, slugInput } from './shapes.ts';

const checkConnection = operation({
  name: 'checkConnection',
  summary: 'Play what clients such as Claude, ChatGPT, Cursor and VS Code do first, and say which will fail and why',
  description: 'Nothing is sent to the upstream or to the provider.',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({
    checks: z
      .array(
        z.object({
          id: z.string(),
          title: z.string(),
          status: z.enum(['ok', 'warning', 'problem']),
          detail: z.string(),
          clients: z.array(z.string()).max(50).describe('Clients that it concerns.'),
        }),
      )
      .max(50),
  }),
  async run(context, { slug }) {
    const { db, actor } = context;
    const server = await getServer(context, slug);
    const logins = await listGrants(db, actor.workspaceId, { slug, slugs: undefined }, { limit: 1, after: undefined });
    const checks = await connectionChecks({
      config: server.config,
      probe: await servingOf(context).probeConnection(slug),
      address: context.serverUrl(slug),
      callbackUrl: context.callbackUrl(slug),
      secrets: await listSecrets(db, server),
      hasLogins: logins.rows.length > 0,
    });
    return { checks };
  },
});

export const connectionOperations = { checkConnection };
