import { z } from 'zod';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { viewConfig } from '../../domain/config/view.ts';
import { nearestOrAll, newGuesses } from '../../domain/problems/did-you-mean.ts';
import { AppError } from '../../errors.ts';
import { findGrants } from '../../store/logins/grants.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { operation, servingOf } from '../operation.ts';
import { getServer, slugInput, viewInput } from '../shapes.ts';
import { connectionChecks } from './connection-rules.ts';

const checkConnection = operation({
  name: 'checkConnection',
  summary: 'Play what clients such as Claude, ChatGPT, Cursor and VS Code do first, and say which will fail and why',
  description: 'Nothing is sent to the upstream or to the provider.',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    view: viewInput.optional().describe('A view of the server, which is examined at its own address.'),
  }),
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
  async run(context, { slug, view }) {
    const { db, actor } = context;
    const server = await getServer(context, slug);
    const config = configOf(server.config, view);
    const atView = view === undefined ? '' : `/${view}`;
    const hostAddress = context.ownAddress(slug);
    const logins = await findGrants(db, actor.workspaceId, { slug, slugs: undefined }, { limit: 1, after: undefined });
    const checks = await connectionChecks({
      config,
      probe: await servingOf(context).probeConnection(slug, view),
      address: context.serverUrl(slug) + atView,
      issuer: context.serverUrl(slug),
      hostAddress: hostAddress === undefined ? undefined : hostAddress + atView,
      callbackUrl: context.callbackUrl(slug),
      secrets: await findSecrets(db, server),
      hasLogins: logins.rows.length > 0,
    });
    return { checks };
  },
});

/** The configuration of the server, or of a view. @throws AppError notFound */
function configOf(config: ServerConfig, name: string | undefined): ServerConfig {
  if (name === undefined) return config;
  const { views = {} } = config;
  const view = Object.hasOwn(views, name) ? views[name] : undefined;
  if (view) return viewConfig(config, view);
  const near = nearestOrAll(name, Object.keys(views), newGuesses());
  throw new AppError('notFound', `the server has no view ${JSON.stringify(name)}${near}`);
}

export const connectionOperations = { checkConnection };
