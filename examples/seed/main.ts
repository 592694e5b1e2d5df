/**
 * Seeds a workspace with servers, people, keys, and four weeks of calls, so that every dashboard page has content.
 * Usage: npm run seed. `-- --add` adds to existing data. `-- --large` also creates 1,000 servers and a million calls.
 */
import { reportFailure } from '../../apps/cli/src/print.ts';
import { type Seeded, seed } from './seed.ts';

const options = process.argv.slice(2);
const allowed = ['--add', '--large'];
const unknown = options.find((option) => !allowed.includes(option));
if (unknown === undefined) {
  try {
    process.stdout.write(
      summary(await seed(process.env, { adds: options.includes('--add'), isLarge: options.includes('--large') })),
    );
  } catch (error) {
    process.exitCode = reportFailure(error);
  }
} else {
  process.stderr.write(`error: ${unknown} is not an option; allowed: ${allowed.join(', ')}\n`);
  process.exitCode = 2;
}

/** Formats the summary: the seeded data, how to sign in, and the pages to open. */
function summary({ database, settings, servers, calls, baseUrl }: Seeded): string {
  return `
Seeded ${database}: ${servers.toLocaleString('en')} servers, 4 people, 6 API keys, 4 logins, and ${calls.toLocaleString('en')} calls in the last four weeks.

  Start the service:  ${settings}npm start
  Sign in:            ${baseUrl}, then Continue. In local mode you are the only person and own the workspace.

  ${baseUrl}/servers             servers with a stored credential, with a login, with the caller's token, and without a credential
  ${baseUrl}/servers/invoices    an editor with four tools; Versions has three to compare and restore
  ${baseUrl}/servers/helpdesk    logins of four agents, one of them ended by the provider
  ${baseUrl}/servers/warehouse   a secret without a value, and a disabled tool
  ${baseUrl}/servers/projects    the worked example, whose tools can be called; the token is local-example-key
  ${baseUrl}/calls               charts, filters, and captured requests and responses of recent calls of invoices
  ${baseUrl}/keys                active keys, an expired key, a revoked key, and a key whose creator has left
  ${baseUrl}/settings            members, an invitation, limits, and retention
  ${baseUrl}/audit               who changed what in the last month

The hosts under example.com do not exist, so calls of the other servers' tools fail.
`;
}
